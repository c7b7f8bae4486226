import { expect, test } from 'vitest'
import { Bucket } from './bucket.ts'

test('gives what there is, and then what comes', () => {
  let now = 0
  const bucket = new Bucket({ perSecond: 10, burst: 5, monotonic: () => now })
  expect(bucket.take(3)).toBe(true)
  expect(bucket.take(3)).toBe(false)
  expect(bucket.left).toBe(2)
  now = 100
  expect(bucket.take(3)).toBe(true)
  expect(bucket.left).toBe(0)
})

test('after a rest there is one burst, not two', () => {
  let now = 0
  const bucket = new Bucket({ perSecond: 1, burst: 5, monotonic: () => now })
  now = 60_000
  expect(bucket.take(5)).toBe(true)
  expect(bucket.take(1)).toBe(false)
})
