import type { Kept, Stored } from '../core/ports/store.ts'
import type { Json } from '../protocol/json.ts'
import { type RecordChanges, placesIn } from './sqlite-changes.ts'
import { checkName } from '../core/basics/store-key.ts'
import type { Connection, Portion, Statement } from './sqlite-schema.ts'

interface RecordOptions {
  readonly changes: RecordChanges
  readonly now: () => number
  readonly expiryTime: () => number
}

export class Records {
  readonly #changes: RecordChanges
  readonly #now: () => number
  readonly #expiryTime: () => number
  readonly #get: Statement
  readonly #expired: Statement
  readonly #scan: Statement

  constructor(db: Connection, { changes, now, expiryTime }: RecordOptions) {
    this.#changes = changes
    this.#now = now
    this.#expiryTime = expiryTime
    this.#get = db.query('SELECT value, version FROM records WHERE key = ? AND (expires IS NULL OR expires > ?)')
    this.#scan = db.query(
      `SELECT id, key, octet_length(value) + octet_length(key), places FROM records
       WHERE id > ? AND (expires IS NULL OR expires > ?) ORDER BY id LIMIT ?`,
    )
    this.#expired = db.query('SELECT id, key, places, octet_length(value) FROM records WHERE expires <= ? LIMIT ?')
  }

  get(key: string): Stored | undefined {
    checkName(key)
    const row = this.#get.get([key, this.#expiryTime()]) as [string, number] | undefined
    return row && { value: JSON.parse(row[0]) as Json, version: row[1] }
  }

  scan(after: number, limit: number): { readonly id: number; readonly kept: Kept }[] {
    const rows = this.#scan.all([after, this.#now(), limit]) as [number, string, number, string | null][]
    return rows.map(([id, key, bytes, places]) => ({
      id,
      kept: { type: 'record', key, bytes, index: Object.fromEntries(placesIn(places)) },
    }))
  }

  /** Deletes a few expired records, inside a transaction; false when none are left. */
  purge({ rows: limit, bytes }: Portion): boolean {
    const rows = this.#expired.all([this.#expiryTime(), limit]) as [number, string, string | null, number][]
    let left = bytes
    const beyond = rows.findIndex(([, , , size]) => (left -= size) < 0)
    const chosen = beyond < 0 ? rows : rows.slice(0, beyond + 1)
    this.#changes.remove(chosen.map(([id, key, places]) => ({ id, key, places })))
    return rows.length > 0
  }
}
