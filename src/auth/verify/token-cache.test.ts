import { expect, test } from 'vitest'
import { TokenCache } from './token-cache.ts'
import type { Verified } from './verifier.ts'

const verified: Verified = { principal: { tenant: 'default', id: 'alice', scopes: [] }, confirmation: undefined }

test('a full cache forgets the tokens that were not used for the longest time', () => {
  const cache = new TokenCache(() => 0)
  for (let i = 0; i < 10_000; i++) cache.add(`token ${i}`, verified)
  expect(cache.size).toBe(10_000)
  cache.get('token 0')
  cache.add('one more', verified)
  expect(cache.size).toBe(9_000)
  expect(cache.get('token 0')).toBe(verified)
  expect(cache.get('token 1')).toBeUndefined()
  expect(cache.get('token 9999')).toBe(verified)
})

test('long tokens fill it, too', () => {
  const cache = new TokenCache(() => 0)
  for (let i = 0; i < 1025; i++) cache.add(String(i).padEnd(8192), verified)
  expect(cache.size).toBe(921)
})

test('a token is found for five minutes, then it is verified again', () => {
  let now = 0
  const cache = new TokenCache(() => now)
  cache.add('a.b.c', verified)
  now = 5 * 60_000 - 1
  expect(cache.get('a.b.c')).toBe(verified)
  expect(cache.get('a.b.d')).toBeUndefined()
  // To be asked for does not make it younger.
  now += 1
  expect(cache.get('a.b.c')).toBeUndefined()
  expect(cache.size).toBe(0)
})
