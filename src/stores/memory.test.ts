import { expect, test } from 'vitest'
import { storeContract } from '../../test/contract/store.ts'
import { memoryStore } from './memory.ts'

storeContract('memory', (now) => memoryStore({ now }))

test('it is full where it is said to be, as a disk would be, and has room again when something goes', async () => {
  const store = memoryStore({ mostBytes: 1000 })
  const full = { code: 'overloaded', message: 'The store is full' }
  await store.set('a', 'x'.repeat(600))
  await expect(store.set('b', 'x'.repeat(600))).rejects.toMatchObject(full)
  await expect(store.append('s', { first: 1, last: 1, text: 'x'.repeat(600) })).rejects.toMatchObject(full)
  await expect(
    store.batch([
      { op: 'append', stream: 's', group: { first: 1, last: 1, text: 'x'.repeat(300) } },
      { op: 'set', key: 'b', value: 'x'.repeat(300) },
    ]),
  ).rejects.toMatchObject(full)
  expect([await store.bytes(), await store.last('s')]).toEqual([602, 0])
  await store.set('a', 'x'.repeat(900))
  await store.delete('a')
  await store.set('b', 'x'.repeat(600))
})
