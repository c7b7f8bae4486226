import { expect, test } from 'vitest'
import { Listener } from './sound.ts'

const BYTES_PER_MS = 48

/** A tone of so many milliseconds. */
function sound(ms: number, height: number): Uint8Array {
  const view = new DataView(new ArrayBuffer(ms * BYTES_PER_MS))
  for (let at = 0; at < view.byteLength; at += 2) view.setInt16(at, Math.round(height * Math.sin(at / 10)), true)
  return new Uint8Array(view.buffer)
}

function listen() {
  const heard: (string | number)[] = []
  const listener = new Listener({
    onStart: () => heard.push('started'),
    onEnd: (samples) => heard.push((samples.length * 2) / BYTES_PER_MS),
  })
  return { heard, listener }
}

test('what is said ends with a pause, and silence alone is nothing', () => {
  const { heard, listener } = listen()
  for (const piece of [sound(400, 8000), sound(700, 0)]) listener.hear(piece)
  expect(heard).toEqual(['started', 1100])
  listener.hear(sound(500, 0))
  listener.finish()
  expect(heard).toEqual(['started', 1100])
})

test('what is whispered counts when the call ends and nothing else was said; the next call is another', () => {
  const { heard, listener } = listen()
  for (let call = 0; call < 2; call++) {
    listener.hear(sound(250, 3))
    listener.finish()
  }
  listener.finish()
  expect(heard).toEqual([250, 250])
})

test.each([1, 7, 333])('in pieces of %i bytes, which may end in the middle of a sample, the same is heard', (size) => {
  const said: Int16Array[] = []
  const listener = new Listener({ onStart: () => undefined, onEnd: (samples) => said.push(samples) })
  const bytes = sound(100, 8000)
  for (let at = 0; at < bytes.length; at += size) listener.hear(bytes.subarray(at, at + size))
  listener.finish()
  expect(said.map(({ buffer }) => Buffer.from(buffer).equals(bytes))).toEqual([true])
})

test('half a sample at the end of a call is not the beginning of the next', () => {
  const { heard, listener } = listen()
  listener.hear(Uint8Array.of(1, 2, 3))
  listener.finish()
  listener.hear(Uint8Array.of(4))
  listener.finish()
  expect(heard).toHaveLength(1)
})
