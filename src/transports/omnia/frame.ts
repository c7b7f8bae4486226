import { isRecord, parseJson, type Slot } from '../../protocol/json.ts'
import { invalid } from './errors.ts'

/**
 * Omnia's binary frames: 32 bytes of header, numbers big-endian, then metadata as JSON, then the payload.
 *
 *     0  "OMNI"            8  u32 bytes of metadata    20  media id, 12 bytes, filled up with zeros
 *     4  u8 version, 1    12  u32 bytes of payload
 *     5  u8 flags         16  u32 sequence
 *     6  u16 type
 */
const HEADER_BYTES = 32
const MAGIC = [0x4f, 0x4d, 0x4e, 0x49] as const
const VERSION = 1
const MEDIA_ID = { at: 20, bytes: 12 } as const
/** Far more than a frame of sound says about itself. */
const META_BYTES = 64 * 1024

/** A larger payload goes in chunks. */
const CHUNK_ABOVE = 1024 * 1024
const CHUNK_BYTES = 64 * 1024

export const COMPRESSED = 1
export const CHUNKED = 2
export const LAST = 4

export const MEDIA = 1

export interface BinaryFrame {
  readonly flags: number
  readonly type: number
  readonly sequence: number
  /** At most 12 characters of Latin-1. */
  readonly mediaId: string
  readonly meta: Slot
  readonly payload: Uint8Array
}

export function encodeFrame({ flags, type, sequence, mediaId, meta, payload }: BinaryFrame): Uint8Array {
  const metadata = new TextEncoder().encode(JSON.stringify(meta))
  const bytes = new Uint8Array(HEADER_BYTES + metadata.length + payload.length)
  const view = new DataView(bytes.buffer)
  bytes.set(MAGIC)
  bytes[4] = VERSION
  bytes[5] = flags
  view.setUint16(6, type)
  view.setUint32(8, metadata.length)
  view.setUint32(12, payload.length)
  view.setUint32(16, sequence)
  for (let at = 0; at < Math.min(mediaId.length, MEDIA_ID.bytes); at++) bytes[MEDIA_ID.at + at] = mediaId.charCodeAt(at)
  bytes.set(metadata, HEADER_BYTES)
  bytes.set(payload, HEADER_BYTES + metadata.length)
  return bytes
}

export type MediaPiece = Pick<BinaryFrame, 'sequence' | 'mediaId' | 'meta' | 'payload'> & { readonly last: boolean }

/** One piece of media as one frame, or as chunks that are counted from 0. */
export function mediaFrames({ last, ...piece }: MediaPiece): Uint8Array[] {
  const { payload, meta } = piece
  if (payload.length <= CHUNK_ABOVE) return [encodeFrame({ ...piece, type: MEDIA, flags: last ? LAST : 0 })]
  const total = Math.ceil(payload.length / CHUNK_BYTES)
  return Array.from({ length: total }, (_, index) =>
    encodeFrame({
      ...piece,
      type: MEDIA,
      flags: CHUNKED | (last && index === total - 1 ? LAST : 0),
      sequence: index,
      meta: { ...meta, total_chunks: total },
      payload: payload.subarray(index * CHUNK_BYTES, (index + 1) * CHUNK_BYTES),
    }),
  )
}

/** Throws `invalid_request`. The payload is a view of the bytes that came. */
export function decodeFrame(bytes: Uint8Array): BinaryFrame {
  if (bytes.length < HEADER_BYTES) throw invalid(`A binary frame has a header of ${HEADER_BYTES} bytes, not ${bytes.length}`)
  if (MAGIC.some((byte, at) => bytes[at] !== byte)) throw invalid('A binary frame begins with "OMNI"')
  if (bytes[4] !== VERSION) throw invalid(`A binary frame has version ${VERSION}, not ${bytes[4]}`)
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const payloadAt = HEADER_BYTES + view.getUint32(8)
  if (payloadAt - HEADER_BYTES > META_BYTES) throw invalid(`The metadata of a binary frame has at most ${META_BYTES} bytes`)
  if (payloadAt > bytes.length) throw invalid('A binary frame has less metadata than its header says')
  const end = payloadAt + view.getUint32(12)
  if (end > bytes.length) throw invalid('A binary frame has less payload than its header says')
  return {
    flags: view.getUint8(5),
    type: view.getUint16(6),
    sequence: view.getUint32(16),
    mediaId: String.fromCharCode(...bytes.subarray(MEDIA_ID.at, MEDIA_ID.at + MEDIA_ID.bytes)).replace(/\0.*/s, ''),
    meta: metaOf(bytes.subarray(HEADER_BYTES, payloadAt)),
    payload: bytes.subarray(payloadAt, end),
  }
}

function metaOf(bytes: Uint8Array): Slot {
  if (bytes.length === 0) return {}
  try {
    const value: unknown = parseJson(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
    if (isRecord(value)) return value
  } catch {
    // Told below.
  }
  throw invalid('The metadata of a binary frame must be a JSON object')
}
