import { expect, test } from 'vitest'
import { alaw, ulaw } from './g711.ts'

const decodeAll = (law: typeof ulaw) => law.decode(Uint8Array.from({ length: 256 }, (_, code) => code))

/** ITU-T G.711 tables 1 and 2: the decoded value of step `step` in segment `segment`, in sixteen bits. */
const ulawSize = (segment: number, step: number): number => ((2 * step + 33) * 2 ** segment - 33) * 4
const alawSize = (segment: number, step: number): number => (segment === 0 ? 2 * step + 1 : (2 * step + 33) * 2 ** (segment - 1)) * 8

test('μ-law codes decode to the values of the standard', () => {
  const decoded = decodeAll(ulaw)
  for (let segment = 0; segment < 8; segment++) {
    for (let step = 0; step < 16; step++) {
      const code = (segment << 4) | step
      expect(decoded[0xff - code], `+${segment}/${step}`).toBe(ulawSize(segment, step))
      expect(decoded[0x7f - code], `-${segment}/${step}`).toBe(0 - ulawSize(segment, step))
    }
  }
})

test('A-law codes decode to the values of the standard', () => {
  const decoded = decodeAll(alaw)
  for (let segment = 0; segment < 8; segment++) {
    for (let step = 0; step < 16; step++) {
      const code = (segment << 4) | step
      expect(decoded[(0x80 | code) ^ 0x55], `+${segment}/${step}`).toBe(alawSize(segment, step))
      expect(decoded[code ^ 0x55], `-${segment}/${step}`).toBe(-alawSize(segment, step))
    }
  }
})

const KNOWN = {
  ulaw: { 0: 0xff, 8: 0xfe, '-8': 0x7e, 1000: 0xce, 32124: 0x80, '-32124': 0x00, 32767: 0x80, '-32768': 0x00 },
  alaw: { 0: 0xd5, 8: 0xd5, '-8': 0x55, 24: 0xd4, 1000: 0xfa, 32256: 0xaa, '-32256': 0x2a, 32767: 0xaa, '-32768': 0x2a },
}

test.each([
  ['μ-law', ulaw, KNOWN.ulaw],
  ['A-law', alaw, KNOWN.alaw],
])('%s encodes known samples', (_, law, known) => {
  const samples = Object.keys(known).map(Number)
  expect([...law.encode(Int16Array.from(samples))]).toEqual(Object.values(known))
})

test.each([
  ['μ-law', ulaw, (code: number) => 4 << ((~code & 0x70) >> 4)],
  ['A-law', alaw, (code: number) => 8 << Math.max(0, (((code ^ 0x55) & 0x70) >> 4) - 1)],
] as const)('%s: a sample is at most half a step away from what becomes of it, and every code becomes itself', (_, law, halfStep) => {
  for (let sample = -32_635; sample <= 32_635; sample++) {
    const [code = NaN] = law.encode(Int16Array.of(sample))
    const [got = NaN] = law.decode(Uint8Array.of(code))
    if (Math.abs(got - sample) > halfStep(code)) expect.fail(`${sample} became ${got}`)
  }
  for (let code = 0; code < 256; code++) {
    const decoded = law.decode(Uint8Array.of(code))
    expect(law.decode(law.encode(decoded))).toEqual(decoded)
  }
})
