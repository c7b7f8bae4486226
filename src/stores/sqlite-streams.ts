import type { Group, Kept } from '../core/ports/store.ts'
import { UampError } from '../protocol/errors.ts'
import { checkName } from '../core/basics/store-key.ts'
import { type Staging, Surprise } from './sqlite-queue.ts'
import { type Bound, type Connection, type Portion, Rows, type Statement } from './sqlite-schema.ts'

/** Most groups that wait for their index entry. */
const INDEX_EVERY = 512
/** Most streams whose id and last position are kept in memory. */
const MOST_KNOWN = 8192
/** Largest group, in bytes, that is read together with others. */
const SMALL_BYTES = 16 * 1024
/** Most dropped streams that one purge visits. */
const PURGE_STREAMS = 64

interface Stream {
  readonly id: number
  last: number
}

/** A stream that is not in the table yet. `null` as name: it was dropped again. */
interface Added {
  readonly id: number
  name: string | null
}

/** Everything here runs inside a transaction of the queue, except `last` and `page` when nothing is queued. */
export class Streams {
  readonly #db: Connection
  readonly #staging: Staging
  readonly #known = new Map<string, Stream>()
  /** Staged: streams to add. */
  #added: Added[] = []
  /** Staged: groups as rows without their id. */
  #groups: Bound[][] = []
  /** Staged: ids of dropped streams, by name. */
  readonly #drops = new Map<string, number>()
  #newestStream = 0
  #newest = 0
  #indexed = 0
  #weighed = 0

  readonly #marks: Statement
  readonly #find: Statement
  readonly #create: Rows
  readonly #insert: Rows
  readonly #last: Statement
  readonly #page: Statement
  readonly #text: Statement
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

