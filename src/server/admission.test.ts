import { expect, test } from 'vitest'
import { RateLimiter } from '../core/basics/rate-limiter.ts'
import { addressKey } from './admission.ts'

test('lets a burst through, then the rate', () => {
  let now = 0
  const limiter = new RateLimiter({ perSecond: 10, burst: 3, monotonic: () => now })
  expect([1, 2, 3].map(() => limiter.take('a'))).toEqual([0, 0, 0])
  expect(limiter.take('a')).toBeCloseTo(0.1)
  now = 100
  expect(limiter.take('a')).toBe(0)
  expect(limiter.take('a')).toBeCloseTo(0.1)
  expect(limiter.take('b')).toBe(0)
  now = 10_000
  expect([1, 2, 3, 4].map(() => limiter.take('a') > 0)).toEqual([false, false, false, true])
})

test('remembers a bounded number of keys, those that are in use first', () => {
  let now = 0
  const limiter = new RateLimiter({ perSecond: 1, burst: 1, monotonic: () => now })
  for (let i = 0; i < 9_999; i++) limiter.take(`old ${i}`)
  now = 5_000
  limiter.take('busy')
  limiter.take('new')
  expect(limiter.take('busy')).toBeGreaterThan(0)
})

test('addresses of one /64 are one caller, and IPv4 addresses one each', () => {
  expect(addressKey('2001:db8:1:2::1')).toBe(addressKey('2001:db8:1:2:ffff:ffff:ffff:ffff'))
  expect(addressKey('2001:db8:1:2::1')).not.toBe(addressKey('2001:db8:1:3::1'))
  expect(addressKey('::ffff:192.0.2.1')).toBe('192.0.2.1')
  expect(addressKey('192.0.2.1')).not.toBe(addressKey('192.0.2.2'))
})
