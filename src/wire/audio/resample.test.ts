import { expect, test } from 'vitest'
import { built, Resampler, toMono } from './resample.ts'
import { SAMPLE_RATE } from './samples.ts'

const HEIGHT = 10_000
/** The filter rises from silence at the beginning, and falls to it at the end. */
const EDGE = 400

function sine(hertz: number, rate: number, seconds = 0.5): Int16Array {
  return Int16Array.from({ length: rate * seconds }, (_, n) => Math.round(HEIGHT * Math.sin((2 * Math.PI * hertz * n) / rate)))
}

function resampled(samples: Int16Array, rate: number, size: number): Int16Array {
  const resampler = new Resampler(rate)
  const pieces: Int16Array[] = []
  for (let at = 0; at < samples.length; at += size) pieces.push(resampler.take(samples.subarray(at, at + size)))
  pieces.push(resampler.end())
  return Int16Array.from(pieces.flatMap((piece) => [...piece]))
}

/** How far a signal is from the sine of this frequency, relative to it, in decibels. */
function noise(signal: Int16Array, hertz: number): number {
  let [sum, count] = [0, 0]
  for (let n = EDGE; n < signal.length - EDGE; n++, count++) {
    sum += ((signal[n] as number) - HEIGHT * Math.sin((2 * Math.PI * hertz * n) / SAMPLE_RATE)) ** 2
  }
  return 20 * Math.log10(Math.sqrt(sum / count) / (HEIGHT / Math.SQRT2))
}

const RATES = [8_000, 11_025, 16_000, 22_050, 32_000, 44_100, 48_000, 96_000]

test.each(RATES)('a tone of %i Hz sound keeps its frequency, phase and loudness', (rate) => {
  for (const hertz of [220, 1_000, 3_000]) {
    const signal = resampled(sine(hertz, rate), rate, 512)
    expect(Math.abs(signal.length - SAMPLE_RATE / 2)).toBeLessThanOrEqual(1)
    expect(noise(signal, hertz)).toBeLessThan(-55)
  }
})

test.each([
  [48_000, 15_000],
  [44_100, 18_000],
  [96_000, 30_000],
])('of %i Hz sound a tone of %i Hz, which cannot be heard afterwards, does not fold back', (rate, hertz) => {
  const signal = resampled(sine(hertz, rate), rate, 512).subarray(EDGE, -EDGE)
  expect(Math.max(...signal.map(Math.abs))).toBeLessThan(HEIGHT / 300)
})

test.each(RATES)('the borders of pieces of %i Hz sound are not heard', (rate) => {
  const tone = sine(440, rate)
  const whole = resampled(tone, rate, tone.length)
  for (const size of [1, 7, 160, 1_023]) expect(resampled(tone, rate, size)).toEqual(whole)
})

test('an odd rate uses the nearest of a bounded number of filters', () => {
  expect(noise(resampled(sine(440, 23_987), 23_987, 480), 440)).toBeLessThan(-50)
})

test('filters are made once for a rate, and only those that a sample needs', () => {
  const before = built.filters
  for (let n = 0; n < 400; n++) new Resampler(n % 2 === 0 ? 191_999 : 191_989)
  expect(built.filters).toBe(before)
  for (let n = 0; n < 400; n++) {
    const resampler = new Resampler(n % 2 === 0 ? 191_999 : 191_989)
    resampler.take(Int16Array.of(1))
    resampler.end()
  }
  expect(built.filters - before).toBeLessThan(64)
})

test('channels become their mean', () => {
  expect([...toMono(Int16Array.of(100, 300, -5, 5), 2)]).toEqual([200, 0])
  const mono = Int16Array.of(1, 2)
  expect(toMono(mono, 1)).toBe(mono)
})
