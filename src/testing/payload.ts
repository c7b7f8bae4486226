import { base64, fromBase64 } from '../protocol/base64.ts'
import type { Payload } from './recording.ts'

/** Text where it can be read back byte for byte, base64 else. */
export function toPayload(bytes: string | Uint8Array | undefined): Payload {
  if (bytes === undefined) return {}
  if (typeof bytes === 'string') return { text: bytes }
  try {
    return { text: new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes) }
  } catch {
    return { base64: base64(bytes) }
  }
}

export function fromPayload({ text, base64: encoded }: Payload): Uint8Array {
  return encoded === undefined ? new TextEncoder().encode(text ?? '') : fromBase64(encoded)
}
