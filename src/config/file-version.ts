import { statSync } from 'node:fs'

/** Changes whenever the file does, also if another one took its place. */
export function fileVersion(file: string): string {
  const { mtimeMs, size, ino } = statSync(file, { throwIfNoEntry: false }) ?? { mtimeMs: 0, size: -1, ino: 0 }
  return `${mtimeMs} ${size} ${ino}`
}
