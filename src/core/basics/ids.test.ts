import { expect, test } from 'vitest'
import { timeOrderedIds } from './ids.ts'

const UUID_7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

test('ids sort in the order they were made, within a millisecond and when the clock is set back', () => {
  let now = 1_800_000_000_000
  const newId = timeOrderedIds(() => now)
  const ids = Array.from({ length: 20_000 }, (_, index) => {
    if (index === 10_000) now -= 3_600_000
    return newId()
  })
  now += 7_200_000
  ids.push(newId())
  expect(ids.toSorted()).toEqual(ids)
  expect(new Set(ids).size).toBe(ids.length)
  for (const id of ids) expect(id).toMatch(UUID_7)
})
