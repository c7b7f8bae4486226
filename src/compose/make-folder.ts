import { existsSync, mkdirSync } from 'node:fs'
import { dirname } from 'node:path'

/** Makes a folder, and those above it. Node's own `recursive` never ends where a file system lets nobody make one, as /proc does. */
export function makeFolder(path: string): void {
  try {
    mkdirSync(path, { mode: 0o700 })
  } catch (thrown) {
    const { code } = thrown as NodeJS.ErrnoException
    if (code === 'EEXIST') return
    const above = dirname(path)
    if (code !== 'ENOENT' || existsSync(above)) throw thrown
    makeFolder(above)
    makeFolder(path)
  }
}
