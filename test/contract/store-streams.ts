import { describe, expect, test } from 'vitest'
import type { Group, Store } from '../../src/core/ports/store.ts'

/** The part of the store's contract that is about streams. */
export function streamTests(fresh: () => Promise<Store>): void {
  describe('streams', () => {
    test('reads the groups in order, from any position', async () => {
      const store = await fresh()
      const groups = [group(1, 3), group(4, 4), group(10, 12)]
      for (const item of groups) await store.append('s', item)
      await store.append('other', group(1, 1))
      expect(await all(store.read('s'))).toEqual(groups)
      expect(await all(store.read('s', { after: 2 }))).toEqual(groups)
      expect(await all(store.read('s', { after: 3 }))).toEqual(groups.slice(1))
      expect(await all(store.read('s', { after: 4, limit: 1 }))).toEqual(groups.slice(2))
      expect(await all(store.read('s', { limit: 2 }))).toEqual(groups.slice(0, 2))
      expect(await all(store.read('s', { after: 12 }))).toEqual([])
      expect(await all(store.read('none'))).toEqual([])
    })

    test('reads more groups than fit a page, also while more are appended', async () => {
      const store = await fresh()
      const groups = Array.from({ length: 150 }, (_, at) => group(at + 1, at + 1))
      await Promise.all(groups.slice(0, 100).map((item) => store.append('s', item)))
      const seen: Group[] = []
      for await (const item of store.read('s')) {
        seen.push(item)
        const next = groups[99 + seen.length]
        if (next) await store.append('s', next)
      }
      expect(seen.slice(0, 100)).toEqual(groups.slice(0, 100))
      expect(seen).toEqual(groups.slice(0, seen.length))
      expect(await all(store.read('s', { after: 20, limit: 70 }))).toEqual(groups.slice(20, 90))
    })

    test('reads what was appended before, awaited or not', async () => {
      const store = await fresh()
      const appended = store.append('s', group(1, 2))
      expect(await all(store.read('s'))).toEqual([group(1, 2)])
      await appended
      const second = store.append('s', group(3, 3))
      expect(await store.last('s')).toBe(3)
      await second
    })

    test('knows the last position', async () => {
      const store = await fresh()
      expect(await store.last('s')).toBe(0)
      await store.append('s', group(1, 5))
      expect(await store.last('s')).toBe(5)
      await store.append('s', group(1_000_000_007, 1_000_000_008))
      expect(await store.last('s')).toBe(1_000_000_008)
    })

    test('refuses an append at a stale position, and only that one', async () => {
      const store = await fresh()
      await store.append('s', group(1, 2), { expected: 0 })
      const outcomes = await Promise.allSettled([
        store.append('s', group(3, 4), { expected: 2 }),
        store.append('s', group(3, 3), { expected: 2 }),
        store.append('s', group(5, 5), { expected: 4 }),
        store.append('t', group(1, 1), { expected: 1 }),
      ])
      expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled', 'rejected'])
      expect(outcomes[1]).toMatchObject({ reason: { code: 'conflict' } })
      expect(outcomes[3]).toMatchObject({ reason: { code: 'conflict' } })
      expect(await all(store.read('s'))).toEqual([group(1, 2), group(3, 4), group(5, 5)])
      expect(await store.last('t')).toBe(0)
    })

    test('refuses positions that overlap or run backwards', async () => {
      const store = await fresh()
      await store.append('s', group(1, 5))
      await expect(store.append('s', group(5, 6))).rejects.toMatchObject({ code: 'conflict' })
      await expect(store.append('s', group(2, 2))).rejects.toMatchObject({ code: 'conflict' })
      for (const [first, last] of [
        [0, 1],
        [8, 7],
        [6.5, 7],
        [6, Infinity],
        [NaN, NaN],
      ] as const) {
        await expect(store.append('s', group(first, last))).rejects.toMatchObject({ code: 'invalid_request' })
      }
      expect(await store.last('s')).toBe(5)
    })

    test('forgets a dropped stream, which then begins again', async () => {
      const store = await fresh()
      await store.append('s', group(1, 5))
      await store.append('t', group(1, 1))
      await store.drop('s')
      await store.drop('none')
      expect(await store.last('s')).toBe(0)
      expect(await all(store.read('s'))).toEqual([])
      await store.append('s', group(1, 1), { expected: 0 })
      expect(await all(store.read('s'))).toEqual([group(1, 1)])
      expect(await all(store.read('t'))).toEqual([group(1, 1)])
    })

    test('keeps any text as it is', async () => {
      const store = await fresh()
      const texts = ['', 'a\0b', '\ud83d', '\udc00\ud800', 'é 😀 \uffff', '{"a":1}\n{"b":2}\n', 'x'.repeat(300_000)]
      for (const [at, text] of texts.entries()) await store.append('s', { first: at + 1, last: at + 1, text })
      expect((await all(store.read('s'))).map(({ text }) => text)).toEqual(texts)
    })
  })
}

export function group(first: number, last: number): Group {
  return { first, last, text: `${first}..${last}` }
}

export async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const list: T[] = []
  for await (const item of items) list.push(item)
  return list
}
