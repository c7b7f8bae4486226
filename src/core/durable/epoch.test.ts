import { expect, test } from 'vitest'
import { memoryStore } from '../../stores/memory.ts'
import { beginEpoch, lastNumber } from './epoch.ts'

test('every start is counted, also of two at the same moment', async () => {
  const store = memoryStore()
  expect(await beginEpoch(store)).toBe(1)
  const both = await Promise.all([beginEpoch(store), beginEpoch(store)])
  expect(new Set(both)).toEqual(new Set([2, 3]))
})

test('a session goes on where it was in the same epoch, and above all that may have been used in a later one', () => {
  expect(lastNumber(40, { epoch: 7, base: 0 }, 7)).toBe(40)
  // Three starts of the process committed nothing.
  const tries = [7, 8, 9, 10].map((epoch) => lastNumber(40, { epoch: 7, base: 0 }, epoch))
  for (const [index, number] of tries.slice(1).entries()) expect(number - (tries[index] as number)).toBeGreaterThan(10_000)
  // The previous process wrote its record and used numbers after its base, but committed none of them.
  const base = lastNumber(40, { epoch: 7, base: 0 }, 9)
  expect(lastNumber(40, { epoch: 9, base }, 10)).toBeGreaterThan(base + 10_000)
})

test('what the first version wrote has no epoch: numbers go on above the million that it skipped', () => {
  expect(lastNumber(5, {}, 1)).toBeGreaterThan(5 + 1_000_000 + 10_000)
  expect(lastNumber(5, {}, 2)).toBeGreaterThan(lastNumber(5, {}, 1))
})
