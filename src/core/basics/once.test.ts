import { expect, test } from 'vitest'
import { memoryStore } from '../../stores/memory.ts'
import { once, onceOperation } from './once.ts'

test('a name is used up once, also by many at the same time, and is free again after its time', async () => {
  let now = 1_000_000
  const store = memoryStore({ now: () => now })
  const tries = await Promise.all(Array.from({ length: 10 }, () => once(store, 'jti', 60_000)))
  expect(tries.filter(Boolean)).toHaveLength(1)
  expect(await once(store, 'other', 60_000)).toBe(true)
  now += 60_001
  expect(await once(store, 'jti', 60_000)).toBe(true)
})

test('a batch with a name that is used up changes nothing', async () => {
  const store = memoryStore()
  await store.batch([onceOperation('payment', 60_000), { op: 'set', key: 'paid', value: 1 }])
  const again = store.batch([{ op: 'set', key: 'paid', value: 2 }, onceOperation('payment', 60_000)])
  await expect(again).rejects.toMatchObject({ code: 'conflict' })
  expect((await store.get('paid'))?.value).toBe(1)
})