  constructor(db: Connection, staging: Staging) {
    this.#db = db
    this.#staging = staging
    this.#marks = db.query(
      `SELECT i.value, w.value, coalesce((SELECT max(id) FROM groups), 0), coalesce((SELECT max(id) FROM streams), 0) FROM marks i, marks w
       WHERE i.name = 'indexed' AND w.name = 'weighed'`,
    )
    this.#find = db.query('SELECT id FROM streams WHERE name = ?')
    this.#create = new Rows(db, 3, (rows) => `INSERT INTO streams (id, name, bytes) VALUES ${rows} ON CONFLICT (name) DO NOTHING`)
    this.#insert = new Rows(db, 5, (rows) => `INSERT INTO groups (id, stream, first, last, text) VALUES ${rows}`)
    this.#last = db.query('SELECT last FROM group_index WHERE stream = ? ORDER BY last DESC LIMIT 1')
    this.#page = db.query(
      `SELECT g.first, g.last, g.id, CASE WHEN octet_length(g.text) <= ${SMALL_BYTES} THEN g.text END
       FROM group_index i JOIN groups g ON g.id = i.id WHERE i.stream = ? AND i.last > ? ORDER BY i.last LIMIT ?`,
    )
    this.#text = db.query('SELECT text FROM groups WHERE id = ?')
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

  /** Drops staged operations and reloads what memory keeps: at the start, and after a rollback. */
  reload(): void {
    this.#known.clear()
    this.#unstage()
    const [indexed, weighed, newest, newestStream] = this.#marks.get([]) as [number, number, number, number]
    this.#newestStream = newestStream
    this.#indexed = indexed
    this.#weighed = weighed
    // A purged id must not be reused below the mark, where its group would never be indexed.
    this.#newest = Math.max(indexed, newest)
  }

  get behind(): boolean {
    return this.#newest > this.#indexed
  }

  append(name: string, { first, last, text }: Group, expected?: number): void {
    const isNew = expected === 0 && !this.#staging.careful
    const stream = isNew ? this.#known.get(name) : this.#get(name)
    const at = stream?.last ?? 0
    if (expected !== undefined && expected !== at) throw new UampError('conflict', `The stream is at ${at}, not at ${expected}`)
    if (first <= at) throw new UampError('conflict', `The stream is at ${at} already, a group cannot begin at ${first}`)
    const target = stream ?? this.#add(name)
    this.#groups.push([target.id, first, last, encode(text)])
    target.last = last
    this.#staging.onUndo(() => {
      this.#groups.pop()
      target.last = at
    })
  }

  drop(name: string): void {
    const stream = this.#get(name)
    if (!stream) return
    const added = this.#added.find(({ id }) => id === stream.id)
    if (added) added.name = null
    else this.#drops.set(name, stream.id)
    this.#known.delete(name)
    this.#staging.onUndo(() => {
      if (added) added.name = name
      else this.#drops.delete(name)
      this.#known.set(name, stream)
    })
  }

  /** Writes the staged operations. */
  flush(): void {
    for (const id of this.#drops.values()) this.#unname.run([id])
    if (this.#create.run(this.#added.flatMap(({ id, name }) => [id, name, 0])) < this.#added.length) throw new Surprise()
    for (const group of this.#groups) this.#db.written += (group[3] as string | Uint8Array).length
    this.#insert.run(this.#groups.flatMap((group) => [++this.#newest, ...group]))
    this.#unstage()
    if (this.#newest - this.#indexed >= INDEX_EVERY) this.index()
    this.#trim()
  }

  #unstage(): void {
    this.#added = []
    this.#groups = []
    this.#drops.clear()
  }

  last(name: string): number {
    return this.#get(name)?.last ?? 0
  }

  /** The next groups; a large one comes alone. The index must not be behind. */
  page(name: string, after: number, limit: number): { readonly groups: readonly Group[]; readonly more: boolean } {
    const stream = this.#get(name)
    if (!stream || stream.last <= after) return { groups: [], more: false }
    const rows = this.#page.all([stream.id, after, limit]) as GroupRow[]
    const large = rows.findIndex(([, , , text]) => text === null)
    const shown = large < 0 ? rows : rows.slice(0, Math.max(1, large))
    const groups = shown.map(([first, last, id, text]) => ({ first, last, text: decode(text ?? (this.#text.get([id]) as [Text])[0]) }))
    return { groups, more: (groups.at(-1)?.last ?? stream.last) < stream.last }
  }

  index(): void {
    if (!this.behind) return
    this.#index.run([this.#indexed])
    this.#mark.run([this.#newest, 'indexed'])
    this.#indexed = this.#newest
    if (this.#newest - this.#weighed >= INDEX_EVERY) this.#addUp()
  }

  /** Updates the sizes of streams. This writes a row for each stream that grew, so it runs less often than `index`. */
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

  /** Deletes a few groups of dropped streams; false when none are left. */
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
    const row = this.#drops.has(name) ? undefined : (this.#find.get([name]) as [number] | undefined)
    if (!row) return undefined
    this.index()
    const last = this.#last.get(row) as [number] | undefined
    return this.#remember(name, { id: row[0], last: last?.[0] ?? 0 })
  }

  #add(name: string): Stream {
    checkName(name)
    const id = ++this.#newestStream
    this.#added.push({ id, name })
    this.#staging.onUndo(() => {
      this.#added.pop()
      this.#known.delete(name)
    })
    return this.#remember(name, { id, last: 0 })
  }

  /** Most recently used last: a Map iterates in the order of insertion. */
  #remember(name: string, stream: Stream): Stream {
    this.#known.delete(name)
    this.#known.set(name, stream)
    // Only memory knows the position of a stream whose groups are staged.
    if (this.#groups.length === 0) this.#trim()
    return stream
  }

  #trim(): void {
    for (const name of this.#known.keys()) {
      if (this.#known.size <= MOST_KNOWN) return
      this.#known.delete(name)
    }
  }
}

type Text = string | ArrayBuffer
type GroupRow = readonly [first: number, last: number, id: number, text: Text | null]

/** Text as bytes where needed: the driver reads a text only up to its first NUL, and replaces lone surrogates. */
function encode(text: string): string | Uint8Array {
  return text.includes('\0') || !text.isWellFormed() ? Buffer.from(text, 'utf16le') : text
}

function decode(text: Text): string {
  return typeof text === 'string' ? text : Buffer.from(text).toString('utf16le')
}
