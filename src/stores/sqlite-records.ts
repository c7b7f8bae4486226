import type { Kept, Page, PageRequest, Stored } from '../core/ports/store.ts'
import { parseJson, type Json } from '../protocol/json.ts'
import { UampError } from '../protocol/errors.ts'
import { RecordChanges, placesIn } from './sqlite-changes.ts'
import { checkName } from './sqlite-names.ts'
import type { Connection, Portion, Statement } from './sqlite-schema.ts'
import type { Staging } from './sqlite-staging.ts'

/** Indexes whose size is kept in memory; beyond it all are counted again. */
const COUNTS = 1000

type Order = 'ASC' | 'DESC'
type Listing = PageRequest & { readonly descending?: boolean }
type ListRow = readonly [sort: string, key: string, value: string]

interface RecordOptions {
  readonly staging: Staging
  readonly now: () => number
  readonly expiryTime: () => number
}

export class Records {
  readonly changes: RecordChanges
  readonly #now: () => number
  readonly #expiryTime: () => number
  /** How many entries an index has, of those that somebody asked about: counting goes through all of them. */
  readonly #counts = new Map<string, number>()

  readonly #get: Statement
  readonly #lists: Readonly<Record<Order, { readonly first: Statement; readonly next: Statement }>>
  readonly #count: Statement
  readonly #countFrom: Statement
  readonly #expired: Statement
  readonly #keys: { readonly first: Statement; readonly next: Statement }
  readonly #scan: Statement

  constructor(db: Connection, options: RecordOptions) {
    const { now, expiryTime } = options
    this.changes = new RecordChanges(db, { ...options, onEntry: (index, by) => this.#recount(index, by) })
    this.#now = now
    this.#expiryTime = expiryTime
    this.#get = db.query('SELECT value, version FROM records WHERE key = ? AND (expires IS NULL OR expires > ?)')
    this.#lists = {
      ASC: { first: db.query(listing('ASC')), next: db.query(listing('ASC', 'AND (i.sort, i.key) > (?, ?)')) },
      DESC: { first: db.query(listing('DESC')), next: db.query(listing('DESC', 'AND (i.sort, i.key) < (?, ?)')) },
    }
    this.#count = db.query('SELECT COUNT(*) FROM record_index WHERE name = ?')
    this.#countFrom = db.query('SELECT COUNT(*) FROM record_index WHERE name = ? AND sort >= ?')
    this.#keys = { first: db.query(keysOf()), next: db.query(keysOf('AND (i.sort, i.key) > (?, ?)')) }
    this.#scan = db.query(
      `SELECT id, key, octet_length(value) + octet_length(key), places FROM records
       WHERE id > ? AND (expires IS NULL OR expires > ?) ORDER BY id LIMIT ?`,
    )
    this.#expired = db.query('SELECT id, key, places, octet_length(value) FROM records WHERE expires <= ? LIMIT ?')
  }

  /** Forgets what is kept in memory: after a rollback. */
  reload(): void {
    this.#counts.clear()
    this.changes.reload()
  }

  get(key: string): Stored | undefined {
    checkName(key)
    const row = this.#get.get([key, this.#expiryTime()]) as [string, number] | undefined
    return row && { value: JSON.parse(row[0]) as Json, version: row[1] }
  }

  keys(index: string, { after, limit = 100 }: PageRequest): Page<{ key: string; bytes: number }> {
    checkName(index)
    const [statement, cursor] = after === undefined ? [this.#keys.first, []] : [this.#keys.next, parseCursor(after)]
    const rows = statement.all([index, ...cursor, limit + 1]) as [sort: string, key: string, bytes: number][]
    const shown = rows.slice(0, limit)
    const end = shown.at(-1)
    return {
      items: shown.map(([, key, bytes]) => ({ key, bytes })),
      next: end && rows.length > limit ? JSON.stringify([end[0], end[1]]) : undefined,
    }
  }

  scan(after: number, limit: number): { readonly id: number; readonly kept: Kept }[] {
    const rows = this.#scan.all([after, this.#now(), limit]) as [number, string, number, string | null][]
    return rows.map(([id, key, bytes, places]) => ({
      id,
      kept: { type: 'record', key, bytes, index: Object.fromEntries(placesIn(places)) },
    }))
  }

  list(index: string, { after, limit = 100, descending = false }: Listing): Page<{ key: string; value: Json }> {
    checkName(index)
    if (!Number.isSafeInteger(limit) || limit < 1) throw new UampError('invalid_request', 'A page has at least one item')
    const { first, next } = this.#lists[descending ? 'DESC' : 'ASC']
    const [statement, cursor] = after === undefined ? [first, []] : [next, parseCursor(after)]
    const rows = statement.all([index, this.#expiryTime(), ...cursor, limit + 1]) as ListRow[]
    const shown = rows.slice(0, limit)
    const end = shown.at(-1)
    return {
      items: shown.map((row) => ({ key: row[1], value: JSON.parse(row[2]) as Json })),
      next: end && rows.length > limit ? JSON.stringify([end[0], end[1]]) : undefined,
    }
  }

  count(index: string, from: string | undefined): number {
    checkName(index)
    if (from !== undefined) {
      checkName(from)
      return (this.#countFrom.get([index, from]) as [number])[0]
    }
    const known = this.#counts.get(index)
    if (known !== undefined) return known
    const count = (this.#count.get([index]) as [number])[0]
    if (this.#counts.size >= COUNTS) this.#counts.clear()
    this.#counts.set(index, count)
    return count
  }

  /** Deletes a few expired records, inside a transaction; false when there is nothing left to delete. */
  purge({ rows: limit, bytes }: Portion): boolean {
    const rows = this.#expired.all([this.#expiryTime(), limit]) as [number, string, string | null, number][]
    let left = bytes
    const beyond = rows.findIndex(([, , , size]) => (left -= size) < 0)
    const chosen = beyond < 0 ? rows : rows.slice(0, beyond + 1)
    this.changes.remove(chosen.map(([id, key, places]) => ({ id, key, places })))
    return rows.length > 0
  }

  #recount(name: string, by: number): void {
    const known = this.#counts.get(name)
    if (known !== undefined) this.#counts.set(name, known + by)
  }
}

function listing(order: Order, cursor = ''): string {
  return `SELECT i.sort, i.key, r.value FROM record_index i JOIN records r ON r.key = i.key
    WHERE i.name = ? AND (r.expires IS NULL OR r.expires > ?) ${cursor}
    ORDER BY i.sort ${order}, i.key ${order} LIMIT ?`
}

function keysOf(cursor = ''): string {
  return `SELECT i.sort, i.key, octet_length(r.value) FROM record_index i JOIN records r ON r.key = i.key
    WHERE i.name = ? ${cursor} ORDER BY i.sort, i.key LIMIT ?`
}

function parseCursor(after: string): [sort: string, key: string] {
  try {
    const [sort, key] = parseJson(after) as unknown[]
    if (typeof sort === 'string' && typeof key === 'string') return [sort, key]
  } catch {}
  throw new UampError('invalid_request', 'The cursor is not one of this list')
}
