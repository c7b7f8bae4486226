import { expect, test } from 'vitest'
import { pcm16, toSamples, wholeSamples } from './samples.ts'

const BYTES = Uint8Array.of(0x01, 0x00, 0xff, 0x7f, 0x00, 0x80)
const SAMPLES = Int16Array.of(1, 32_767, -32_768)

test('samples are little-endian, there and back', () => {
  expect(toSamples(BYTES)).toEqual(SAMPLES)
  expect(pcm16(SAMPLES)).toBe(Buffer.from(BYTES).toString('base64'))
})

test.each([1, 2, 3, 4, 5, 6])('in pieces of %i bytes no sample is cut', (size) => {
  const whole = wholeSamples()
  const pieces: Uint8Array[] = []
  for (let at = 0; at < BYTES.length; at += size) pieces.push(whole(BYTES.subarray(at, at + size)))
  expect(pieces.every(({ length }) => length % 2 === 0)).toBe(true)
  expect(Buffer.concat(pieces).equals(BYTES)).toBe(true)
})

test('what waits is kept when its memory is used again', () => {
  const whole = wholeSamples()
  const memory = Uint8Array.of(1)
  whole(memory)
  memory[0] = 9
  expect(whole(Uint8Array.of(2))).toEqual(Uint8Array.of(1, 2))
})
