/** A key of the store, from its parts. Ids of clients may be any text, also one that cannot be encoded (a lone surrogate). */
export function storeKey(...parts: readonly string[]): string {
  return parts.map((part) => encodeURIComponent(part.toWellFormed())).join('/')
}

/** The list of what protocols keep about a session: it goes with the session. Names of sessions were the first in it. */
export function goesWith(tenant: string, session: string): string {
  return storeKey(tenant, 'aliases', session)
}
