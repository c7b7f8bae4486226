/** What `encodeURIComponent` leaves as it is, as far as our own ids go. */
const PLAIN = /^[\w.-]*$/

/** A key of the store, from its parts. Ids of clients may be any text, also one that cannot be encoded (a lone surrogate). */
export function storeKey(first: string, ...parts: readonly string[]): string {
  let key = encoded(first)
  for (const part of parts) key += `/${encoded(part)}`
  return key
}

/** The first part of a key. */
export function tenantIn(key: string): string {
  return decodeURIComponent(key.slice(0, key.indexOf('/')))
}

/** The list of what protocols keep about a session: it goes with the session. Names of sessions were the first in it. */
export function goesWith(tenant: string, session: string): string {
  return storeKey(tenant, 'aliases', session)
}

function encoded(part: string): string {
  return PLAIN.test(part) ? part : encodeURIComponent(part.toWellFormed())
}
