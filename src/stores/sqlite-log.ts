import { closeSync, fstatSync, openSync } from 'node:fs'
import { UampError } from '../protocol/errors.ts'
import type { Connection } from './sqlite-schema.ts'

/** Bytes committed before the log is copied into the database: the copy holds the event loop, about 2 ms per MiB. */
const CHECKPOINT_BYTES = 2 * 1024 * 1024

interface Descriptor {
  readonly fd: number
  /** Some file systems say 0 of every file. */
  readonly countsLinks: boolean
}

export type FdataSync = (fd: number) => Promise<void>

/**
 * When the log is durable, and when it is copied into the database. SQLite would wait for the disk in the event loop; here the
 * waiting is done in libuv's pool, through descriptors of our own.
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
   * Resolves when everything committed before the call would survive a loss of power. At most one sync runs; those who come
   * meanwhile share the next, for the running one may have begun before their commit.
   */
  readonly durable = (): Promise<void> => (this.#next ??= this.#after(this.#running))

  /**
   * The kernel reports a lost page once; a later sync that succeeds would prove nothing. So after a failed one nothing is written
   * any more, and what the log holds is left for a restart to find.
   */
  readonly assertSound = (): void => {
    if (this.#failure) throw this.#failure
  }

  get due(): boolean {
    return this.#db.written > CHECKPOINT_BYTES || this.#scrubs
  }

  /** The next checkpoint does not wait for more to be written, and leaves nothing in the log. */
  scrub(): void {
    this.#scrubs = true
  }

  /** The checkpoint that runs, or the last one. */
  get copied(): Promise<void> {
    return this.#checkpoint
  }

  /**
   * Nobody may commit until it has settled. SQLite's own syncs are off only while it copies, and ours stand in for them: the log
   * is on the disk before the first page is copied, and the database before a commit can begin the log anew.
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

  /** Waits for the disk; then `release` gives back the database's lock. */
  async close(release: () => void): Promise<void> {
    await Promise.allSettled([this.#checkpoint, this.#next, this.#running])
    try {
      if (!this.#failure) release()
    } finally {
      // Not before: to close any descriptor of a file drops all locks that the process has on it.
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

  /** What is on the disk of a file that was deleted is lost with the process. */
  #assertLinked(): void {
    for (const path of [this.#db.path, `${this.#db.path}-wal`]) {
      const { fd, countsLinks } = this.#descriptor(path)
      if (countsLinks && fstatSync(fd).nlink === 0) throw new Error(`${path} was deleted while the server has it open`)
    }
  }

  /** Both files are there: who wants a sync has committed, and SQLite keeps the log until it is closed. */
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
