import { expect, test } from 'vitest'
import { InputBuffer, type Listening, type Noticed } from './input-buffer.ts'

const MS = 24
const LISTENING: Listening = { threshold: 0.5, prefixMs: 300, silenceMs: 500 }

const silence = (ms: number): Int16Array => new Int16Array(ms * MS)
const speech = (ms: number, loud = 8000): Int16Array => Int16Array.from({ length: ms * MS }, (_, at) => Math.round(loud * Math.sin(at / 9)))
const joined = (...parts: readonly Int16Array[]): Int16Array => Int16Array.from(parts.flatMap((part) => [...part]))
const times = (noticed: readonly Noticed[]) =>
  noticed.map((change) => (change.type === 'started' ? [change.type, change.ms] : [change.type, change.ms, change.samples.length / MS]))

test('speech begins with what came before it and ends after the silence', () => {
  const said = joined(silence(1000), speech(600), silence(1000))
  // 60 ms of speech are needed to notice it; its beginning is then 300 ms before that.
  expect(times(new InputBuffer().append(said, LISTENING))).toEqual([
    ['started', 700],
    ['stopped', 2100, 1400],
  ])
})

test.each([1, 7, 20, 33, 250])('in pieces of %i ms it notices the same', (size) => {
  const buffer = new InputBuffer()
  const said = joined(silence(400), speech(500), silence(300), speech(200), silence(700), speech(300), silence(600))
  const noticed: Noticed[] = []
  for (let at = 0; at < said.length; at += size * MS) noticed.push(...buffer.append(said.subarray(at, at + size * MS), LISTENING))
  expect(times(noticed)).toEqual([
    ['started', 100],
    ['stopped', 1900, 1800],
    ['started', 1900],
    ['stopped', 2900, 1000],
  ])
})

test('a click is no speech, nor is what is quieter than the threshold', () => {
  const buffer = new InputBuffer()
  expect(buffer.append(joined(silence(200), speech(40), silence(200)), LISTENING)).toEqual([])
  expect(buffer.append(speech(500, 500), LISTENING)).toEqual([])
  expect(times(buffer.append(speech(500, 500), { ...LISTENING, threshold: 0.2 }))).toHaveLength(1)
})

test('silence does not pile up, and what is left of it can be taken', () => {
  const buffer = new InputBuffer()
  for (let second = 0; second < 120; second++) buffer.append(silence(1000), LISTENING)
  const { length } = buffer.take()
  expect(length / MS).toBeGreaterThanOrEqual(10_000)
  expect(length / MS).toBeLessThanOrEqual(20_000)
  expect(buffer.isEmpty).toBe(true)
})

test('speech without end is ended when the buffer is full', () => {
  const buffer = new InputBuffer()
  const noticed: Noticed[] = []
  for (let second = 0; second < 180; second++) noticed.push(...buffer.append(speech(1000), LISTENING))
  expect(noticed.map(({ type }) => type)).toEqual(['started', 'stopped', 'started'])
})

test('without listening nothing is noticed, and a full buffer refuses and stays as it was', () => {
  const buffer = new InputBuffer()
  const most = speech(1000)
  for (let second = 0; second < 174; second++) expect(buffer.append(most, undefined)).toEqual([])
  expect(() => buffer.append(most, undefined)).toThrow(
    expect.objectContaining({ details: { param: 'audio', code: 'input_audio_buffer_full' } }),
  )
  expect(buffer.take()).toHaveLength(174 * 1000 * MS)
  expect(buffer.append(most, undefined)).toEqual([])
})

test('times go on after a commit and a clear', () => {
  const buffer = new InputBuffer()
  buffer.append(silence(1000), undefined)
  buffer.take()
  buffer.append(silence(500), undefined)
  buffer.clear()
  expect(times(buffer.append(joined(silence(400), speech(200)), LISTENING))).toEqual([['started', 1600]])
})
