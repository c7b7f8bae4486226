import type { Group, Kept } from '../core/ports/store.ts'
import { UampError } from '../protocol/errors.ts'
import { checkName } from './sqlite-names.ts'
import type { Connection, Portion, Statement } from './sqlite-schema.ts'

/** Groups that may wait for their index entry. */
const INDEX_EVERY = 512
/** Streams whose id and last position are kept in memory. */
const MOST_KNOWN = 8192
/** Dropped streams that are looked at in one purge. */
const PURGE_STREAMS = 64

interface Stream {
  readonly id: number
  last: number
}

/** Everything here runs inside a transaction of the queue, except `last` and `page` when nothing is queued. */
export class Streams {
  readonly #db: Connection
  readonly #known = new Map<string, Stream>()
  #newest = 0
  #indexed = 0
  #weighed = 0

  readonly #marks: Statement
  readonly #find: Statement
  readonly #create: Statement
  readonly #insert: Statement
  readonly #last: Statement
  readonly #page: Statement
  readonly #index: Statement
  readonly #weigh: Statement
  readonly #mark: Statement
  readonly #unname: Statement
  readonly #dropped: Statement
  readonly #doomed: Statement
  readonly #purge: Statement
  readonly #unindex: Statement
  readonly #remove: Statement
  readonly #scan: Statement

