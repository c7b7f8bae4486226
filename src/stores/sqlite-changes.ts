import type { Place, SetOptions } from '../core/ports/store.ts'
import { UampError } from '../protocol/errors.ts'
import type { Json } from '../protocol/json.ts'
import { checkName } from '../core/basics/store-key.ts'
import type { Bound, Connection, Statement } from './sqlite-schema.ts'
import { Rows, type Staging, Surprise } from './sqlite-staging.ts'

/** Versions are reserved in blocks of this size, so that a restart reuses none: an expired lease must not be taken for its successor. */
const RESERVE = 1_000_000

/** Bytes that a `set` adds to the log besides its text: pages of the table and its indexes. */
const PAGES_BYTES = 8192
/** How many new records of a transaction add such pages; further ones share them. */
const APART = 16

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

export interface ChangeOptions {
  readonly staging: Staging
  readonly now: () => number
  readonly expiryTime: () => number
  /** Called when an index entry is added or removed. */
  readonly onEntry: (index: string, entry: readonly [sort: string, key: string], by: 1 | -1) => void
}

/** Writes records. Everything here runs inside a transaction of the queue. */
export class RecordChanges {
  readonly #db: Connection
  readonly #options: ChangeOptions
  readonly #planned = new Map<string, Planned>()
  #version = 0
  #reserved = 0

  readonly #reservation: Statement
  readonly #reserve: Statement
  readonly #find: Statement
  readonly #update: Statement
  readonly #delete: Statement
  readonly #insert: Rows
  readonly #place: Rows
  readonly #displace: Rows

  constructor(db: Connection, options: ChangeOptions) {
    this.#db = db
    this.#options = options
    this.#reservation = db.query(`SELECT value FROM marks WHERE name = 'version'`)
    this.#reserve = db.command(`UPDATE marks SET value = ? WHERE name = 'version'`)
    this.#find = db.query('SELECT id, version, expires, places FROM records WHERE key = ?')
    this.#update = db.command('UPDATE records SET value = ?, version = ?, expires = ?, places = ? WHERE id = ?')
    this.#delete = db.command('DELETE FROM records WHERE id IN (SELECT value FROM json_each(?))')
    this.#insert = new Rows(
      db,
      5,
      (rows) => `INSERT INTO records (value, version, expires, places, key) VALUES ${rows} ON CONFLICT (key) DO NOTHING`,
    )
    this.#place = new Rows(db, 3, (rows) => `INSERT INTO record_index (name, sort, key) VALUES ${rows}`)
    this.#displace = new Rows(db, 3, (rows) => `DELETE FROM record_index WHERE (name, sort, key) IN (VALUES ${rows})`)
    this.reload()
    this.#version = this.#reserved
  }

  /** Drops staged operations and reloads what memory keeps: at the start, and after a rollback. */
  reload(): void {
    this.#planned.clear()
    this.#reserved = (this.#reservation.get([]) as [number])[0]
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

  /** Deletes rows that were read in this transaction. */
  remove(rows: readonly { readonly id: number; readonly key: string; readonly places: string | null }[]): void {
    for (const { id, key, places } of rows) this.#planned.set(key, { row: [id, 0, null, places], next: undefined })
    this.flush()
  }

  /** Writes the staged operations. */
  flush(): void {
    if (this.#planned.size === 0) return
    const inserts: Bound[] = []
    const deletes: number[] = []
    const entries: Entries = { gone: [], come: [] }
    let apart = 0
    for (const [key, { row, next }] of this.#planned) {
      if (next && row) this.#update.run([next.text, next.version, next.expires, placesText(next.places), row[0]])
      else if (next) inserts.push(next.text, next.version, next.expires, placesText(next.places), key)
      else if (row) deletes.push(row[0])
      compare(key, [placesIn(row?.[3] ?? null), next?.places ?? []], entries)
      if (next) this.#db.written += next.text.length + (row || ++apart <= APART ? PAGES_BYTES : 0)
    }
    this.#planned.clear()
    if (deletes.length > 0) {
      this.#delete.run([JSON.stringify(deletes)])
      this.#db.scrub = true
    }
    if (this.#insert.run(inserts) < inserts.length / 5) throw new Surprise()
    this.#displace.run(entries.gone)
    this.#place.run(entries.come)
    this.#tell(entries.gone, -1)
    this.#tell(entries.come, 1)
  }

  #tell(entries: readonly string[], by: 1 | -1): void {
    for (let at = 0; at < entries.length; at += 3) {
      const [index = '', sort = '', key = ''] = entries.slice(at, at + 3)
      this.#options.onEntry(index, [sort, key], by)
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
  readonly gone: string[]
  readonly come: string[]
}

function placesText(places: readonly Place[]): string | null {
  return places.length === 0 ? null : JSON.stringify(places)
}

export function placesIn(text: string | null): readonly Place[] {
  return text === null ? [] : (JSON.parse(text) as Place[])
}

function compare(key: string, [before, after]: readonly [readonly Place[], readonly Place[]], { gone, come }: Entries): void {
  for (const [index, sort] of without(before, after)) gone.push(index, sort, key)
  for (const [index, sort] of without(after, before)) come.push(index, sort, key)
}

function without(places: readonly Place[], others: readonly Place[]): readonly Place[] {
  if (others.length === 0) return places
  return places.filter(([index, sort]) => !others.some((other) => other[0] === index && other[1] === sort))
}
