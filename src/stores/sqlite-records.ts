import type { Kept, Page, PageRequest, SetOptions, Stored } from '../core/ports/store.ts'
import { parseJson, type Json } from '../protocol/json.ts'
import { UampError } from '../protocol/errors.ts'
import { checkName } from './sqlite-names.ts'
import type { Connection, Portion, Statement } from './sqlite-schema.ts'

/** Versions are reserved in blocks, so that none is used again after a restart: a lapsed lease must not be taken for its successor. */
const RESERVE = 1_000_000

/** Indexes whose size is kept in memory; beyond it all are counted again. */
const COUNTS = 1000

/** What a `set` adds to the log besides its text: pages of the table and of its indexes. */
const PAGES_BYTES = 8192

/** A `set` whose value is already text, so that what the caller does to the object later is not stored. */
export interface Change {
  readonly key: string
  readonly text: string
  readonly places: string | null
  readonly ttlMs: number | undefined
  readonly ifVersion: number | undefined
}

export function change(key: string, value: Json, { ttlMs, ifVersion, index }: SetOptions = {}): Change {
  const entries = Object.entries(index ?? {})
  entries.flat().forEach(checkName)
  return { key, text: JSON.stringify(value), places: entries.length > 0 ? JSON.stringify(entries) : null, ttlMs, ifVersion }
}

type Row = readonly [id: number, version: number, expires: number | null, places: string | null]
type Order = 'ASC' | 'DESC'
type Listing = PageRequest & { readonly descending?: boolean }
type ListRow = readonly [sort: string, key: string, value: string]

/** Writes run inside a transaction of the queue. */
export class Records {
  readonly #db: Connection
  readonly #now: () => number
  readonly #expiryTime: () => number
  #version = 0
  #reserved = 0
  /** How many entries an index has, of those that somebody asked about: counting goes through all of them. */
  readonly #counts = new Map<string, number>()

  readonly #reservation: Statement
  readonly #reserve: Statement
  readonly #get: Statement
  readonly #find: Statement
  readonly #insert: Statement
  readonly #insertNew: Statement
  readonly #update: Statement
  readonly #delete: Statement
  readonly #place: Statement
  readonly #displace: Statement
  readonly #lists: Readonly<Record<Order, { readonly first: Statement; readonly next: Statement }>>
  readonly #count: Statement
  readonly #countFrom: Statement
  readonly #expired: Statement
  readonly #keys: { readonly first: Statement; readonly next: Statement }
  readonly #scan: Statement

  constructor(db: Connection, { now, expiryTime }: { readonly now: () => number; readonly expiryTime: () => number }) {
    this.#db = db
    this.#now = now
    this.#expiryTime = expiryTime
    this.#reservation = db.query(`SELECT value FROM marks WHERE name = 'version'`)
    this.#reserve = db.command(`UPDATE marks SET value = ? WHERE name = 'version'`)
    this.#get = db.query('SELECT value, version FROM records WHERE key = ? AND (expires IS NULL OR expires > ?)')
    this.#find = db.query('SELECT id, version, expires, places FROM records WHERE key = ?')
    this.#insert = db.command('INSERT INTO records (value, version, expires, places, key) VALUES (?, ?, ?, ?, ?)')
    this.#insertNew = db.command(
      'INSERT INTO records (value, version, expires, places, key) VALUES (?, ?, ?, ?, ?) ON CONFLICT (key) DO NOTHING',
    )
    this.#update = db.command('UPDATE records SET value = ?, version = ?, expires = ?, places = ? WHERE id = ?')
    this.#delete = db.command('DELETE FROM records WHERE id = ?')
    this.#place = db.command('INSERT INTO record_index (name, sort, key) VALUES (?, ?, ?)')
    this.#displace = db.command('DELETE FROM record_index WHERE name = ? AND sort = ? AND key = ?')
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
    this.reload()
    this.#version = this.#reserved
  }

  /** Reads again what is kept in memory: at first, and after a rollback. */
  reload(): void {
    this.#counts.clear()
    this.#reserved = (this.#reservation.get([]) as [number])[0]
  }

  get(key: string): Stored | undefined {
    checkName(key)
    const row = this.#get.get([key, this.#expiryTime()]) as [string, number] | undefined
    return row && { value: JSON.parse(row[0]) as Json, version: row[1] }
  }

  set({ key, text, places, ttlMs, ifVersion }: Change): number {
    checkName(key)
    const version = this.#nextVersion()
    const expires = ttlMs === undefined ? null : this.#now() + ttlMs
    // Of what is new nothing needs to be looked up.
    const isNew = ifVersion === 0 && this.#insertNew.run([text, version, expires, places, key]).changes === 1
    const row = isNew ? undefined : this.#match(key, ifVersion)
    if (row) this.#update.run([text, version, expires, places, row[0]])
    else if (!isNew) this.#insert.run([text, version, expires, places, key])
    this.#move(key, row?.[3] ?? null, places)
    this.#db.written += text.length + PAGES_BYTES
    return version
  }

  delete(key: string, ifVersion?: number): void {
    const row = this.#match(key, ifVersion)
    if (!row) return
    this.#delete.run([row[0]])
    this.#move(key, row[3], null)
    this.#db.scrub = true
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
      kept: { type: 'record', key, bytes, index: Object.fromEntries(entries(places)) },
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

  /** Deletes a few expired records; false when there is nothing left to delete. */
  purge({ rows: limit, bytes }: Portion): boolean {
    const rows = this.#expired.all([this.#expiryTime(), limit]) as [number, string, string | null, number][]
    let left = bytes
    for (const [id, key, places, size] of rows) {
      this.#delete.run([id])
      this.#move(key, places, null)
      if ((left -= size) < 0) break
    }
    if (rows.length > 0) this.#db.scrub = true
    return rows.length > 0
  }

  /** The row, expired or not, if the record has the version that is asked for. */
  #match(key: string, ifVersion: number | undefined): Row | undefined {
    checkName(key)
    const row = this.#find.get([key]) as Row | undefined
    if (ifVersion === undefined) return row
    const version = row && (row[2] === null || row[2] > this.#expiryTime()) ? row[1] : 0
    if (version !== ifVersion) throw new UampError('conflict', `The record has version ${version}, not ${ifVersion}`)
    return row
  }

  #nextVersion(): number {
    if (++this.#version > this.#reserved) {
      this.#reserved = this.#version + RESERVE
      this.#reserve.run([this.#reserved])
    }
    return this.#version
  }

  #move(key: string, from: string | null, to: string | null): void {
    if (from === to) return
    const [before, after] = [entries(from), entries(to)]
    for (const [name, sort] of without(before, after)) {
      this.#displace.run([name, sort, key])
      this.#recount(name, -1)
    }
    for (const [name, sort] of without(after, before)) {
      this.#place.run([name, sort, key])
      this.#recount(name, 1)
    }
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

type Place = readonly [name: string, sort: string]

function entries(places: string | null): Place[] {
  return places === null ? [] : (JSON.parse(places) as Place[])
}

function without(places: readonly Place[], others: readonly Place[]): readonly Place[] {
  if (others.length === 0) return places
  return places.filter(([name, sort]) => !others.some((other) => other[0] === name && other[1] === sort))
}

function parseCursor(after: string): [sort: string, key: string] {
  try {
    const [sort, key] = parseJson(after) as unknown[]
    if (typeof sort === 'string' && typeof key === 'string') return [sort, key]
  } catch {}
  throw new UampError('invalid_request', 'The cursor is not one of this list')
}
