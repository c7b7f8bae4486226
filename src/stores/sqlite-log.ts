import { closeSync, constants, fstatSync, openSync, readFileSync, readSync, writeSync } from 'node:fs'
import { UampError } from '../protocol/errors.ts'
import type { Connection, Statement } from './sqlite-schema.ts'

/** How many bytes are committed before the log is copied into the database. The copy blocks the event loop for about 2 ms per MiB. */
const CHECKPOINT_BYTES = 2 * 1024 * 1024
/** Least time between two marks, because syncs may come by the thousand. */
const MARK_EVERY_MS = 50
/** All marks have this length, so that writing one needs no new disk space and leaves nothing of the one before. */
const MARK_BYTES = 256

interface Descriptor {
  readonly fd: number
  /** False for file systems that report 0 links for every file. */
  readonly countsLinks: boolean
}

export type FdataSync = (fd: number) => Promise<void>

/**
 * Syncs the write-ahead log and copies it into the database. SQLite would wait for the disk in the event loop; here libuv's thread
 * pool waits, through descriptors of our own.
 */
export class WriteAheadLog {
  readonly #db: Connection
  readonly #fdatasync: FdataSync
  readonly #onEmpty: () => void
  readonly #descriptors = new Map<string, Descriptor>()
  #running: Promise<void> = Promise.resolve()
  #next: Promise<void> | undefined
  #checkpoint: Promise<void> = Promise.resolve()
  #failure: UampError | undefined
  #scrubs = false

  /** `onEmpty` is called before the log is emptied. */
  constructor(db: Connection, fdatasync: FdataSync, onEmpty: () => void) {
    this.#db = db
    this.#fdatasync = fdatasync
    this.#onEmpty = onEmpty
  }

  /**
   * Resolves when everything committed before the call would survive a loss of power. Only one sync runs at a time; callers that come
   * meanwhile share the next, because the running one may have begun before their commit.
   */
  readonly durable = (): Promise<void> => (this.#next ??= this.#after(this.#running))

  /**
   * Throws after a failed sync. The kernel reports a lost page only once, so a later sync that succeeds would prove nothing. Nothing
   * is written any more, and a restart finds what the log still holds.
   */
  readonly assertSound = (): void => {
    if (this.#failure) throw this.#failure
  }

  get due(): boolean {
    return this.#db.written > CHECKPOINT_BYTES || this.#scrubs
  }

  /** Makes a checkpoint due at once, and lets it empty the log. */
  scrub(): void {
    this.#scrubs = true
  }

  /** The running checkpoint, or the last one. */
  get copied(): Promise<void> {
    return this.#checkpoint
  }

  /**
   * Copies the log into the database. Nobody may commit until it settles. SQLite's own syncs are off only during the copy, and ours
   * replace them: the log is synced before the first page is copied, and the database before a commit can restart the log.
   */
  checkpoint(): Promise<void> {
    const scrubs = this.#scrubs
    this.#db.written = 0
    this.#scrubs = false
    this.#checkpoint = this.durable().then(async () => {
      this.#db.copyLog()
      await this.#sync('')
      if (!scrubs) return
      this.#onEmpty()
      this.#db.emptyLog()
    })
    return this.#checkpoint
  }

  /** Waits for running syncs and copies; then `release` closes the database. */
  async close(release: () => void): Promise<void> {
    await Promise.allSettled([this.#checkpoint, this.#next, this.#running])
    try {
      if (!this.#failure) release()
    } finally {
      // Not earlier: closing any descriptor of a file drops all locks that the process has on it.
      for (const { fd } of this.#descriptors.values()) closeSync(fd)
    }
  }

  async #after(running: Promise<void>): Promise<void> {
    await running.catch(() => {})
    this.#running = this.#sync('-wal')
    this.#next = undefined
    return this.#running
  }

  async #sync(file: '' | '-wal'): Promise<void> {
    this.assertSound()
    try {
      await this.#fdatasync(this.#descriptor(this.#db.path + file).fd)
      this.#assertLinked()
    } catch (thrown) {
      this.#failure = new UampError('internal', 'The disk failed: nothing is stored until the server is started again', { cause: thrown })
      throw this.#failure
    }
  }

  /** Throws if a file was deleted, because its data is then lost with the process. */
  #assertLinked(): void {
    for (const path of [this.#db.path, `${this.#db.path}-wal`]) {
      const { fd, countsLinks } = this.#descriptor(path)
      if (countsLinks && fstatSync(fd).nlink === 0) throw new Error(`${path} was deleted while the server has it open`)
    }
  }

  /** Both files exist: a sync follows a commit, and SQLite keeps the log until the database is closed. */
  #descriptor(path: string): Descriptor {
    let descriptor = this.#descriptors.get(path)
    if (!descriptor) {
      const fd = openSync(path, 'r+')
      descriptor = { fd, countsLinks: fstatSync(fd).nlink > 0 }
      this.#descriptors.set(path, descriptor)
    }
    return descriptor
  }
}

/** Where the write-ahead log ends. SQLite chooses a new salt each time it restarts the log. */
interface LogEnd {
  readonly salt: string
  readonly bytes: number
}

interface Progress {
  /** `closing`: the log may or may not exist. */
  readonly state: 'open' | 'closing' | 'closed'
  /** The `version` mark of the database. It never falls, and is 0 only in a new database. */
  readonly counter: number
  readonly log: LogEnd
}

/**
 * Notes in a file beside the database how far the store has come. SQLite silently opens a database whose log was lost, cut short or
 * never copied, and acknowledged data is gone; the mark reveals that. It is written after a sync of the log, but never synced itself,
 * so nobody waits for it. After a loss of power it may be too old: it may then miss a loss, but it never reports a false one.
 */
export class StoreMark {
  readonly #path: string
  readonly #counter: Statement
  readonly #onError: (error: unknown) => void
  #last: string | undefined
  #timer: NodeJS.Timeout | undefined
  #again = false
  #over = false

