import { setImmediate as turn } from 'node:timers/promises'
import type { Page, PageRequest } from '../core/ports/store.ts'
import { UampError } from '../protocol/errors.ts'
import type { Json } from '../protocol/json.ts'
import { checkName, parseCursor } from '../core/basics/store-key.ts'
import type { Connection, Statement } from './sqlite-schema.ts'

/** How many index sizes are kept in memory; beyond it all are dropped and counted again. */
const COUNTS = 1000
/** Entries that one step of a count passes over, which takes a millisecond or two. */
const COUNT_STEP = 4000
/** Largest value, in bytes, that is read together with its entry, and most bytes of larger ones that one later step reads. */
const SMALL_BYTES = 4096
const STEP_BYTES = 128 * 1024

type Order = 'ASC' | 'DESC'
type Listing = PageRequest & { readonly descending?: boolean }
type Pair = { readonly first: Statement; readonly next: Statement }
type Entry = readonly [sort: string, key: string, bytes: number, value: string | null]
type Item = { readonly key: string; readonly value: Json }

/** A count in progress: `count` includes all entries up to `at`. */
interface Walk {
  readonly index: string
  /** Undefined: it counts the whole index, and its result is kept. */
  readonly from: string | undefined
  count: number
  at: readonly [sort: string, key: string] | undefined
  /** The number of `reload`s when it began. */
  generation: number
}

export interface ListOptions {
  /** Runs after all earlier writes are in the tables. */
  readonly read: <T>(run: () => T) => T | Promise<T>
  readonly expiryTime: () => number
}

/** Reads indexes in steps, so that a long list or large values do not block the event loop. */
export class Lists {
  readonly #options: ListOptions
  /** The sizes of indexes that were counted. */
  readonly #counts = new Map<string, number>()
  readonly #walks = new Map<string, Walk>()
  readonly #counting = new Map<string, Promise<number>>()
  #generation = 0

  readonly #lists: Readonly<Record<Order, Pair>>
  readonly #keys: Pair
  readonly #value: Statement
  readonly #step: Pair
  readonly #rest: Pair

  constructor(db: Connection, options: ListOptions) {
    this.#options = options
    this.#lists = { ASC: pair(db, listing('ASC'), '>'), DESC: pair(db, listing('DESC'), '<') }
    this.#keys = pair(db, keysOf, '>')
    this.#value = db.query('SELECT value FROM records WHERE key = ? AND (expires IS NULL OR expires > ?)')
    const entries = 'FROM record_index i WHERE i.name = ? AND'
    const step = (cursor: string) => db.query(`SELECT i.sort, i.key ${entries} ${cursor} ORDER BY i.sort, i.key LIMIT 1 OFFSET ?`)
    const rest = (cursor: string) => db.query(`SELECT COUNT(*) ${entries} ${cursor}`)
    this.#step = { first: step('i.sort >= ?'), next: step('(i.sort, i.key) > (?, ?)') }
    this.#rest = { first: rest('i.sort >= ?'), next: rest('(i.sort, i.key) > (?, ?)') }
  }

  /** Drops the counts after a rollback. */
  reload(): void {
    this.#generation++
    this.#counts.clear()
    this.#walks.clear()
  }

  /** Called when an entry is added or removed. */
  readonly onEntry = (index: string, entry: readonly [sort: string, key: string], by: 1 | -1): void => {
    const known = this.#counts.get(index)
    if (known !== undefined) this.#counts.set(index, known + by)
    const walk = this.#walks.get(index)
    if (walk?.at && !isAfter(entry, walk.at)) walk.count += by
  }

