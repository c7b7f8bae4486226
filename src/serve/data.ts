import { existsSync, mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { assertKey, SEALED_WITH } from '../core/durable/check-key.ts'
import type { Blobs } from '../core/ports/blobs.ts'
import type { Keys } from '../core/ports/keys.ts'
import type { Store } from '../core/ports/store.ts'
import type { Logger } from '../core/ports/transport.ts'
import { UampError } from '../protocol/errors.ts'
import { fileBlobs } from '../stores/file-blobs.ts'
import { fileKeys, findKeys, passingKeys } from '../stores/file-keys.ts'
import { memoryBlobs } from '../stores/memory-blobs.ts'
import { memoryStore } from '../stores/memory.ts'
import { checkFolder } from '../stores/sqlite-folder.ts'
import { errorCode, explain } from '../stores/sqlite-schema.ts'
import { sqliteStore } from '../stores/sqlite.ts'

/** Rejects where a data folder cannot be used. SQLite would block the process on a file system that does not answer. */
export async function checkData(data: string): Promise<void> {
  if (data !== 'memory') await checkFolder(databaseIn(data))
}

export interface OpenDataOptions {
  readonly log: Logger
  /** The bound of a memory store, which removes old sessions only now and then. */
  readonly mostBytes: number
}

/** Opens a data folder, or what replaces one in memory. */
export function openData(data: string, { log, mostBytes }: OpenDataOptions): { readonly store: Store; readonly keys: Keys } {
  if (data === 'memory') return { store: memoryStore({ mostBytes }), keys: passingKeys() }
  makeFolder(data)
  const place = { path: join(data, 'uamp.key'), key: process.env['UAMP_KEY'] }
  let keys = findKeys(place)
  const store = sqliteStore({
    path: databaseIn(data),
    onError: (error) => log('error', 'The store could not tidy up', { error }),
    onLoss: (loss) => log('error', `Data is missing: ${loss}`),
    admit(record) {
      const sealed = record(SEALED_WITH)
      if (sealed !== undefined) assertKey(JSON.parse(sealed), keys)
      keys ??= fileKeys(place)
    },
  })
  return { store, keys: keys ?? fileKeys(place) }
}

export function openBlobs(data: string): Blobs {
  return data === 'memory' ? memoryBlobs() : fileBlobs({ path: join(data, 'blobs') })
}

/** Adds the file and the remedy to an error of SQLite, which names neither. */
export function explainStart(thrown: unknown, data: string): unknown {
  const cause = thrown instanceof UampError ? thrown.cause : thrown
  return data !== 'memory' && errorCode(cause)?.startsWith('SQLITE') ? explain(cause, databaseIn(data)) : thrown
}

function databaseIn(data: string): string {
  return join(data, 'uamp.db')
}

/** Makes a folder and its parents. Node's `recursive` never returns where a parent exists but takes no folders, such as /proc. */
function makeFolder(folder: string): void {
  if (existsSync(folder)) return
  const parent = dirname(folder)
  if (parent !== folder) makeFolder(parent)
  try {
    mkdirSync(folder, { mode: 0o700 })
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException
    // Another process made it first. If it is not a folder, opening a file in it fails.
    if (code === 'EEXIST') return
    throw new UampError('forbidden', `The folder ${folder} cannot be made (${code}): choose another data folder`, { cause })
  }
}
