import { closeSync, fstatSync, openSync } from 'node:fs'
import { UampError } from '../protocol/errors.ts'
import type { Connection } from './sqlite-schema.ts'

/** How many bytes are committed before the log is copied into the database. The copy blocks the event loop for about 2 ms per MiB. */
const CHECKPOINT_BYTES = 2 * 1024 * 1024

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
