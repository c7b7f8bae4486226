import { UampError } from '../protocol/errors.ts'

const UNSAFE = /[\0\p{Surrogate}]/u

/** With these characters two different names would be one to the driver. */
export function checkName(name: string): void {
  if (UNSAFE.test(name)) throw new UampError('invalid_request', 'A name must not contain NUL or half a surrogate pair')
}
