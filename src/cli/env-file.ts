import { readFileSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { parseEnv } from 'node:util'
import { shown } from '../config/shown.ts'
import { UampError } from '../protocol/errors.ts'

/** Reads `.env` beside a file, or in a folder, and then in the working folder. What is set already stays, even if it is empty. */
export function loadEnvFiles(beside = '.', env: NodeJS.ProcessEnv = process.env): void {
  const folder = statSync(beside, { throwIfNoEntry: false })?.isDirectory() ? beside : dirname(beside)
  for (const each of new Set([resolve(folder), resolve('.')]))
    for (const [name, value] of Object.entries(read(join(each, '.env')))) env[name] ??= value
}

function read(file: string): NodeJS.Dict<string> {
  // A folder of this name holds a Python environment.
  if (!statSync(file, { throwIfNoEntry: false })?.isFile()) return {}
  try {
    return parseEnv(readFileSync(file, 'utf8').replace(/^\uFEFF/, ''))
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException
    const why = code === 'EACCES' ? 'its permissions forbid it; `chmod u+r` allows it' : message
    throw new UampError('invalid_request', `${shown(file)} cannot be read: ${why}`, { cause })
  }
}
