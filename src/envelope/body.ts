import { base64, bytesIn } from '../protocol/base64.ts'
import { joinedBytes } from '../protocol/bytes.ts'
import { envelopeError } from './codes.ts'
import type { Body } from './schema.ts'

/** How many times as large as it came a body may become. */
const RATIO = 100

export interface OpenOptions {
  /** The most bytes of a body when it is unpacked. */
  readonly maxBytes: number
  /** Unpacks brotli, which not every runtime can. Rejects with a `RangeError` beyond `maxBytes`. Default: such bodies are refused. */
  readonly brotli?: ((packed: Uint8Array, maxBytes: number) => Promise<Uint8Array>) | undefined
}

/**
 * What a body holds, as bytes. Call it once the signature is verified: nothing that a stranger packed is unpacked. Throws `4.13` where it
 * becomes too large, and `4.15` where it is written in a way that is not known.
 */
export async function openBody({ content, encoding = 'utf-8', compression = 'none' }: Body, options: OpenOptions): Promise<Uint8Array> {
  const bytes = decoded(content, encoding, options.maxBytes)
  if (compression === 'none') return within(bytes, options.maxBytes)
  if (encoding === 'utf-8') throw envelopeError('4.00', 'A compressed body must be base64 or base64url', 'encoding')
  const most = Math.min(options.maxBytes, bytes.length * RATIO)
  if (compression === 'gzip') return unpacked(gunzip(bytes, most))
  if (compression === 'br' && options.brotli) return unpacked(options.brotli(bytes, most))
  throw envelopeError('4.15', `The compression "${compression.slice(0, 32)}" is not supported`, 'compression')
}

/** A body for bytes, or for a text as it is. Half of a surrogate pair, as at the end of a text that was cut, is no text and is replaced. */
export function bodyOf(type: string, content: string | Uint8Array): Body {
  return typeof content === 'string' ? { type, content: content.toWellFormed() } : { type, content: base64(content), encoding: 'base64' }
}

function decoded(content: string, encoding: string, maxBytes: number): Uint8Array {
  // Not even base64 has more than four letters for three bytes.
  if (content.length > maxBytes * 2 + 4) throw tooLarge()
  if (encoding === 'utf-8') return new TextEncoder().encode(content)
  const isUrl = encoding === 'base64url'
  if (!isUrl && encoding !== 'base64') throw envelopeError('4.15', `The encoding "${encoding.slice(0, 32)}" is not supported`, 'encoding')
  const hasRightLetters = isUrl ? /^[\w-]*$/.test(content) : /^[A-Za-z0-9+/]*={0,2}$/.test(content)
  const bytes = hasRightLetters ? bytesIn(isUrl ? content.replaceAll('-', '+').replaceAll('_', '/') : content) : undefined
  if (!bytes) throw envelopeError('4.00', `The content of the body is not ${encoding}`, 'encoding')
  return bytes
}

function within(bytes: Uint8Array, maxBytes: number): Uint8Array {
  if (bytes.length > maxBytes) throw tooLarge()
  return bytes
}

async function unpacked(unpacking: Promise<Uint8Array>): Promise<Uint8Array> {
  try {
    return await unpacking
  } catch (thrown) {
    if (thrown instanceof RangeError) throw tooLarge()
    throw envelopeError('4.00', 'The content of the body cannot be unpacked', 'compression')
  }
}

/** Stops at the first piece beyond the bound, so that a bomb costs no more than that. */
async function gunzip(packed: Uint8Array, maxBytes: number): Promise<Uint8Array> {
  const pieces: Uint8Array[] = []
  let size = 0
  const stream = new Blob([packed as BlobPart]).stream().pipeThrough(new DecompressionStream('gzip'))
  for await (const piece of stream as unknown as AsyncIterable<Uint8Array>) {
    if ((size += piece.length) > maxBytes) throw new RangeError('The body is too large')
    pieces.push(piece)
  }
  if (size !== sizeAtEnd(packed)) throw new TypeError('Something follows the packed bytes')
  return joinedBytes(pieces)
}

/** How large a gzip says it is. What follows it is left out by some runtimes, and unpacked or refused by others. */
function sizeAtEnd(packed: Uint8Array): number {
  const { buffer, byteOffset, length } = packed
  return length < 4 ? 0 : new DataView(buffer, byteOffset + length - 4).getUint32(0, true)
}

function tooLarge(): Error {
  return envelopeError('4.13', 'The body is too large', 'body')
}