  async list(index: string, { after, limit = 100, descending = false }: Listing): Promise<Page<Item>> {
    checkName(index)
    if (!Number.isSafeInteger(limit) || limit < 1) throw new UampError('invalid_request', 'A page has at least one item')
    const cursor = after === undefined ? [] : parseCursor(after)
    const { first, next } = this.#lists[descending ? 'DESC' : 'ASC']
    const { read, expiryTime } = this.#options
    const statement = after === undefined ? first : next
    const rows = await read(() => statement.all([index, ...cursor, expiryTime(), limit + 1]) as Entry[])
    const more = rows.length > limit
    if (more) rows.pop()
    const end = rows.at(-1)
    return { items: await this.#items(rows), next: more && end ? cursorAt(end) : undefined }
  }

  /** Reads large values one by one. Records that are deleted meanwhile are left out. */
  async #items(rows: readonly Entry[]): Promise<Item[]> {
    const items: Item[] = []
    let left = STEP_BYTES
    for (const [, key, bytes, value] of rows) {
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
    const [statement, cursor] = after === undefined ? [this.#keys.first, []] : [this.#keys.next, parseCursor(after)]
    const rows = statement.all([index, ...cursor, limit + 1]) as Entry[]
    const shown = rows.slice(0, limit)
    const end = shown.at(-1)
    return { items: shown.map(([, key, bytes]) => ({ key, bytes })), next: end && rows.length > limit ? cursorAt(end) : undefined }
  }

  async count(index: string, from: string | undefined): Promise<number> {
    checkName(index)
    if (from !== undefined) {
      checkName(from)
      return this.#walk(index, from)
    }
    const known = await this.#options.read(() => this.#counts.get(index))
    if (known !== undefined) return known
    let counting = this.#counting.get(index)
    if (!counting) {
      counting = this.#walk(index).finally(() => this.#counting.delete(index))
      this.#counting.set(index, counting)
    }
    return counting
  }

  async #walk(index: string, from?: string): Promise<number> {
    const walk: Walk = { index, from, count: 0, at: undefined, generation: -1 }
    while (!(await this.#options.read(() => this.#stride(walk)))) await turn()
    return walk.count
  }

  /** Continues a count; true at its end. After a rollback the count starts again, because `onEntry` was told of entries that are gone. */
  #stride(walk: Walk): boolean {
    const { index, from } = walk
    if (walk.generation !== this.#generation) {
      Object.assign(walk, { count: 0, at: undefined, generation: this.#generation })
      if (from === undefined) this.#walks.set(index, walk)
    }
    const at = walk.at ?? [from ?? '']
    const way = walk.at ? 'next' : 'first'
    const step = this.#step[way].get([index, ...at, COUNT_STEP - 1]) as [string, string] | undefined
    if (step) {
      walk.at = step
      walk.count += COUNT_STEP
      return false
    }
    walk.count += (this.#rest[way].get([index, ...at]) as [number])[0]
    if (from !== undefined) return true
    // In the same step as the last count, because the next entry may come right after it.
    this.#walks.delete(index)
    if (this.#counts.size >= COUNTS) this.#counts.clear()
    this.#counts.set(index, walk.count)
    return true
  }
}

/** The statements for the first page, and for a page after a cursor. */
function pair(db: Connection, sql: (cursor: string) => string, than: '<' | '>'): Pair {
  return { first: db.query(sql('')), next: db.query(sql(`AND (i.sort, i.key) ${than} (?, ?)`)) }
}

function listing(order: Order): (cursor: string) => string {
  return (cursor) => `SELECT i.sort, i.key, octet_length(r.value), CASE WHEN octet_length(r.value) <= ${SMALL_BYTES} THEN r.value END
    FROM record_index i JOIN records r ON r.key = i.key
    WHERE i.name = ? ${cursor} AND (r.expires IS NULL OR r.expires > ?)
    ORDER BY i.sort ${order}, i.key ${order} LIMIT ?`
}

function keysOf(cursor: string): string {
  return `SELECT i.sort, i.key, octet_length(r.value) FROM record_index i JOIN records r ON r.key = i.key
    WHERE i.name = ? ${cursor} ORDER BY i.sort, i.key LIMIT ?`
}

/** Compares bytes, as SQLite does. */
function isAfter(entry: readonly [string, string], other: readonly [string, string]): boolean {
  const [a, b] = entry[0] === other[0] ? [entry[1], other[1]] : [entry[0], other[0]]
  return Buffer.compare(Buffer.from(a), Buffer.from(b)) > 0
}

function cursorAt([sort, key]: Entry): string {
  return JSON.stringify([sort, key])
}
