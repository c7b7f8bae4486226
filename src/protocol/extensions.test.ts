import { expect, test } from 'vitest'
import { uampIn } from './extensions.ts'

test.each([undefined, null, {}, { uamp: null }, { uamp: [1] }, { uamp: 'no' }])('%j has nothing of ours', (slot) => {
  expect(uampIn(slot)).toEqual({})
})

test('what is ours is given as it is', () => {
  const uamp = { mode: 'ask' }
  expect(uampIn({ uamp, other: 1 })).toBe(uamp)
})
