import { expect, test } from 'vitest'
import { backoff } from './backoff.ts'

test('doubles up to the limit', () => {
  const delay = backoff({ minMs: 100, maxMs: 1_000, random: () => 1 })
  expect([0, 1, 2, 3, 4, 5, 2_000].map(delay)).toEqual([100, 200, 400, 800, 1_000, 1_000, 1_000])
})

test('at most half of it is random', () => {
  expect(backoff({ minMs: 100, maxMs: 1_000, random: () => 0 })(1)).toBe(100)
  expect(backoff({ minMs: 100, maxMs: 1_000, random: () => 0.5 })(1)).toBe(150)
})
