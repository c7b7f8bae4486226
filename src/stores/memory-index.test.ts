import fc from 'fast-check'
import { expect, test } from 'vitest'
import { SortedKeys } from './memory-index.ts'

const text = fc.oneof(fc.string({ maxLength: 3 }), fc.constantFrom('a', 'b', '～', '😀'))

/** Compares by code point, as databases do. */
const order = (a: readonly [string, string], b: readonly [string, string]): number =>
  Buffer.compare(Buffer.from(a[0]), Buffer.from(b[0])) || Buffer.compare(Buffer.from(a[1]), Buffer.from(b[1]))

test('keys are walked in order, both ways, from any cursor, however many there are', () => {
  const places = fc.uniqueArray(fc.tuple(text, text), { selector: (place) => JSON.stringify(place), maxLength: 60 })
  fc.assert(
    fc.property(places, fc.nat(), fc.boolean(), (added, seed, descending) => {
      const keys = new SortedKeys()
      // Enough for several pieces.
      const all = added.flatMap(([sort, key]) => Array.from({ length: 40 }, (_, n): [string, string] => [sort, `${key}${n}`]))
      const unique = [...new Map(all.map((place) => [JSON.stringify(place), place])).values()]
      for (const [sort, key] of unique) keys.add(sort, key)
      const gone = unique.filter((_, n) => (n * 7 + seed) % 3 === 0)
      for (const [sort, key] of gone) keys.remove(sort, key)
      const left = unique.filter((place) => !gone.includes(place)).sort(order)
      expect(keys.size).toBe(left.length)
      const expected = descending ? left.toReversed() : left
      const walked = [...keys.walk(undefined, descending)]
      expect(walked.map(({ cursor }) => JSON.parse(cursor) as unknown)).toEqual(expected)
      if (unique.length === 0) return
      // Also from a cursor whose entry was removed.
      const from = unique[seed % unique.length] as [string, string]
      const behind = expected.filter((place) => (descending ? order(place, from) < 0 : order(place, from) > 0))
      expect([...keys.walk(JSON.stringify(from), descending)].map(({ key }) => key)).toEqual(behind.map(([, key]) => key))
      expect(keys.countFrom(from[0])).toBe(left.filter(([sort]) => Buffer.compare(Buffer.from(sort), Buffer.from(from[0])) >= 0).length)
    }),
    { numRuns: 40 },
  )
})