  /** Sentences for the operator about data of the last process that is missing. */
  readonly losses: readonly string[]

  /** `found` must be read before the database is opened, because SQLite then creates a missing log. */
  constructor(db: Connection, found: Found, onError: (error: unknown) => void) {
    this.#path = db.path
    this.#counter = db.query(`SELECT value FROM marks WHERE name = 'version'`)
    this.#onError = onError
    const { counter } = this.#now('open')
    this.losses = lossesOf(this.#path, found, counter)
    this.#write('open')
  }

  /** Called when the log has grown. */
  note(): void {
    if (this.#over) return
    if (this.#timer) {
      this.#again = true
      return
    }
    this.#write('open')
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      if (this.#again) this.note()
      this.#again = false
    }, MARK_EVERY_MS).unref()
  }

  /** Called before the log is emptied, so that an empty log does not count as a loss. */
  empty(): void {
    this.#put({ ...this.#now('open'), log: { salt: '', bytes: 0 } })
  }

  /** Writes the last marks around `release`, which closes the database. */
  close(release: () => void): void {
    this.#over = true
    clearTimeout(this.#timer)
    const { counter, log } = this.#write('closing')
    release()
    this.#put({ state: 'closed', counter, log })
  }

  #write(state: Progress['state']): Progress {
    const progress = this.#now(state)
    this.#put(progress)
    return progress
  }

  #now(state: Progress['state']): Progress {
    return { state, counter: (this.#counter.get([]) as [number])[0], log: logEnd(`${this.#path}-wal`) }
  }

  #put(progress: Progress): void {
    const text = textOf(progress)
    if (text === this.#last) return
    try {
      writeMark(this.#path, text)
      this.#last = text
    } catch (thrown) {
      // A store works without a mark, and a full disk shows elsewhere.
      this.#onError(thrown)
    }
  }
}

function textOf(progress: Progress): string {
  return `${JSON.stringify(progress).padEnd(MARK_BYTES - 1)}\n`
}

function writeMark(path: string, text: string): void {
  const file = openSync(`${path}-mark`, constants.O_RDWR | constants.O_CREAT, 0o600)
  try {
    writeSync(file, text, 0)
  } finally {
    closeSync(file)
  }
}

/** Called before a database is closed unused: SQLite then copies the log that a crash has left, and deletes it. */
export function markReleased(path: string, { mark, log }: Found): void {
  if (mark && log.bytes > 0) writeMark(path, textOf({ ...mark, state: 'closing' }))
}

/** What the previous process left. */
export interface Found {
  /** Undefined for a store of an earlier version, and for a mark that a loss of power broke. */
  readonly mark: Progress | undefined
  readonly log: LogEnd
}

export function findMark(path: string): Found {
  const log = logEnd(`${path}-wal`)
  try {
    return { mark: JSON.parse(readFileSync(`${path}-mark`, 'utf8')) as Progress, log }
  } catch {
    return { mark: undefined, log }
  }
}

function lossesOf(path: string, { mark, log }: Found, counter: number): string[] {
  if (!mark) return []
  const losses: string[] = []
  if (counter < mark.counter) {
    const is = counter === 0 ? 'is empty, and was not' : 'is older than'
    losses.push(`${path} ${is} when the server last ran: what was stored since is missing`)
  }
  const wasCut = log.bytes === 0 || (log.salt === mark.log.salt && log.bytes < mark.log.bytes)
  if (mark.state === 'open' && mark.log.bytes > 0 && wasCut) {
    const is = log.bytes === 0 ? 'is missing' : `has ${log.bytes} bytes, and had ${mark.log.bytes}`
    losses.push(`${path}-wal ${is}: the server was not shut down, and what it stored last was in there`)
  }
  return losses
}

/** The header of a write-ahead log has its salt in the bytes 16 to 23 (SQLite file format §4.1). */
function logEnd(path: string): LogEnd {
  let fd: number | undefined
  try {
    fd = openSync(path, 'r')
    const header = new Uint8Array(32)
    const read = readSync(fd, header, 0, header.length, 0)
    return { salt: Buffer.from(header.subarray(16, 24)).toString('hex'), bytes: read < header.length ? 0 : fstatSync(fd).size }
  } catch {
    return { salt: '', bytes: 0 }
  } finally {
    if (fd !== undefined) closeSync(fd)
  }
}
