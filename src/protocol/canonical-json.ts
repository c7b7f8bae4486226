/** One text for one value (RFC 8785): members sorted by UTF-16 code units at every depth, and no white space. What JSON lacks is left out. */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null'
  const members: string[] = []
  for (const name of Object.keys(value).sort()) {
    const member = (value as Readonly<Record<string, unknown>>)[name]
    if (member !== undefined) members.push(`${JSON.stringify(name)}:${canonicalJson(member)}`)
  }
  return `{${members.join(',')}}`
}

/** The SHA-256 of a text in UTF-8, in hexadecimal digits. Large texts are hashed outside of the event loop. */
export async function sha256(text: string): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text)))
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, '0')).join('')
}

export function hashJson(value: unknown): Promise<string> {
  return sha256(canonicalJson(value))
}
