import { UampError } from '../protocol/errors.ts'
import { parseJson } from '../protocol/json.ts'

/** To the driver, two different names with NUL or half a surrogate pair may be the same. */
export function checkName(name: string): void {
  if (name.includes('\0') || !name.isWellFormed()) {
    throw new UampError('invalid_request', 'A name must not contain NUL or half a surrogate pair')
  }
}

/** The place in a list that a cursor names. */
export function parseCursor(after: string): [sort: string, key: string] {
  try {
    const [sort, key] = parseJson(after) as unknown[]
    if (typeof sort === 'string' && typeof key === 'string') return [sort, key]
  } catch {}
  throw new UampError('invalid_request', 'The cursor is not one of this list')
}
