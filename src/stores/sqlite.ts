import { fdatasync, statSync } from 'node:fs'
import { setImmediate as turn } from 'node:timers/promises'
import { promisify } from 'node:util'
import { clocksOf, expiryClock, type Clocks } from '../core/basics/time.ts'
import type { Group, Kept, Operation, Store } from '../core/ports/store.ts'
import { UampError } from '../protocol/errors.ts'
import { Lists } from './sqlite-lists.ts'
import { type FdataSync, findMark, type Found, markReleased, StoreMark, WriteAheadLog } from './sqlite-log.ts'
import { CommitQueue, Staging } from './sqlite-queue.ts'
import { change, IndexCounts, Records } from './sqlite-records.ts'
import { type Admit, Connection, explain, errorCode, type Statement } from './sqlite-schema.ts'
import { Streams } from './sqlite-streams.ts'

/** How often a write also purges expired records and dropped streams, and how much one purge deletes. */
const PURGE_EVERY_MS = 10_000
const PURGE = { rows: 200, bytes: 1024 * 1024 }
/** How many groups a reader fetches at a time, and how many rows a scan does. */
const PAGE = 32
const REWRITE_BYTES = 64 * 1024 * 1024

export interface SqliteStoreOptions extends Partial<Clocks> {
  readonly path: string
  /** Gets errors that no caller waits for: those of purges and of copying the log. */
  readonly onError?: (error: unknown) => void
  /** Rewrite a file of version 0.1 up to this size when it is opened, so that it can shrink. Default: 64 MiB, which takes a second. */
  readonly rewriteBytes?: number
  /** Called at the start for each sign that data which the last process stored is missing. */
  readonly onLoss?: (loss: string) => void
  /** Throws to refuse the file before it is migrated or written. */
  readonly admit?: Admit
  /** For tests that need to delay or fail it. */
  readonly fdatasync?: FdataSync
}

/** A store in one file, which one process owns. Throws if the file cannot be opened. */
export function sqliteStore(options: SqliteStoreOptions): Store {
  const found = findMark(options.path)
  const { path, admit } = options
  const db = new Connection(path, (record) => {
    try {
      admit?.(record)
    } catch (thrown) {
      markReleased(path, found)
      throw thrown
    }
  })
  try {
    return storeOn(db, found, options)
  } catch (thrown) {
    // SQLite opens a damaged file if its first page is intact, so errors may show only here.
    throw explain(thrown, path)
  }
}

