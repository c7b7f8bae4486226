import { expect, test } from 'vitest'
import { downsampler, upsampler } from './resample.ts'

test('three samples for one lie on the line from the one before', () => {
  expect([...upsampler()(Int16Array.of(300, 0, -32_768))]).toEqual([100, 200, 300, 200, 100, 0, -10_923, -21_845, -32_768])
})

test('one sample for three is their mean', () => {
  expect([...downsampler()(Int16Array.of(1, 2, 6, -32_768, -32_768, -32_768, 32_767, 32_767, 32_767))]).toEqual([3, -32_768, 32_767])
})

const samples = Int16Array.from({ length: 600 }, (_, index) => Math.round(8000 * Math.sin(index / 20)))

test.each([
  ['up', upsampler],
  ['down', downsampler],
])('%s: in pieces of any size it is the same', (_, make) => {
  const whole = [...make()(samples)]
  for (const size of [1, 2, 7, 160]) {
    const convert = make()
    const pieces: number[] = []
    for (let at = 0; at < samples.length; at += size) pieces.push(...convert(samples.subarray(at, at + size)))
    expect(pieces).toEqual(whole)
  }
})

test('what is slow enough for 8 kHz survives both ways', () => {
  const back = upsampler()(downsampler()(samples))
  for (let at = 10; at < back.length; at++) expect(Math.abs((back[at] as number) - (samples[at] as number))).toBeLessThan(1000)
})
