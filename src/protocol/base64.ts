import { joinedBytes } from './bytes.ts'

const LETTERS = new TextEncoder().encode('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/')
const PADDING = '='.charCodeAt(0)

/** Uses a table, because `btoa` needs the bytes as a string first, which takes twenty times as long. */
export function base64(bytes: Uint8Array): string {
  const text = new Uint8Array(Math.ceil(bytes.length / 3) * 4)
  for (let from = 0, to = 0; from < bytes.length; from += 3, to += 4) {
    // Bytes beyond the end count as zero: `undefined` becomes 0 when it is shifted.
    const group = ((bytes[from] as number) << 16) | ((bytes[from + 1] as number) << 8) | (bytes[from + 2] as number)
    text[to] = LETTERS[group >> 18] as number
    text[to + 1] = LETTERS[(group >> 12) & 63] as number
    text[to + 2] = LETTERS[(group >> 6) & 63] as number
    text[to + 3] = LETTERS[group & 63] as number
  }
  const missing = (3 - (bytes.length % 3)) % 3
  return new TextDecoder().decode(text.fill(PADDING, text.length - missing))
}

/** The form for URLs, without padding (RFC 4648 §5). */
export function base64Url(bytes: Uint8Array): string {
  return base64(bytes).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '')
}

/** Throws if the text is not base64. */
export function fromBase64(text: string): Uint8Array {
  const binary = atob(text)
  const bytes = new Uint8Array(binary.length)
  for (let at = 0; at < binary.length; at++) bytes[at] = binary.charCodeAt(at)
  return bytes
}

/** Undefined if the text is not base64. */
export function bytesIn(text: string): Uint8Array | undefined {
  try {
    return fromBase64(text)
  } catch {
    return undefined
  }
}

/**
 * Joins texts of base64. It decodes them only if one before the last is padded, and throws if they are not base64 then.
 */
export function joinBase64(pieces: readonly string[]): string {
  const runs: string[] = []
  let run: string[] = []
  for (const piece of pieces) {
    run.push(piece)
    if (!piece.endsWith('=')) continue
    runs.push(run.join(''))
    run = []
  }
  if (run.length > 0) runs.push(run.join(''))
  return runs.length > 1 ? base64(joinedBytes(runs.map(fromBase64))) : (runs[0] ?? '')
}

/** True if the text may be base64, or its form for URLs, alone or in a `data:` URL. */
export function isBase64(text: string): boolean {
  return /^(?:data:[^,]*;base64,)?[A-Za-z0-9+/_-]*={0,2}$/.test(text)
}
