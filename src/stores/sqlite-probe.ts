import { statSync } from 'node:fs'
import { UampError } from '../protocol/errors.ts'
import { type Connection, errorCode, type Statement } from './sqlite-schema.ts'

/** How much the probe writes: if this fits, a client's small message fits, too. */
const PROBE_BYTES = 16 * 1024

/** Finds out whether the store would keep what is written now. */
export class StoreProbe {
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
