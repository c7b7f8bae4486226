import { expect, onTestFinished, test, vi } from 'vitest'
import { Committer } from './log-store.ts'

test('a store that fails was tried with every event, and each attempt was a line in the log', async () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const lines: string[] = []
  let [tries, isFull] = [0, true]
  const committer = new Committer((_, message) => lines.push(message))
  const store = {
    commit: async () => {
      tries++
      if (isFull) throw new Error('full')
    },
  }
  for (let ms = 0; ms < 30_000; ms += 10) {
    committer.later(store)
    if (ms % 100 === 0) committer.now(store)
    await vi.advanceTimersByTimeAsync(10)
  }
  expect(tries).toBeLessThanOrEqual(31)
  expect(tries).toBeGreaterThan(20)
  expect(lines).toHaveLength(1)

  isFull = false
  tries = 0
  await vi.advanceTimersByTimeAsync(2_000)
  expect(tries).toBe(1)
  committer.later(store)
  await vi.advanceTimersByTimeAsync(50)
  expect(tries).toBe(2)
})
