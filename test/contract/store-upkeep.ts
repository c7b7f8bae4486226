import { describe, expect, test } from 'vitest'
import type { Kept, Store } from '../../src/core/ports/store.ts'
import { all, group } from './store-streams.ts'

/** What is there, how much it is, and that it goes. `pass` lets time pass. */
export function upkeepTests(fresh: () => Promise<Store>, pass: (ms: number) => void): void {
  describe('upkeep', () => {
    test('lists every record and stream with its size and its indexes, and not what has gone', async () => {
      const store = await fresh()
      await Promise.all(Array.from({ length: 100 }, (_, n) => store.set(`k${n}`, 'x'.repeat(n), { index: [['i', `${n}`]] })))
      await Promise.all(Array.from({ length: 100 }, (_, n) => store.append(`s${n}`, { first: 1, last: 1, text: 'y'.repeat(n) })))
      await store.append('s1', { first: 2, last: 2, text: 'y'.repeat(1000) })
      await store.set('expired', 1, { ttlMs: 10 })
      await store.set('deleted', 1)
      await store.delete('deleted')
      await store.append('dropped', group(1, 1))
      await store.drop('dropped')
      pass(10)
      const kept = await all(store.scan())
      const named = (type: Kept['type']) => kept.filter((each) => each.type === type).map(({ key }) => key)
      expect(named('record').toSorted()).toEqual(Array.from({ length: 100 }, (_, n) => `k${n}`).toSorted())
      expect(named('stream').toSorted()).toEqual(Array.from({ length: 100 }, (_, n) => `s${n}`).toSorted())
      const of = (key: string) => kept.find((each) => each.key === key) as Kept
      expect(of('k50').index).toEqual({ i: '50' })
      expect(of('k90').bytes - of('k10').bytes).toBe(80)
      expect(of('s1').bytes).toBe(1001)
      expect(of('s50').bytes).toBe(50)
    })

    test('goes through the keys of an index, page by page', async () => {
      const store = await fresh()
      const names = Array.from({ length: 5 }, (_, n) => `k${n}`)
      for (const name of names) await store.set(name, 'four', { index: [['i', name]] })
      const items = names.map((key) => ({ key, bytes: 6 }))
      const first = await store.keys('i', { limit: 3 })
      expect(first.items).toEqual(items.slice(0, 3))
      expect(await store.keys('i', { limit: 3, after: first.next as string })).toEqual({ items: items.slice(3), next: undefined })
      expect(await store.keys('i', { limit: 5 })).toEqual({ items, next: undefined })
      expect(await store.keys('none', {})).toEqual({ items: [], next: undefined })
    })

    test('has as many bytes as before when everything has gone', async () => {
      const store = await fresh()
      await store.set('stays', 1)
      await store.append('stays', group(1, 1))
      const before = await store.bytes()
      for (let n = 0; n < 300; n++) {
        void store.set(`expires${n}`, 'x'.repeat(1000), { ttlMs: 10, index: [['i', 'a']] })
        void store.set(`deleted${n}`, 'x'.repeat(1000))
        void store.append(`s${n}`, { first: 1, last: 1, text: 'x'.repeat(1000) })
      }
      expect((await store.bytes()) - before).toBeGreaterThan(900_000)
      pass(10)
      for (let n = 0; n < 300; n++)
        await store.batch([
          { op: 'delete', key: `deleted${n}` },
          { op: 'drop', stream: `s${n}` },
        ])
      while (await store.tidy());
      expect((await store.bytes()) - before).toBeLessThan(50_000)
      expect((await all(store.scan())).map(({ key }) => key)).toEqual(['stays', 'stays'])
      expect(await store.count('i')).toBe(0)
    })
  })
}
