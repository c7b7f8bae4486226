import { existsSync, mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { UampError } from '../protocol/errors.ts'

/** With all above it. Not by Node's `recursive`: that goes round for ever where a folder cannot be made in one that is there, as in /proc. */
export function makeFolder(folder: string): void {
  if (existsSync(folder)) return
  const parent = dirname(folder)
  if (parent !== folder) makeFolder(parent)
  try {
    mkdirSync(folder, { mode: 0o700 })
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException
    // Another process was first; what is not a folder shows when a file is opened in it.
    if (code === 'EEXIST') return
    throw new UampError('forbidden', `The folder ${folder} cannot be made (${code}): choose another data folder`, { cause })
  }
}