  constructor(db: Connection) {
    this.#db = db
    this.#marks = db.query(
      `SELECT i.value, w.value, coalesce((SELECT max(id) FROM groups), 0) FROM marks i, marks w
       WHERE i.name = 'indexed' AND w.name = 'weighed'`,
    )
    this.#find = db.query('SELECT id FROM streams WHERE name = ?')
    this.#create = db.query('INSERT INTO streams (name, bytes) VALUES (?, 0) RETURNING id')
    this.#insert = db.command('INSERT INTO groups (id, stream, first, last, text) VALUES (?, ?, ?, ?, ?)')
    this.#last = db.query('SELECT last FROM group_index WHERE stream = ? ORDER BY last DESC LIMIT 1')
    this.#page = db.query(
      `SELECT g.first, g.last, g.text FROM group_index i JOIN groups g ON g.id = i.id
       WHERE i.stream = ? AND i.last > ? ORDER BY i.last LIMIT ?`,
    )
    this.#index = db.command('INSERT INTO group_index SELECT stream, last, id FROM groups WHERE id > ? ORDER BY stream, last')
    this.#weigh = db.command(
      `UPDATE streams SET bytes = streams.bytes + added.bytes
       FROM (SELECT stream, sum(octet_length(text)) AS bytes FROM groups WHERE id > ? GROUP BY stream) AS added
       WHERE streams.id = added.stream`,
    )
    this.#mark = db.command('UPDATE marks SET value = ? WHERE name = ?')
    this.#unname = db.command('UPDATE streams SET name = NULL WHERE id = ?')
    this.#dropped = db.query('SELECT id FROM streams WHERE name IS NULL LIMIT ?')
    this.#doomed = db.query(
      `SELECT i.last, i.id, octet_length(g.text) FROM group_index i JOIN groups g ON g.id = i.id
       WHERE i.stream = ? ORDER BY i.last LIMIT ?`,
    )
    this.#purge = db.command('DELETE FROM groups WHERE id = ?')
    this.#unindex = db.command('DELETE FROM group_index WHERE stream = ? AND last = ?')
    this.#remove = db.command('DELETE FROM streams WHERE id = ?')
    this.#scan = db.query(
      `SELECT id, name, coalesce(bytes, (SELECT sum(octet_length(g.text)) FROM group_index i JOIN groups g ON g.id = i.id
         WHERE i.stream = streams.id), 0) FROM streams WHERE id > ? AND name IS NOT NULL ORDER BY id LIMIT ?`,
    )
    this.reload()
  }

  /** Reads again what is kept in memory: at first, and after a rollback. */
  reload(): void {
    this.#known.clear()
    const [indexed, weighed, newest] = this.#marks.get([]) as [number, number, number]
    this.#indexed = indexed
    this.#weighed = weighed
    // Purged ids must not come back below the mark, where they would never be indexed.
    this.#newest = Math.max(indexed, newest)
  }

  get behind(): boolean {
    return this.#newest > this.#indexed
  }

  append(name: string, { first, last, text }: Group, expected?: number): void {
    const stream = this.#get(name)
    const at = stream?.last ?? 0
    if (expected !== undefined && expected !== at) throw new UampError('conflict', `The stream is at ${at}, not at ${expected}`)
    if (first <= at) throw new UampError('conflict', `The stream is at ${at} already, a group cannot begin at ${first}`)
    const target = stream ?? this.#add(name)
    this.#insert.run([++this.#newest, target.id, first, last, encode(text)])
    target.last = last
    this.#db.written += text.length
    if (this.#newest - this.#indexed >= INDEX_EVERY) this.index()
  }

  drop(name: string): void {
    const stream = this.#get(name)
    if (!stream) return
    this.#unname.run([stream.id])
    this.#known.delete(name)
  }

  last(name: string): number {
    return this.#get(name)?.last ?? 0
  }

  /** The index must not be behind. */
  page(name: string, after: number, limit: number): Group[] {
    const stream = this.#get(name)
    if (!stream || stream.last <= after) return []
    const rows = this.#page.all([stream.id, after, limit]) as [number, number, string | ArrayBuffer][]
    return rows.map(([first, last, text]) => ({ first, last, text: decode(text) }))
  }

  index(): void {
    if (!this.behind) return
    this.#index.run([this.#indexed])
    this.#mark.run([this.#newest, 'indexed'])
    this.#indexed = this.#newest
    if (this.#newest - this.#weighed >= INDEX_EVERY) this.#addUp()
  }

  /** Brings the sizes of the streams up to date: not with every look at the index, as it writes to the rows of all that grew. */
  #addUp(): void {
    if (this.#newest === this.#weighed) return
    this.#weigh.run([this.#weighed])
    this.#mark.run([this.#newest, 'weighed'])
    this.#weighed = this.#newest
  }

  /** Runs inside a transaction. */
  scan(after: number, limit: number): { readonly id: number; readonly kept: Kept }[] {
    this.index()
    this.#addUp()
    const rows = this.#scan.all([after, limit]) as [number, string, number][]
    return rows.map(([id, key, bytes]) => ({ id, kept: { type: 'stream', key, bytes, index: {} } }))
  }

  /** Deletes a few groups of dropped streams; false when there is nothing left to delete. */
  purge({ rows: limit, bytes }: Portion): boolean {
    const streams = this.#dropped.all([PURGE_STREAMS]) as [number][]
    if (streams.length === 0) return false
    this.index()
    this.#db.scrub = true
    const left = { rows: limit, bytes }
    for (const [stream] of streams) {
      const groups = this.#doomed.all([stream, left.rows]) as [number, number, number][]
      for (const [last, id, size] of groups) {
        this.#purge.run([id])
        this.#unindex.run([stream, last])
        left.rows--
        if ((left.bytes -= size) < 0) return true
      }
      if (left.rows <= 0) return true
      this.#remove.run([stream])
    }
    return true
  }

  #get(name: string): Stream | undefined {
    const known = this.#known.get(name)
    if (known) return this.#remember(name, known)
    checkName(name)
    const row = this.#find.get([name]) as [number] | undefined
    if (!row) return undefined
    this.index()
    const last = this.#last.get(row) as [number] | undefined
    return this.#remember(name, { id: row[0], last: last?.[0] ?? 0 })
  }

  #add(name: string): Stream {
    const [id] = this.#create.get([name]) as [number]
    return this.#remember(name, { id, last: 0 })
  }

  /** Most recently used last: a Map iterates in the order of insertion. */
  #remember(name: string, stream: Stream): Stream {
    this.#known.delete(name)
    this.#known.set(name, stream)
    if (this.#known.size > MOST_KNOWN) {
      const oldest = this.#known.keys().next()
      if (!oldest.done) this.#known.delete(oldest.value)
    }
    return stream
  }
}

/** The driver reads a text only up to its first NUL, and replaces lone surrogates. */
function encode(text: string): string | Uint8Array {
  return text.includes('\0') || !text.isWellFormed() ? Buffer.from(text, 'utf16le') : text
}

function decode(text: string | ArrayBuffer): string {
  return typeof text === 'string' ? text : Buffer.from(text).toString('utf16le')
}
