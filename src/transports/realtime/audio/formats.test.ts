import { expect, test } from 'vitest'
import { pcm16 } from '../../../wire/audio/samples.ts'
import { cutAt, decoder, durationMs, encoder } from './formats.ts'

const base64 = (bytes: readonly number[]): string => Buffer.from(bytes).toString('base64')

test('pcm16 is little-endian', () => {
  expect([...decoder('pcm16')(base64([0x01, 0x00, 0xff, 0x7f, 0x00, 0x80]), 'audio')]).toEqual([1, 32_767, -32_768])
  expect(pcm16(Int16Array.of(1, 32_767, -32_768))).toBe(base64([0x01, 0x00, 0xff, 0x7f, 0x00, 0x80]))
})

test('G.711 is widened to three times as many samples', () => {
  expect([...decoder('g711_ulaw')(base64([0x80]), 'audio')]).toEqual([10_708, 21_416, 32_124])
  expect([...decoder('g711_alaw')(base64([0xaa]), 'audio')]).toEqual([10_752, 21_504, 32_256])
})

test('what is no audio is refused, and the field named', () => {
  expect(() => decoder('pcm16')('&&&', 'audio')).toThrow(expect.objectContaining({ details: { param: 'audio', code: 'invalid_base64' } }))
  expect(() => decoder('pcm16')(base64([1, 2, 3]), 'a.b')).toThrow(
    expect.objectContaining({ details: { param: 'a.b', code: 'invalid_audio' } }),
  )
})

test('what an agent says is converted in pieces that may end inside a sample', () => {
  const samples = Int16Array.from({ length: 300 }, (_, index) => index * 100)
  const bytes = Buffer.from(pcm16(samples), 'base64')
  const whole = encoder('g711_alaw')(bytes.toString('base64'))
  expect(Buffer.from(whole, 'base64')).toHaveLength(100)
  for (const size of [1, 5, 64]) {
    const encode = encoder('g711_alaw')
    const pieces: Buffer[] = []
    for (let at = 0; at < bytes.length; at += size) {
      pieces.push(Buffer.from(encode(bytes.subarray(at, at + size).toString('base64')), 'base64'))
    }
    expect(Buffer.concat(pieces).toString('base64')).toBe(whole)
  }
  expect(encoder('pcm16')('as it is')).toBe('as it is')
})

test('durations', () => {
  const audio = pcm16(new Int16Array(24 * 125))
  expect(durationMs(audio)).toBe(125)
  expect(durationMs(cutAt(audio, 50))).toBe(50)
  expect(durationMs('')).toBe(0)
})
