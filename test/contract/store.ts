import { afterEach, describe, expect, test } from 'vitest'
import type { ListRequest, Store } from '../../src/core/ports/store.ts'
import type { Json } from '../../src/protocol/json.ts'
import { batchTests } from './store-batches.ts'
import { storeModelTest } from './store-model.ts'
import { all, group, streamTests } from './store-streams.ts'
import { upkeepTests } from './store-upkeep.ts'

/** What every store must do. `open` gives an empty store that takes the time from `now`. */
export function storeContract(name: string, open: (now: () => number) => Store | Promise<Store>): void {
  describe(`store: ${name}`, () => {
    const opened: Store[] = []
    let time = 0

    async function fresh(): Promise<Store> {
      time = 1_000
      const store = await open(() => time)
      opened.push(store)
      return store
    }

    afterEach(async () => {
      await Promise.all(opened.splice(0).map((store) => store.close()))
    })

    streamTests(fresh)
    batchTests(fresh)
    upkeepTests(fresh, (ms) => {
      time += ms
    })

    describe('records', () => {
      test('gives back a copy of the value, and its version', async () => {
        const store = await fresh()
        const value = { text: 'a\0\ud800é😀', list: [1, null, 2.5, true], nested: { deep: {} } }
        const kept = structuredClone(value)
        const set = store.set('k', value)
        value.list.push(9)
        const version = await set
        const stored = await store.get('k')
        expect(stored).toEqual({ value: kept, version })
        Object.assign(stored?.value ?? {}, { list: [] })
        expect(await store.get('k')).toEqual({ value: kept, version })
        expect(await store.get('none')).toBeUndefined()
      })

      test('keeps a key called __proto__', async () => {
        const store = await fresh()
        const value = JSON.parse('{"__proto__":{"a":1}}') as Json
        await store.set('__proto__', value, { index: [['__proto__', 'x']] })
        expect(JSON.stringify((await store.get('__proto__'))?.value)).toBe('{"__proto__":{"a":1}}')
        expect((await store.list('__proto__', {})).items).toHaveLength(1)
      })

      test('raises the version with every set, also after a delete or an expiry', async () => {
        const store = await fresh()
        const versions = [await store.set('k', 1), await store.set('k', 1)]
        await store.delete('k')
        versions.push(await store.set('k', 1, { ttlMs: 10 }))
        time += 10
        versions.push(await store.set('k', 1, { ifVersion: 0 }))
        expect(versions.every((version, at) => version > (versions[at - 1] ?? 0))).toBe(true)
      })

      test('sets only at the version that is asked for', async () => {
        const store = await fresh()
        await expect(store.set('k', 1, { ifVersion: 1 })).rejects.toMatchObject({ code: 'conflict' })
        const version = await store.set('k', 1, { ifVersion: 0 })
        await expect(store.set('k', 2, { ifVersion: 0 })).rejects.toMatchObject({ code: 'conflict' })
        const next = await store.set('k', 2, { ifVersion: version })
        await expect(store.set('k', 3, { ifVersion: version })).rejects.toMatchObject({ code: 'conflict' })
        expect(await store.get('k')).toEqual({ value: 2, version: next })
      })

      test('lets one of many win', async () => {
        const store = await fresh()
        const outcomes = await Promise.allSettled(Array.from({ length: 20 }, (_, at) => store.set('k', at, { ifVersion: 0 })))
        expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
        expect((await store.get('k'))?.value).toBe(0)
      })

      test('forgets an expired record at once', async () => {
        const store = await fresh()
        const version = await store.set('k', 1, { ttlMs: 100, index: [['i', 'a']] })
        await store.set('stays', 2, { index: [['i', 'b']] })
        time += 99
        expect((await store.get('k'))?.version).toBe(version)
        time += 1
        expect(await store.get('k')).toBeUndefined()
        expect((await store.list('i', {})).items).toEqual([{ key: 'stays', value: 2 }])
        await expect(store.set('k', 1, { ifVersion: version })).rejects.toMatchObject({ code: 'conflict' })
      })

      test('takes the time to live from the last set', async () => {
        const store = await fresh()
        await store.set('k', 1, { ttlMs: 100 })
        await store.set('k', 2)
        await store.set('l', 1, { ttlMs: 100 })
        await store.set('l', 2, { ttlMs: 200 })
        time += 150
        expect((await store.get('k'))?.value).toBe(2)
        expect((await store.get('l'))?.value).toBe(2)
      })

      test('deletes', async () => {
        const store = await fresh()
        await store.set('k', 1, { index: [['i', 'a']] })
        await store.delete('k')
        await store.delete('none')
        expect(await store.get('k')).toBeUndefined()
        expect((await store.list('i', {})).items).toEqual([])
      })

      test('keeps serving while many records expire', async () => {
        const store = await fresh()
        for (let round = 0; round < 5; round++) {
          await Promise.all(Array.from({ length: 300 }, (_, at) => store.set(`${round}-${at}`, at, { ttlMs: 10, index: [['i', 'a']] })))
          time += 60_000
          await store.set('k', round, { index: [['i', 'b']] })
          expect(await store.list('i', { limit: 5 })).toEqual({ items: [{ key: 'k', value: round }], next: undefined })
        }
      })
    })

    describe('lists', () => {
      test('goes through an index page by page, in both directions', async () => {
        const store = await fresh()
        const sorted = ['', 'a', 'a', 'a', 'b', '\uff5e', '😀'].map((sort, at) => ({ sort, key: `k${at}` }))
        for (const { sort, key } of sorted.toReversed())
          await store.set(key, sort, {
            index: [
              ['i', sort],
              ['other', 'x'],
            ],
          })
        const keys = await pages(store, 'i', { limit: 100 })
        // Those with the same sort key come in an order of the store's own.
        expect(keys.toSorted()).toEqual(sorted.map(({ key }) => key))
        expect(keys.map((key) => sorted.find((one) => one.key === key)?.sort)).toEqual(sorted.map(({ sort }) => sort))
        for (const limit of [1, 2, 3, 7, 8]) {
          expect(await pages(store, 'i', { limit })).toEqual(keys)
          expect(await pages(store, 'i', { limit, descending: true })).toEqual(keys.toReversed())
        }
        expect(await store.list('none', {})).toEqual({ items: [], next: undefined })
      })

      test('has 100 items in a page, and no next after the last', async () => {
        const store = await fresh()
        await Promise.all(Array.from({ length: 101 }, (_, at) => store.set(`k${at}`, at, { index: [['i', String(at).padStart(4, '0')]] })))
        const first = await store.list('i', {})
        expect(first.items).toHaveLength(100)
        expect(first.next).toBeTypeOf('string')
        expect(await store.list('i', { after: first.next ?? '' })).toEqual({ items: [{ key: 'k100', value: 100 }], next: undefined })
        expect((await store.list('i', { limit: 101 })).next).toBeUndefined()
      })

      test('counts what an index has, or has from a sort key on', async () => {
        const store = await fresh()
        expect(await store.count('i')).toBe(0)
        const sorts = ['a', 'b', 'b', 'c', '\uff5e', '😀']
        for (const [at, sort] of sorts.entries())
          await store.set(`k${at}`, at, {
            index: [
              ['i', sort],
              ['other', 'x'],
            ],
          })
        expect(await store.count('i')).toBe(6)
        expect(await store.count('i', { from: 'b' })).toBe(5)
        expect(await store.count('i', { from: '\uff5e' })).toBe(2)
        expect(await store.count('i', { from: 'a😀' })).toBe(5)
        await store.set('k0', 0, { index: [['i', 'd']] })
        expect([await store.count('i'), await store.count('other')]).toEqual([6, 5])
        await store.delete('k1')
        await store.set('k2', 2)
        expect([await store.count('i'), await store.count('other')]).toEqual([4, 3])
        const refused = store.batch([
          { op: 'set', key: 'new', value: 1, options: { index: [['i', 'z']] } },
          { op: 'delete', key: 'k0' },
          { op: 'delete', key: 'x', ifVersion: 7 },
        ])
        await expect(refused).rejects.toMatchObject({ code: 'conflict' })
        expect(await store.count('i')).toBe(4)
      })

      test('stays in place while records come and go', async () => {
        const store = await fresh()
        for (const key of ['b', 'd', 'f']) await store.set(key, key, { index: [['i', key]] })
        const first = await store.list('i', { limit: 2 })
        await store.set('a', 'a', { index: [['i', 'a']] })
        await store.set('e', 'e', { index: [['i', 'e']] })
        await store.delete('d')
        const second = await store.list('i', { limit: 5, after: first.next ?? '' })
        expect(second.items.map(({ key }) => key)).toEqual(['e', 'f'])
      })

      test('moves a record with its sort key, and takes it out without one', async () => {
        const store = await fresh()
        await store.set('k', 1, {
          index: [
            ['i', 'a'],
            ['j', 'a'],
          ],
        })
        await store.set('l', 1, { index: [['i', 'b']] })
        await store.set('k', 2, { index: [['i', 'c']] })
        expect(await pages(store, 'i', {})).toEqual(['l', 'k'])
        expect(await pages(store, 'j', {})).toEqual([])
        await store.set('k', 3)
        expect(await pages(store, 'i', {})).toEqual(['l'])
      })

      test('begins behind a sort key, in both directions, whatever the keys are', async () => {
        const store = await fresh()
        for (const [key, sort] of [
          ['z', 'a'],
          ['y', 'b'],
          ['a', 'b'],
          ['\u{1f600}', 'b'],
          ['b', 'c'],
        ] as const) {
          await store.set(key, 1, { index: [['i', sort]] })
        }
        const keys = async (page: ListRequest) => (await store.list('i', page)).items.map(({ key }) => key)
        expect(await keys({ afterSort: 'b' })).toEqual(['b'])
        expect(await keys({ afterSort: 'b', descending: true })).toEqual(['z'])
        expect(await keys({ afterSort: 'aa', limit: 1, descending: true })).toEqual(['z'])
        expect(await keys({ afterSort: 'c' })).toEqual([])
        const { items, next } = await store.list('i', { afterSort: 'a', limit: 2 })
        expect([items.length, (await store.list('i', { after: next as string })).items.length]).toEqual([2, 2])
      })

      test('refuses a cursor or a limit that makes no sense', async () => {
        const store = await fresh()
        for (const after of ['', 'x', '[]', '{}', 'null', '[1,2]']) {
          await expect(store.list('i', { after })).rejects.toMatchObject({ code: 'invalid_request' })
        }
        for (const limit of [0, -1, 1.5, NaN, Infinity])
          await expect(store.list('i', { limit })).rejects.toMatchObject({ code: 'invalid_request' })
      })
    })

    describe('batches', () => {
      test('does everything', async () => {
        const store = await fresh()
        await store.set('old', 1)
        await store.append('gone', group(1, 1))
        await store.batch([
          { op: 'set', key: 'k', value: { a: 1 }, options: { ifVersion: 0, index: [['i', 'a']] } },
          { op: 'delete', key: 'old' },
          { op: 'append', stream: 's', group: group(1, 2), expected: 0 },
          { op: 'append', stream: 's', group: group(3, 3), expected: 2 },
          { op: 'drop', stream: 'gone' },
        ])
        expect((await store.get('k'))?.value).toEqual({ a: 1 })
        expect(await pages(store, 'i', {})).toEqual(['k'])
        expect(await store.get('old')).toBeUndefined()
        expect(await store.last('s')).toBe(3)
        expect(await store.last('gone')).toBe(0)
        await store.batch([])
      })

      test('does nothing when one operation is refused', async () => {
        const store = await fresh()
        const version = await store.set('k', 1, { index: [['i', 'a']] })
        await store.append('s', group(1, 2))
        const rest = [
          {
            op: 'set',
            key: 'k',
            value: 2,
            options: {
              index: [
                ['i', 'b'],
                ['j', 'c'],
              ],
            },
          },
          { op: 'set', key: 'new', value: 2, options: { index: [['i', 'b']] } },
          { op: 'append', stream: 's', group: group(3, 3) },
          { op: 'append', stream: 'new', group: group(1, 1) },
          { op: 'drop', stream: 's' },
          { op: 'delete', key: 'k' },
        ] as const
        const refused = [
          { op: 'set', key: 'x', value: 1, options: { ifVersion: 7 } },
          { op: 'delete', key: 'x', ifVersion: 7 },
          { op: 'append', stream: 'x', group: group(2, 2), expected: 1 },
        ] as const
        for (const last of refused) {
          await expect(store.batch([...rest, last])).rejects.toMatchObject({ code: 'conflict' })
          expect(await store.get('k')).toEqual({ value: 1, version })
          expect(await store.get('new')).toBeUndefined()
          expect(await pages(store, 'i', {})).toEqual(['k'])
          expect(await pages(store, 'j', {})).toEqual([])
          expect(await all(store.read('s'))).toEqual([group(1, 2)])
          expect(await store.last('new')).toBe(0)
        }
      })

      test('sees what the operations before it did', async () => {
        const store = await fresh()
        const twice = { op: 'set', key: 'k', value: 1, options: { ifVersion: 0 } } as const
        await expect(store.batch([twice, twice])).rejects.toMatchObject({ code: 'conflict' })
        await store.batch([twice, { op: 'delete', key: 'k' }, { ...twice, value: 2 }])
        expect((await store.get('k'))?.value).toBe(2)
      })

      test('deletes only at the version that is asked for', async () => {
        const store = await fresh()
        const version = await store.set('k', 1)
        await expect(store.batch([{ op: 'delete', key: 'k', ifVersion: version + 1 }])).rejects.toMatchObject({ code: 'conflict' })
        await store.batch([{ op: 'delete', key: 'k', ifVersion: version }])
        await store.batch([{ op: 'delete', key: 'k', ifVersion: 0 }])
        expect(await store.get('k')).toBeUndefined()
      })

      test('does not disturb its neighbours', async () => {
        const store = await fresh()
        const outcomes = await Promise.allSettled([
          store.append('s', group(1, 1)),
          store.batch([
            { op: 'append', stream: 's', group: group(2, 2) },
            { op: 'delete', key: 'k', ifVersion: 1 },
          ]),
          store.append('s', group(2, 3), { expected: 1, sync: true }),
          store.set('k', 1, { ifVersion: 0, sync: true }),
          store.batch([{ op: 'append', stream: 's', group: group(4, 4), expected: 3 }], { sync: true }),
        ])
        expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled', 'fulfilled', 'fulfilled'])
        expect(await all(store.read('s'))).toEqual([group(1, 1), group(2, 3), group(4, 4)])
      })
    })

    test('refuses names that a database would confuse', async () => {
      const store = await fresh()
      for (const bad of ['a\0', 'a\ud800', '\udc00a']) {
        const refused = { code: 'invalid_request' }
        await expect(store.set(bad, 1)).rejects.toMatchObject(refused)
        await expect(store.set('k', 1, { index: [[bad, 'a']] })).rejects.toMatchObject(refused)
        await expect(store.set('k', 1, { index: [['i', bad]] })).rejects.toMatchObject(refused)
        await expect(store.get(bad)).rejects.toMatchObject(refused)
        await expect(store.delete(bad)).rejects.toMatchObject(refused)
        await expect(store.list(bad, {})).rejects.toMatchObject(refused)
        await expect(store.count(bad)).rejects.toMatchObject(refused)
        await expect(store.keys(bad, {})).rejects.toMatchObject(refused)
        await expect(store.append(bad, group(1, 1))).rejects.toMatchObject(refused)
        await expect(all(store.read(bad))).rejects.toMatchObject(refused)
        await expect(store.last(bad)).rejects.toMatchObject(refused)
        await expect(store.drop(bad)).rejects.toMatchObject(refused)
      }
      expect(await store.get('k')).toBeUndefined()
    })

    test('finishes what was begun when it is closed, and then refuses', async () => {
      const store = await fresh()
      const begun = [store.append('s', group(1, 1), { sync: true }), store.set('k', 1)]
      const closed = store.close()
      await Promise.all([...begun, closed, store.close()])
      const refusals: Promise<unknown>[] = [
        store.append('s', group(2, 2)),
        all(store.read('s')),
        store.last('s'),
        store.drop('s'),
        store.get('k'),
        store.set('k', 2),
        store.delete('k'),
        store.list('i', {}),
        store.count('i'),
        store.keys('i', {}),
        all(store.scan()),
        store.bytes(),
        store.tidy(),
        store.batch([]),
      ]
      for (const refusal of refusals) await expect(refusal).rejects.toMatchObject({ message: 'The store is closed' })
    })

    storeModelTest(fresh, (ms) => {
      time += ms
    })
  })
}

async function pages(store: Store, index: string, page: { readonly limit?: number; readonly descending?: boolean }): Promise<string[]> {
  const keys: string[] = []
  let after: string | undefined
  do {
    const { items, next } = await store.list(index, { ...page, ...(after !== undefined && { after }) })
    keys.push(...items.map(({ key }) => key))
    after = next
  } while (after !== undefined)
  return keys
}