function storeOn(db: Connection, found: Found, options: SqliteStoreOptions): Store {
  const { onError = () => {}, onLoss = () => {}, rewriteBytes = REWRITE_BYTES } = options
  const clocks = clocksOf(options)
  const { monotonic } = clocks
  const mark = new StoreMark(db, found, onError)
  mark.losses.forEach(onLoss)
  try {
    if (!db.shrinks && db.bytes <= rewriteBytes) db.rewrite()
  } catch (thrown) {
    // The disk may have no room for the rewrite; the old file stays usable.
    onError(thrown)
  }
  const probe = new StoreProbe(db)
  const sync = options.fdatasync ?? promisify(fdatasync)
  const noted = (fd: number) => sync(fd).then(() => mark.note())
  const log = new WriteAheadLog(db, noted, () => mark.empty())
  const staging = new Staging()
  const streams = new Streams(db, staging)
  const times = { now: clocks.now, expiryTime: expiryClock(clocks) }
  const lists = new Lists(db, { ...times, read })
  const counts = new IndexCounts(db, read)
  const records = new Records(db, { ...times, staging, counts })
  const reload = (thrown: unknown) => {
    probe.note(thrown)
    streams.reload()
    records.reload()
  }
  const upkeep = () => (log.due ? log.checkpoint().catch(onError) : undefined)
  const flush = () => {
    records.flush()
    streams.flush()
  }
  const { durable, assertSound } = log
  const queue = new CommitQueue(db, { staging, flush, durable, assertSound, onRollback: reload, upkeep })

  let closing: Promise<void> | undefined
  let purgeAt = monotonic() + PURGE_EVERY_MS

  function assertOpen(): void {
    if (closing) throw new UampError('internal', 'The store is closed')
  }

  function write<T>(run: () => T, sync?: boolean): Promise<T> {
    assertOpen()
    if (monotonic() >= purgeAt) purge()
    return queue.write(run, sync)
  }

  /** Runs in a transaction, after all earlier writes are in the tables. */
  function transact<T>(run: () => T, sync?: boolean): Promise<T> {
    assertOpen()
    return queue.write(() => {
      flush()
      return run()
    }, sync)
  }

  /** Waits for queued writes, so that a caller reads its own writes. */
  function read<T>(run: () => T): T | Promise<T> {
    assertOpen()
    return queue.idle ? readNow(run) : transact(run)
  }

  /** As `read`, with the index of the streams brought up to date. */
  function readStream<T>(run: () => T): T | Promise<T> {
    assertOpen()
    if (queue.idle && !streams.behind) return readNow(run)
    return transact(() => {
      streams.index()
      return run()
    })
  }

  function readNow<T>(run: () => T): T {
    try {
      return run()
    } catch (thrown) {
      probe.note(thrown)
      throw thrown
    }
  }

  function purge(): void {
    purgeAt = monotonic() + PURGE_EVERY_MS
    const run = () => [records.purge(PURGE), streams.purge(PURGE)].includes(true)
    transact(run).then((more) => {
      if (more) purgeAt = monotonic()
    }, onError)
  }

  async function tidy(): Promise<boolean> {
    assertOpen()
    const purged = await transact(() => [records.purge(PURGE), streams.purge(PURGE)].includes(true))
    if (purged || (await transact(() => db.shrink()))) return true
    if (!db.scrub) return false
    db.scrub = false
    log.scrub()
    await queue.write(() => undefined)
    await log.copied
    return false
  }

  /** All rows, page by page, with a turn of the event loop after each page. */
  async function* pages(page: (after: number) => Promise<{ readonly id: number; readonly kept: Kept }[]>): AsyncGenerator<Kept, void> {
    for (let after = 0; ;) {
      const rows = await page(after)
      for (const { kept } of rows) yield kept
      after = rows.at(-1)?.id ?? 0
      if (rows.length < PAGE) return
      await turn()
    }
  }

  /** Checks and serialises the operation now; the returned function applies it. */
  function prepare(operation: Operation): () => unknown {
    switch (operation.op) {
      case 'set': {
        const set = change(operation.key, operation.value, operation.options)
        return () => records.set(set)
      }
      case 'delete':
        return () => records.delete(operation.key, operation.ifVersion)
      case 'append':
        return append(operation.stream, operation.group, operation.expected)
      case 'drop':
        return () => streams.drop(operation.stream)
    }
  }

  function append(stream: string, group: Group, expected: number | undefined): () => void {
    const { first, last } = group
    if (!Number.isSafeInteger(last) || !Number.isSafeInteger(first) || first < 1 || last < first) {
      throw new UampError('invalid_request', `A group cannot have the positions ${first} to ${last}`)
    }
    return () => streams.append(stream, group, expected)
  }

  async function shut(): Promise<void> {
    try {
      await transact(() => streams.index())
    } finally {
      await log.close(() => mark.close(() => db.close()))
    }
  }

  return {
    async append(stream, group, { expected, sync } = {}) {
      await write(append(stream, group, expected), sync)
    },
    async *read(stream, { after = 0, limit = Infinity } = {}) {
      let position = after
      for (let left = limit; left > 0;) {
        const [from, most] = [position, Math.min(PAGE, left)]
        const { groups, more } = await readStream(() => streams.page(stream, from, most))
        yield* groups
        if (!more) return
        position = groups.at(-1)?.last ?? position
        left -= groups.length
        await turn()
      }
    },
    last: async (stream) => readStream(() => streams.last(stream)),
    async drop(stream) {
      await write(() => streams.drop(stream))
    },
    get: async (key) => read(() => records.get(key)),
    async set(key, value, { sync, ...conditions } = {}) {
      const set = change(key, value, conditions)
      return write(() => records.set(set), sync)
    },
    async delete(key) {
      await write(() => records.delete(key))
    },
    list: (index, page) => lists.list(index, page),
    count: (index, options) => counts.count(index, options?.from),
    keys: async (index, page) => read(() => lists.keys(index, page)),
    async *scan() {
      yield* pages(async (after) => read(() => records.scan(after, PAGE)))
      yield* pages(async (after) => transact(() => streams.scan(after, PAGE)))
    },
    bytes: async () => read(() => db.bytes),
    tidy,
    async batch(operations, { sync } = {}) {
      const steps = operations.map(prepare)
      await write(() => staging.atomically(steps), sync)
    },
    async probe() {
      assertOpen()
      probe.assertSound()
      await transact(probe.write, true)
    },
    close: () => (closing ??= shut()),
  }
}

/** How much the probe writes: if this fits, a client's small message fits, too. */
const PROBE_BYTES = 16 * 1024

/** Finds out whether the store would keep what is written now. */
class StoreProbe {
  readonly #files: readonly { readonly path: string; readonly inode: bigint | undefined }[]
  readonly #write: Statement
  #damage: unknown

  constructor(db: Connection) {
    this.#files = [db.path, `${db.path}-wal`].map((path) => ({ path, inode: inodeOf(path) }))
    // The mark is no client's data, and each one replaces the one before.
    this.#write = db.command(`INSERT OR REPLACE INTO marks VALUES ('probe', randomblob(${PROBE_BYTES}))`)
  }

  /** Remembers that a page could not be read: other pages still can, but its data is lost until somebody repairs the file. */
  readonly note = (thrown: unknown): void => {
    const code = errorCode(thrown)
    if (code === 'SQLITE_CORRUPT' || code === 'SQLITE_NOTADB') this.#damage ??= thrown
  }

  /** Throws if writes would be lost although they succeed: SQLite keeps writing to a deleted file. */
  assertSound(): void {
    if (this.#damage !== undefined) throw new UampError('internal', 'The database is damaged', { cause: this.#damage })
    const gone = this.#files.find(({ path, inode }) => inode !== undefined && inodeOf(path) !== inode)
    if (gone) throw new UampError('internal', `${gone.path} was deleted or replaced while the server has it open`)
  }

  /** Runs inside a transaction of the queue. */
  readonly write = (): void => {
    this.#write.run([])
  }
}

function inodeOf(path: string): bigint | undefined {
  return statSync(path, { bigint: true, throwIfNoEntry: false })?.ino
}
