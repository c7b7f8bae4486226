import { UampError } from '../protocol/errors.ts'

/** To the driver, two different names with NUL or half a surrogate pair may be the same. */
export function checkName(name: string): void {
  if (name.includes('\0') || !name.isWellFormed()) {
    throw new UampError('invalid_request', 'A name must not contain NUL or half a surrogate pair')
  }
}
