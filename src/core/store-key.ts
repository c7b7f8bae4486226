/** A key of the store, from its parts. Ids of clients may be any text, also one that cannot be encoded (a lone surrogate). */
export function storeKey(...parts: readonly string[]): string {
  return parts.map((part) => encodeURIComponent(part.toWellFormed())).join('/')
}
