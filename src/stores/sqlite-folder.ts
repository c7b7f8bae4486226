import { constants } from 'node:fs'
import { access, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { UampError } from '../protocol/errors.ts'
import { errorCode, explain } from './sqlite-schema.ts'

/** How long a file system may take to stat a few files. */
const DEADLINE_MS = 5_000
/** The endings of the database's files. */
const ENDINGS = ['', '-wal', '-journal', '-shm', '-mark']

type Look = (path: string) => Promise<{ isFile(): boolean; isDirectory(): boolean }>

export interface FolderOptions {
  readonly deadlineMs?: number
  /** For tests of a file system that never answers. */
  readonly look?: Look
}

/**
 * Throws if SQLite cannot work in a folder. SQLite itself would wait forever for a network file system whose server is gone, or for a
 * writer of a named pipe, and block the process meanwhile. Creates nothing.
 */
export async function checkFolder(path: string, { deadlineMs = DEADLINE_MS, look = stat }: FolderOptions = {}): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    const what = `The file system of ${dirname(path)} does not answer`
    const error = new UampError('timeout', `${what}: check that it is mounted and that its server runs, or choose another data folder`)
    timer = setTimeout(() => reject(error), deadlineMs)
  })
  await Promise.race([inspect(path, look), late]).finally(() => clearTimeout(timer))
}

async function inspect(path: string, look: Look): Promise<void> {
  const folder = dirname(path)
  try {
    const found = await look(folder)
    if (!found.isDirectory()) throw new UampError('invalid_request', `${folder} is not a folder: choose another data folder`)
    await access(folder, constants.W_OK | constants.X_OK)
    for (const end of ENDINGS) await assertFile(path + end, look)
  } catch (thrown) {
    // A missing folder will be created.
    if (errorCode(thrown) !== 'ENOENT') throw explain(thrown, path)
  }
}

async function assertFile(path: string, look: Look): Promise<void> {
  const found = await look(path).catch((thrown: unknown) => {
    if (errorCode(thrown) !== 'ENOENT') throw thrown
  })
  if (found && !found.isFile()) throw new UampError('invalid_request', `${path} is not a file: move it away, or choose another data folder`)
}
