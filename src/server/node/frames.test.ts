import fc from 'fast-check'
import { expect, test } from 'vitest'
import { mixedFrames, textFrames } from './frames.ts'

/** Reads frames as RFC 6455 §5.2 has them. */
function read(buffer: Buffer): (string | Uint8Array)[] {
  const frames: (string | Uint8Array)[] = []
  for (let at = 0; at < buffer.length;) {
    expect([0x81, 0x82]).toContain(buffer[at])
    const short = buffer[at + 1] ?? 0
    const [header, length] =
      short < 126 ? [2, short] : short === 126 ? [4, buffer.readUInt16BE(at + 2)] : [10, Number(buffer.readBigUInt64BE(at + 2))]
    // The shortest form that can hold it, as the clause demands.
    expect(header).toBe(length < 126 ? 2 : length < 65_536 ? 4 : 10)
    const content = buffer.subarray(at + header, at + header + length)
    frames.push(buffer[at] === 0x81 ? content.toString('utf8') : new Uint8Array(content))
    at += header + length
  }
  return frames
}

const border = fc.constantFrom(0, 1, 41, 42, 62, 63, 125, 126, 127, 21_845, 32_768, 65_535, 65_536, 70_000)
const text = fc.oneof(
  fc.string(),
  fc.string({ unit: 'grapheme' }),
  fc.tuple(border, fc.constantFrom('a', 'é', '€', '\u{1f680}')).map(([length, char]) => char.repeat(length)),
)

test('frames read back as they were given', () => {
  fc.assert(
    fc.property(fc.array(text, { maxLength: 20 }), (texts) => {
      expect(read(textFrames({ eachText: (visit) => texts.forEach((each) => visit(each)) }))).toEqual(texts)
    }),
    { numRuns: 200 },
  )
})

/** Bytes one by one take long to compare. */
const told = (frame: string | Uint8Array) =>
  typeof frame === 'string' ? `text ${frame}` : `bytes ${Buffer.from(frame).toString('base64')}`

test('so do frames of both kinds, in their order', () => {
  const binary = fc.oneof(
    fc.uint8Array(),
    border.map((length) => new Uint8Array(length).fill(7)),
  )
  fc.assert(
    fc.property(fc.array(fc.oneof(text, binary), { maxLength: 20 }), (frames) => {
      expect(read(mixedFrames(frames)).map(told)).toEqual(frames.map(told))
    }),
    { numRuns: 100 },
  )
})
