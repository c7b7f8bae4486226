import { describe, expect, test } from 'vitest'
import type { Operation, Store } from '../../src/core/ports/store.ts'
import { all, group } from './store-streams.ts'

const LARGE = 'x'.repeat(300_000)

/** Batches that are begun in one turn of the event loop may be written together, and must not be seen to be. */
export function batchTests(fresh: () => Promise<Store>): void {
  describe('batches of one turn', () => {
    test('what is said to be new and is there refuses its own batch alone', async () => {
      const store = await fresh()
      await store.set('there', 1)
      await store.append('there', group(1, 1))
      const isNew = { ifVersion: 0, index: [['i', 'a']] } as const
      const outcomes = await Promise.allSettled([
        store.batch([
          { op: 'set', key: 'first', value: 1, options: isNew },
          { op: 'append', stream: 's', group: group(1, 1), expected: 0 },
          { op: 'set', key: 'there', value: 2, options: isNew },
        ]),
        store.batch([
          { op: 'append', stream: 's', group: group(1, 2), expected: 0 },
          { op: 'set', key: 'first', value: 2, options: isNew },
        ]),
        store.set('there', 3, isNew),
        store.append('there', group(1, 1), { expected: 0 }),
        store.append('there', group(2, 2), { expected: 1 }),
      ])
      expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'rejected', 'rejected', 'fulfilled'])
      expect((await store.get('first'))?.value).toBe(2)
      expect((await store.get('there'))?.value).toBe(1)
      expect(await all(store.read('s'))).toEqual([group(1, 2)])
      expect(await store.last('there')).toBe(2)
      expect((await store.list('i', {})).items).toEqual([{ key: 'first', value: 2 }])
    })

    test('one that is refused leaves nothing for those after it', async () => {
      const store = await fresh()
      const version = await store.set('k', 1, { index: [['i', 'a']] })
      await store.append('s', group(1, 1))
      const outcomes = await Promise.allSettled([
        store.batch([
          { op: 'drop', stream: 's' },
          { op: 'append', stream: 's', group: group(1, 4), expected: 0 },
          { op: 'drop', stream: 's' },
          { op: 'append', stream: 'new', group: group(1, 4) },
          { op: 'set', key: 'k', value: 2, options: { index: [['i', 'b']] } },
          { op: 'delete', key: 'k' },
          { op: 'set', key: 'l', value: 2 },
          { op: 'delete', key: 'none', ifVersion: 7 },
        ]),
        store.batch([
          { op: 'append', stream: 's', group: group(2, 2), expected: 1 },
          { op: 'append', stream: 'new', group: group(1, 1), expected: 0 },
          { op: 'set', key: 'k', value: 3, options: { ifVersion: version, index: [['i', 'c']] } },
          { op: 'set', key: 'l', value: 3, options: { ifVersion: 0 } },
        ]),
      ])
      expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'fulfilled'])
      expect(await all(store.read('s'))).toEqual([group(1, 1), group(2, 2)])
      expect(await all(store.read('new'))).toEqual([group(1, 1)])
      expect((await store.list('i', {})).items).toEqual([{ key: 'k', value: 3 }])
      expect((await store.get('l'))?.value).toBe(3)
    })

    test('drops a stream and begins it anew', async () => {
      const store = await fresh()
      const anew = (last: number): Operation[] => [
        { op: 'drop', stream: 's' },
        { op: 'append', stream: 's', group: group(1, last), expected: 0 },
      ]
      await Promise.all([store.batch(anew(1)), store.batch([...anew(2), ...anew(3)]), store.drop('s'), store.batch(anew(4))])
      expect(await all(store.read('s'))).toEqual([group(1, 4)])
      await Promise.all([store.batch([...anew(5), ...anew(6)]), store.append('s', group(7, 8), { expected: 6 })])
      expect(await all(store.read('s'))).toEqual([group(1, 6), group(7, 8)])
      await store.batch([...anew(9), { op: 'drop', stream: 's' }])
      expect(await store.last('s')).toBe(0)
    })

    test('writes many records and groups at once, and takes them back', async () => {
      const store = await fresh()
      const keys = Array.from({ length: 100 }, (_, n) => `k${String(n).padStart(3, '0')}`)
      const sets = keys.map((key): Operation => ({
        op: 'set',
        key,
        value: key,
        options: {
          ifVersion: 0,
          index: [
            ['i', key],
            ['j', 'b'],
          ],
        },
      }))
      const appends = keys.map((_, n): Operation => ({ op: 'append', stream: 's', group: group(n + 1, n + 1), expected: n }))
      await store.batch([...sets, ...appends])
      expect((await store.list('i', {})).items.map(({ key }) => key)).toEqual(keys)
      expect(await all(store.read('s'))).toHaveLength(100)
      await store.batch(keys.slice(1).map((key) => ({ op: 'delete', key })))
      expect((await store.list('j', {})).items).toEqual([{ key: keys[0], value: keys[0] }])
    })
  })

  describe('what is long', () => {
    test('is counted right while entries come and go', { timeout: 30_000 }, async () => {
      const store = await fresh()
      const place = (n: number, index = 'i'): Operation => {
        const sort = String(n).padStart(6, '0')
        return { op: 'set', key: `k${sort}`, value: n, options: { index: [[index, sort]] } }
      }
      await store.batch(Array.from({ length: 10_000 }, (_, n) => place(n)))
      const counts = [store.count('i'), store.count('i'), store.count('i', { from: '005000' })]
      for (let n = 0; n < 40; n++) {
        await store.batch([place(20_000 + n), place(n * 200, 'other')])
        await new Promise((resolve) => setImmediate(resolve))
      }
      await store.delete('k009999')
      expect(await store.count('i')).toBe(9_999)
      expect(await store.count('i', { from: '020000' })).toBe(40)
      for (const count of await Promise.all(counts.slice(0, 2))) expect(count).toBeGreaterThan(9_900)
      expect(await counts[2]).toBeGreaterThan(4_900)
    })

    test('is listed and read in order, whether it is large or small', async () => {
      const store = await fresh()
      const texts = Array.from({ length: 12 }, (_, n) => `${n}${n % 3 === 1 ? LARGE : ''}`)
      for (const [n, text] of texts.entries()) {
        await store.set(`k${n}`, text, { index: [['i', String.fromCharCode(97 + n)]] })
        await store.append('s', { first: n + 1, last: n + 1, text })
      }
      const page = await store.list('i', { limit: 11 })
      expect(page.items.map(({ value }) => value)).toEqual(texts.slice(0, 11))
      expect((await store.list('i', { after: page.next ?? '' })).items.map(({ key }) => key)).toEqual(['k11'])
      expect((await all(store.read('s'))).map(({ text }) => text)).toEqual(texts)
      expect((await all(store.read('s', { after: 1, limit: 3 }))).map(({ text }) => text)).toEqual(texts.slice(1, 4))
    })
  })
}
