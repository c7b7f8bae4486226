import { setImmediate as turn } from 'node:timers/promises'
import type { Kept, Place, SetOptions, Stored } from '../core/ports/store.ts'
import { UampError } from '../protocol/errors.ts'
import type { Json } from '../protocol/json.ts'
import { checkName } from '../core/basics/store-key.ts'
import { type Staging, Surprise } from './sqlite-queue.ts'
import { type Bound, type Connection, type Portion, Rows, type Statement } from './sqlite-schema.ts'

/** Versions are reserved in blocks of this size, so that a restart reuses none: an expired lease must not be taken for its successor. */
const RESERVE = 1_000_000

/** Bytes that a `set` adds to the log besides its text: pages of the table and its indexes. */
const PAGES_BYTES = 8192
/** How many new records of a transaction add such pages; further ones share them. */
const APART = 16
/** How many index sizes are kept in memory; beyond it all are dropped and counted again. */
const COUNTS = 1000
/** Entries that one step of a count passes over, which takes a millisecond or two. */
const COUNT_STEP = 4000

/** A `set` whose value is already text, so that later changes of the caller's object are not stored. */
export interface Change {
  readonly key: string
  readonly text: string
  readonly places: readonly Place[]
  readonly ttlMs: number | undefined
  readonly ifVersion: number | undefined
}

export function change(key: string, value: Json, { ttlMs, ifVersion, index: places = [] }: SetOptions = {}): Change {
  checkName(key)
  for (const [name, sort] of places) {
    checkName(name)
    checkName(sort)
  }
  return { key, text: JSON.stringify(value), places, ttlMs, ifVersion }
}

type Row = readonly [id: number, version: number, expires: number | null, places: string | null]

interface Next {
  readonly text: string
  readonly version: number
  readonly expires: number | null
  readonly places: readonly Place[]
}

/** A record in the table, and what it becomes. Undefined: it does not exist, or will not. */
interface Planned {
  readonly row: Row | undefined
  readonly next: Next | undefined
}

export interface RecordOptions {
  readonly staging: Staging
  readonly now: () => number
  readonly expiryTime: () => number
  readonly counts: IndexCounts
}

/** Everything here runs inside a transaction of the queue, except `get` and `scan` when nothing is queued. */
export class Records {
  readonly #db: Connection
  readonly #options: RecordOptions
  readonly #planned = new Map<string, Planned>()
  #version = 0
  #reserved = 0
  /** The highest id of a record. */
  #newest = 0

  readonly #reservation: Statement
  readonly #reserve: Statement
  readonly #find: Statement
  readonly #update: Statement
  readonly #delete: Statement
  readonly #insert: Rows
  readonly #place: Rows
  readonly #displace: Rows
  readonly #get: Statement
  readonly #expired: Statement
  readonly #scan: Statement

