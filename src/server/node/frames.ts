import type { Texts } from '../../core/ports/transport.ts'
import { TextBuffer } from './text-buffer.ts'

/** FIN and the opcode. */
const TEXT = 0x81
const BINARY = 0x82

/** Unmasked text frames (RFC 6455 §5.2) in one buffer, for one write. */
export function textFrames(texts: Texts): Buffer {
  const buffer = new TextBuffer()
  texts.eachText((text) => addFrame(buffer, text))
  return buffer.bytes
}

/** The same for messages of both kinds. */
export function mixedFrames(frames: readonly (string | Uint8Array)[]): Buffer {
  const buffer = new TextBuffer()
  for (const frame of frames) {
    if (typeof frame === 'string') addFrame(buffer, frame)
    else addBinary(buffer, frame)
  }
  return buffer.bytes
}

function addFrame(buffer: TextBuffer, text: string): void {
  const room = headerSize(text)
  const at = buffer.reserve(room)
  const length = buffer.add(text)
  setHeader(buffer.bytes, TEXT, { at, room, length })
}

function addBinary(buffer: TextBuffer, content: Uint8Array): void {
  const { length } = content
  const room = roomFor(length)
  const at = buffer.reserve(room + length)
  const { bytes } = buffer
  setHeader(bytes, BINARY, { at, room, length })
  bytes.set(content, at + room)
}

function setHeader(bytes: Buffer, opcode: number, { at, room, length }: { at: number; room: number; length: number }): void {
  bytes[at] = opcode
  if (room === 2) {
    bytes[at + 1] = length
  } else if (room === 4) {
    bytes[at + 1] = 126
    bytes.writeUInt16BE(length, at + 2)
  } else {
    bytes[at + 1] = 127
    bytes.writeBigUInt64BE(BigInt(length), at + 2)
  }
}

/** The length of a header depends on the length of its text. Most texts need not be measured for that. */
function headerSize(text: string): number {
  if (text.length >= 126 && text.length < 20_000) return 4
  return roomFor(Buffer.byteLength(text))
}

function roomFor(size: number): number {
  return size < 126 ? 2 : size < 65_536 ? 4 : 10
}
