/** Shows whether a text has changed (FNV-1a, twice). Not for security: another text with the same print is easy to find. */
export function fingerprint(text: string): string {
  let one = 0x811c9dc5
  let two = 0x9747b28c
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    one = Math.imul(one ^ code, 0x01000193)
    two = Math.imul(two ^ code, 0x85ebca6b)
    two ^= two >>> 13
  }
  return (one >>> 0).toString(36) + (two >>> 0).toString(36)
}
