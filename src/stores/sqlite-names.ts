import { UampError } from '../protocol/errors.ts'

/** With NUL or half a surrogate pair two different names would be one to the driver. */
export function checkName(name: string): void {
  if (name.includes('\0') || !name.isWellFormed()) {
    throw new UampError('invalid_request', 'A name must not contain NUL or half a surrogate pair')
  }
}