  constructor(db: Connection, options: RecordOptions) {
    this.#db = db
    this.#options = options
    this.#reservation = db.query(`SELECT value, coalesce((SELECT max(id) FROM records), 0) FROM marks WHERE name = 'version'`)
    this.#reserve = db.command(`UPDATE marks SET value = ? WHERE name = 'version'`)
    this.#find = db.query('SELECT id, version, expires, places FROM records WHERE key = ?')
    this.#update = db.command('UPDATE records SET value = ?, version = ?, expires = ?, places = ? WHERE id = ?')
    this.#delete = db.command('DELETE FROM records WHERE id IN (SELECT value FROM json_each(?))')
    this.#insert = new Rows(
      db,
      6,
      (rows) => `INSERT INTO records (id, key, value, version, expires, places) VALUES ${rows} ON CONFLICT (key) DO NOTHING`,
    )
    this.#place = new Rows(db, 3, (rows) => `INSERT INTO entries (name, sort, record) VALUES ${rows}`)
    this.#displace = new Rows(db, 3, (rows) => `DELETE FROM entries WHERE (name, sort, record) IN (VALUES ${rows})`)
    this.#get = db.query('SELECT value, version FROM records WHERE key = ? AND (expires IS NULL OR expires > ?)')
    this.#scan = db.query(
      `SELECT id, key, octet_length(value) + octet_length(key), places FROM records
       WHERE id > ? AND (expires IS NULL OR expires > ?) ORDER BY id LIMIT ?`,
    )
    this.#expired = db.query('SELECT id, key, places, octet_length(value) FROM records WHERE expires <= ? LIMIT ?')
    this.reload()
    this.#version = this.#reserved
  }

  /** Drops staged operations and reloads what memory keeps: at the start, and after a rollback. */
  reload(): void {
    this.#planned.clear()
    this.#options.counts.reload()
    const [reserved, newest] = this.#reservation.get([]) as [number, number]
    this.#reserved = reserved
    this.#newest = newest
  }

  get(key: string): Stored | undefined {
    checkName(key)
    const row = this.#get.get([key, this.#options.expiryTime()]) as [string, number] | undefined
    return row && { value: JSON.parse(row[0]) as Json, version: row[1] }
  }

  scan(after: number, limit: number): { readonly id: number; readonly kept: Kept }[] {
    const rows = this.#scan.all([after, this.#options.now(), limit]) as [number, string, number, string | null][]
    return rows.map(([id, key, bytes, places]) => ({
      id,
      kept: { type: 'record', key, bytes, index: Object.fromEntries(placesIn(key, places)) },
    }))
  }

  /** Returns the new version. */
  set({ key, text, places, ttlMs, ifVersion }: Change): number {
    const isNew = ifVersion === 0 && !this.#options.staging.careful && !this.#planned.has(key)
    const row = isNew ? undefined : this.#match(key, ifVersion)
    const version = this.#nextVersion()
    const expires = ttlMs === undefined ? null : this.#options.now() + ttlMs
    this.#plan(key, { row, next: { text, version, expires, places } })
    return version
  }

  delete(key: string, ifVersion?: number): void {
    checkName(key)
    const row = this.#match(key, ifVersion)
    if (row || this.#planned.has(key)) this.#plan(key, { row, next: undefined })
  }

  /** Deletes a few expired records; false when none are left. */
  purge({ rows: limit, bytes }: Portion): boolean {
    const rows = this.#expired.all([this.#options.expiryTime(), limit]) as [number, string, string | null, number][]
    let left = bytes
    for (const [id, key, places, size] of rows) {
      this.#planned.set(key, { row: [id, 0, null, places], next: undefined })
      if ((left -= size) < 0) break
    }
    this.flush()
    return rows.length > 0
  }

  /** Writes the staged operations. */
  flush(): void {
    if (this.#planned.size === 0) return
    const inserts: Bound[] = []
    const deletes: number[] = []
    const entries: Entries = { gone: [], come: [] }
    let apart = 0
    for (const [key, { row, next }] of this.#planned) {
      if (!row && !next) continue
      const id = row?.[0] ?? ++this.#newest
      if (next && row) this.#update.run([next.text, next.version, next.expires, placesText(key, next.places), id])
      else if (next) inserts.push(id, key, next.text, next.version, next.expires, placesText(key, next.places))
      else deletes.push(id)
      compare(id, [placesIn(key, row?.[3] ?? null), next?.places ?? []], entries)
      if (next) this.#db.written += next.text.length + (row || ++apart <= APART ? PAGES_BYTES : 0)
    }
    this.#planned.clear()
    if (deletes.length > 0) {
      this.#delete.run([JSON.stringify(deletes)])
      this.#db.scrub = true
    }
    if (this.#insert.run(inserts) < inserts.length / 6) throw new Surprise()
    this.#displace.run(entries.gone)
    this.#place.run(entries.come)
    this.#tell(entries.gone, -1)
    this.#tell(entries.come, 1)
  }

  #tell(entries: readonly (string | number)[], by: 1 | -1): void {
    for (let at = 0; at < entries.length; at += 3) {
      this.#options.counts.note(entries[at] as string, [entries[at + 1] as string, entries[at + 2] as number], by)
    }
  }

  #plan(key: string, planned: Planned): void {
    const before = this.#planned.get(key)
    this.#planned.set(key, planned)
    this.#options.staging.onUndo(() => {
      if (before) this.#planned.set(key, before)
      else this.#planned.delete(key)
    })
  }

  /** The row in the table. Throws `conflict` if the record does not have the required version. */
  #match(key: string, ifVersion: number | undefined): Row | undefined {
    const planned = this.#planned.get(key)
    const row = planned ? planned.row : (this.#find.get([key]) as Row | undefined)
    if (ifVersion === undefined) return row
    const [version, expires] = planned ? [planned.next?.version ?? 0, planned.next?.expires ?? null] : [row?.[1] ?? 0, row?.[2] ?? null]
    const actual = expires === null || expires > this.#options.expiryTime() ? version : 0
    if (actual !== ifVersion) throw new UampError('conflict', `The record has version ${actual}, not ${ifVersion}`)
    return row
  }

  #nextVersion(): number {
    if (++this.#version > this.#reserved) {
      this.#reserved = this.#version + RESERVE
      this.#reserve.run([this.#reserved])
    }
    return this.#version
  }
}

/** Index entries, as the columns of rows in sequence. */
interface Entries {
  readonly gone: (string | number)[]
  readonly come: (string | number)[]
}

/** Stands for a sort key that is the last part of the record's key, and for one that the place before it has. */
const AS_KEY = 0
const AS_BEFORE = 1
type KeptSort = string | typeof AS_KEY | typeof AS_BEFORE

