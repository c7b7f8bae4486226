import { setImmediate as turn } from 'node:timers/promises'
import type { ListRequest, Page, PageRequest } from '../core/ports/store.ts'
import { UampError } from '../protocol/errors.ts'
import type { Json } from '../protocol/json.ts'
import { checkName, parseCursor } from '../core/basics/store-key.ts'
import type { Connection, Statement } from './sqlite-schema.ts'

/** Largest value, in bytes, that is read together with its entry, and most bytes of larger ones that one later step reads. */
const SMALL_BYTES = 4096
const STEP_BYTES = 128 * 1024

type Order = 'ASC' | 'DESC'
type Pair = { readonly first: Statement; readonly next: Statement }
type Entry = readonly [sort: string, record: number, key: string, bytes: number, value: string | null]
type Item = { readonly key: string; readonly value: Json }

export interface ListOptions {
  /** Runs after all earlier writes are in the tables. */
  readonly read: <T>(run: () => T) => T | Promise<T>
  readonly expiryTime: () => number
}

/** Reads indexes in steps, so that a long list or large values do not block the event loop. */
export class Lists {
  readonly #options: ListOptions
  readonly #lists: Readonly<Record<Order, Pair>>
  readonly #keys: Pair
  readonly #value: Statement

  constructor(db: Connection, options: ListOptions) {
    this.#options = options
    this.#lists = { ASC: pair(db, listing('ASC'), '>'), DESC: pair(db, listing('DESC'), '<') }
    this.#keys = pair(db, keysOf, '>')
    this.#value = db.query('SELECT value FROM records WHERE key = ? AND (expires IS NULL OR expires > ?)')
  }

  async list(index: string, { after, afterSort, limit = 100, descending = false }: ListRequest): Promise<Page<Item>> {
    checkName(index)
    if (!Number.isSafeInteger(limit) || limit < 1) throw new UampError('invalid_request', 'A page has at least one item')
    const behind = afterSort === undefined ? undefined : [afterSort, descending ? -1 : Number.MAX_SAFE_INTEGER]
    const cursor = after === undefined ? behind : placeAt(after)
    const { first, next } = this.#lists[descending ? 'DESC' : 'ASC']
    const { read, expiryTime } = this.#options
    const statement = cursor ? next : first
    const rows = await read(() => statement.all([index, ...(cursor ?? []), expiryTime(), limit + 1]) as Entry[])
    const more = rows.length > limit
    if (more) rows.pop()
    const end = rows.at(-1)
    return { items: await this.#items(rows), next: more && end ? cursorAt(end) : undefined }
  }

  /** Reads large values one by one. Records that are deleted meanwhile are left out. */
  async #items(rows: readonly Entry[]): Promise<Item[]> {
    const items: Item[] = []
    let left = STEP_BYTES
    for (const [, , key, bytes, value] of rows) {
      if (value === null && (left -= bytes) < 0) {
        await turn()
        left = STEP_BYTES
      }
      const text =
        value ?? (await this.#options.read(() => this.#value.get([key, this.#options.expiryTime()]) as [string] | undefined))?.[0]
      if (text !== undefined) items.push({ key, value: JSON.parse(text) as Json })
    }
    return items
  }

  keys(index: string, { after, limit = 100 }: PageRequest): Page<{ key: string; bytes: number }> {
    checkName(index)
    const [statement, cursor] = after === undefined ? [this.#keys.first, []] : [this.#keys.next, placeAt(after)]
    const rows = statement.all([index, ...cursor, limit + 1]) as Entry[]
    const shown = rows.slice(0, limit)
    const end = shown.at(-1)
    return { items: shown.map(([, , key, bytes]) => ({ key, bytes })), next: end && rows.length > limit ? cursorAt(end) : undefined }
  }
}

/** The statements for the first page, and for a page after a cursor. */
function pair(db: Connection, sql: (cursor: string) => string, than: '<' | '>'): Pair {
  return { first: db.query(sql('')), next: db.query(sql(`AND (i.sort, i.record) ${than} (?, ?)`)) }
}

function listing(order: Order): (cursor: string) => string {
  return (
    cursor,
  ) => `SELECT i.sort, i.record, r.key, octet_length(r.value), CASE WHEN octet_length(r.value) <= ${SMALL_BYTES} THEN r.value END
    FROM entries i JOIN records r ON r.id = i.record
    WHERE i.name = ? ${cursor} AND (r.expires IS NULL OR r.expires > ?)
    ORDER BY i.sort ${order}, i.record ${order} LIMIT ?`
}

function keysOf(cursor: string): string {
  return `SELECT i.sort, i.record, r.key, octet_length(r.value) FROM entries i JOIN records r ON r.id = i.record
    WHERE i.name = ? ${cursor} ORDER BY i.sort, i.record LIMIT ?`
}

function cursorAt([sort, record]: Entry): string {
  return JSON.stringify([sort, String(record)])
}

function placeAt(after: string): [sort: string, record: number] {
  const [sort, record] = parseCursor(after)
  if (!/^\d{1,15}$/.test(record)) throw new UampError('invalid_request', 'The cursor is not one of this list')
  return [sort, Number(record)]
}
