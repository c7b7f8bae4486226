import { UampError } from '../../protocol/errors.ts'
import { parseJson } from '../../protocol/json.ts'

/** Texts that `encodeURIComponent` does not change: our own ids skip the call. */
const PLAIN = /^[\w.-]*$/

/** Joins parts to a key of the store. Ids of clients may be any text, even one that cannot be encoded (a lone surrogate). */
export function storeKey(first: string, ...parts: readonly string[]): string {
  let key = encoded(first)
  for (const part of parts) key += `/${encoded(part)}`
  return key
}

/** The first part of a key. */
export function tenantIn(key: string): string {
  return decodeURIComponent(key.slice(0, key.indexOf('/')))
}

/** The last part of a key. */
export function idIn(key: string): string {
  return decodeURIComponent(key.slice(key.lastIndexOf('/') + 1))
}

/** The index of records that are deleted with a session. It is called `aliases` because it first held only these. */
export function goesWith(tenant: string, session: string): string {
  return storeKey(tenant, 'aliases', session)
}

function encoded(part: string): string {
  return PLAIN.test(part) ? part : encodeURIComponent(part.toWellFormed())
}

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