/** A record's places as JSON, with names and sort keys in turns: most sort keys need not be repeated. */
function placesText(key: string, places: readonly Place[]): string | null {
  if (places.length === 0) return null
  const last = lastPart(key)
  let before: string | undefined
  const kept: KeptSort[] = []
  for (const [name, sort] of places) {
    kept.push(name, sort === last ? AS_KEY : sort === before ? AS_BEFORE : sort)
    before = sort
  }
  return JSON.stringify(kept)
}

function placesIn(key: string, text: string | null): readonly Place[] {
  if (text === null) return []
  const kept = JSON.parse(text) as (KeptSort | Place)[]
  // Formats 1 and 2 wrote pairs.
  if (typeof kept[0] === 'object') return kept as Place[]
  const places: Place[] = []
  let before = ''
  for (let at = 0; at < kept.length; at += 2) {
    const sort = kept[at + 1] as KeptSort
    before = sort === AS_KEY ? lastPart(key) : sort === AS_BEFORE ? before : sort
    places.push([kept[at] as string, before])
  }
  return places
}

function lastPart(key: string): string {
  return key.slice(key.lastIndexOf('/') + 1)
}

function compare(id: number, [before, after]: readonly [readonly Place[], readonly Place[]], { gone, come }: Entries): void {
  for (const [index, sort] of without(before, after)) gone.push(index, sort, id)
  for (const [index, sort] of without(after, before)) come.push(index, sort, id)
}

function without(places: readonly Place[], others: readonly Place[]): readonly Place[] {
  if (others.length === 0) return places
  return places.filter(([index, sort]) => !others.some((other) => other[0] === index && other[1] === sort))
}

/** Where an index has a record. */
type EntryPlace = readonly [sort: string, record: number]

/** A count in progress: `count` includes all entries up to `at`. */
interface Walk {
  readonly index: string
  /** Undefined: it counts the whole index, and its result is kept. */
  readonly from: string | undefined
  count: number
  at: EntryPlace | undefined
  /** The number of `reload`s when it began. */
  generation: number
}

type Read = <T>(run: () => T) => T | Promise<T>
type Pair = { readonly first: Statement; readonly next: Statement }

/** Counts the entries of indexes in steps, so that a long index does not block the event loop, and remembers the results. */
export class IndexCounts {
  readonly #read: Read
  /** The sizes of indexes that were counted. */
  readonly #counts = new Map<string, number>()
  readonly #walks = new Map<string, Walk>()
  readonly #counting = new Map<string, Promise<number>>()
  #generation = 0

  readonly #step: Pair
  readonly #rest: Pair

  /** `read` runs after all earlier writes are in the tables. */
  constructor(db: Connection, read: Read) {
    this.#read = read
    const entries = 'FROM entries WHERE name = ? AND'
    const step = (cursor: string) => db.query(`SELECT sort, record ${entries} ${cursor} ORDER BY sort, record LIMIT 1 OFFSET ?`)
    const rest = (cursor: string) => db.query(`SELECT COUNT(*) ${entries} ${cursor}`)
    this.#step = { first: step('sort >= ?'), next: step('(sort, record) > (?, ?)') }
    this.#rest = { first: rest('sort >= ?'), next: rest('(sort, record) > (?, ?)') }
  }

  /** Drops the counts: after a rollback. */
  reload(): void {
    this.#generation++
    this.#counts.clear()
    this.#walks.clear()
  }

  /** Called when an entry is added or removed. */
  note(index: string, entry: EntryPlace, by: 1 | -1): void {
    const known = this.#counts.get(index)
    if (known !== undefined) this.#counts.set(index, known + by)
    const walk = this.#walks.get(index)
    if (walk?.at && !isAfter(entry, walk.at)) walk.count += by
  }

  async count(index: string, from: string | undefined): Promise<number> {
    checkName(index)
    if (from !== undefined) {
      checkName(from)
      return this.#walk(index, from)
    }
    const known = await this.#read(() => this.#counts.get(index))
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
    while (!(await this.#read(() => this.#stride(walk)))) await turn()
    return walk.count
  }

  /** Continues a count; true at its end. After a rollback the count starts again, because `note` was told of entries that are gone. */
  #stride(walk: Walk): boolean {
    const { index, from } = walk
    if (walk.generation !== this.#generation) {
      Object.assign(walk, { count: 0, at: undefined, generation: this.#generation })
      if (from === undefined) this.#walks.set(index, walk)
    }
    const at = walk.at ?? [from ?? '']
    const way = walk.at ? 'next' : 'first'
    const step = this.#step[way].get([index, ...at, COUNT_STEP - 1]) as [string, number] | undefined
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

/** Compares bytes, as SQLite does. */
function isAfter([sort, record]: EntryPlace, other: EntryPlace): boolean {
  return sort === other[0] ? record > other[1] : Buffer.compare(Buffer.from(sort), Buffer.from(other[0])) > 0
}
