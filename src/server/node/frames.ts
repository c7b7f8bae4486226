/** FIN and the opcode of a text frame. */
const TEXT = 0x81

/**
 * Unmasked text frames (RFC 6455 §5.2), one after the other in one buffer, for one write.
 *
 * Most batches are ASCII, where a character is a byte: then the texts are joined with room for the headers between them, copied
 * by one native call, and the headers written over the gaps. That takes two thirds of the time of a copy per text.
 */
export function textFrames(texts: readonly string[]): Buffer {
  let joined = ''
  for (const text of texts) joined += gap(text.length) + text
  const size = Buffer.byteLength(joined)
  if (size !== joined.length) return measuredFrames(texts)
  const buffer = Buffer.allocUnsafe(size)
  buffer.write(joined, 0, size, 'latin1')
  let offset = 0
  for (const { length } of texts) offset = writeHeader(buffer, offset, length) + length
  return buffer
}

function measuredFrames(texts: readonly string[]): Buffer {
  let size = 0
  const lengths = texts.map((text) => {
    const length = Buffer.byteLength(text)
    size += gap(length).length + length
    return length
  })
  const buffer = Buffer.allocUnsafe(size)
  let offset = 0
  for (const [i, text] of texts.entries()) offset = writeText(buffer, text, writeHeader(buffer, offset, lengths[i] ?? 0))
  return buffer
}

function writeText(buffer: Buffer, text: string, offset: number): number {
  return offset + buffer.write(text, offset)
}

function gap(length: number): string {
  return length < 126 ? '..' : length < 65_536 ? '....' : '..........'
}

function writeHeader(buffer: Buffer, offset: number, length: number): number {
  buffer[offset] = TEXT
  if (length < 126) {
    buffer[offset + 1] = length
    return offset + 2
  }
  if (length < 65_536) {
    buffer[offset + 1] = 126
    buffer[offset + 2] = length >> 8
    buffer[offset + 3] = length & 0xff
    return offset + 4
  }
  buffer[offset + 1] = 127
  buffer.writeBigUInt64BE(BigInt(length), offset + 2)
  return offset + 10
}
