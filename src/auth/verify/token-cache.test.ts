import { expect, test } from 'vitest'
import { TokenCache } from './token-cache.ts'

const verified = (id: string) => ({ principal: { tenant: 't', id, scopes: [] }, confirmation: undefined })

test('a token is found for five minutes, then it is verified again', () => {
  let now = 0
  const cache = new TokenCache(() => now)
  cache.add('a.b.c', verified('alice'))
  now = 5 * 60_000 - 1
  expect(cache.get('a.b.c')?.principal.id).toBe('alice')
  expect(cache.get('a.b.d')).toBeUndefined()
  // To be asked for does not make it younger.
  now += 1
  expect(cache.get('a.b.c')).toBeUndefined()
  expect(cache.size).toBe(0)
})

test('what was used last stays, within the bounds', () => {
  const cache = new TokenCache(() => 0)
  for (let i = 0; i < 10_000; i++) cache.add(`token-${i}`, verified(String(i)))
  expect(cache.get('token-0')).toBeDefined()
  cache.add('one-more', verified('more'))
  expect([cache.size, cache.get('token-0')?.principal.id, cache.get('token-1')]).toEqual([10_000, '0', undefined])
  cache.add('long', verified('long'))
  cache.add('x'.repeat(8 * 1024 * 1024), verified('x'))
  expect(cache.size).toBe(1)
})
