import { expect, test } from 'vitest'
import { pause, unlessAborted } from './time.ts'

test('a pause ends with its time, or with the reason of the abort', async () => {
  await pause(1, new AbortController().signal)
  const controller = new AbortController()
  const pausing = pause(60_000, controller.signal)
  controller.abort(new Error('enough'))
  await expect(pausing).rejects.toThrow('enough')
  await expect(pause(60_000, controller.signal)).rejects.toThrow('enough')
})

test('a promise, unless it is aborted before', async () => {
  const controller = new AbortController()
  expect(await unlessAborted(Promise.resolve(1), controller.signal)).toBe(1)
  const never = unlessAborted(new Promise(() => undefined), controller.signal)
  controller.abort(new Error('enough'))
  await expect(never).rejects.toThrow('enough')
})
