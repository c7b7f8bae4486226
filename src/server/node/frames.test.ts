import fc from 'fast-check'
import { expect, test } from 'vitest'
import { textFrames } from './frames.ts'

/** Reads frames as RFC 6455 §5.2 has them. */
function read(buffer: Buffer): string[] {
  const texts: string[] = []
  for (let at = 0; at < buffer.length;) {
    expect(buffer[at]).toBe(0x81)
    const short = buffer[at + 1] ?? 0
    const [header, length] =
      short < 126 ? [2, short] : short === 126 ? [4, buffer.readUInt16BE(at + 2)] : [10, Number(buffer.readBigUInt64BE(at + 2))]
    // The shortest form that can hold it, as the clause demands.
    expect(header).toBe(length < 126 ? 2 : length < 65_536 ? 4 : 10)
    texts.push(buffer.toString('utf8', at + header, at + header + length))
    at += header + length
  }
  return texts
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
