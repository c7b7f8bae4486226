import { fromBase64 } from '../protocol/base64.ts'
import { isRecord, parseJson } from '../protocol/json.ts'

/** One way to write base64url: a token that could be written twice could be revoked, and used in its other form. */
const PART = /^[A-Za-z0-9_-]+$/
/** What no letter at the end of a part may leave over: bits that decoders ignore. */
const LAST = ['', undefined, 'AQgw', 'AEIMQUYcgkosw048'] as const

/** True if a part of a compact JWS is base64url in the one form that encoders write. */
export function isCanonical(part: string): boolean {
  if (!PART.test(part)) return false
  const over = part.length % 4
  return over === 0 || (LAST[over]?.includes(part.at(-1) ?? '') ?? false)
}

/** The bytes of a part that is canonical. */
export function bytesOf(part: string): Uint8Array {
  return fromBase64(part.replaceAll('-', '+').replaceAll('_', '/'))
}

/** The JSON object in a part. Undefined: there is none. */
export function objectIn(part: string): Record<string, unknown> | undefined {
  try {
    const value = parseJson(new TextDecoder('utf-8', { fatal: true }).decode(bytesOf(part)))
    return isRecord(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** RFC 7515 §4.1.9: case does not count, and `application/` may be left out. */
export function bareType(typ: string): string {
  return typ.toLowerCase().replace(/^application\//, '')
}
