import { expect, test } from 'vitest'
import { rangeOf } from './http-range.ts'

test.each([
  ['bytes=2-4', { start: 2, end: 5 }],
  ['bytes=7-', { start: 7, end: 10 }],
  ['bytes=-3', { start: 7, end: 10 }],
  ['bytes=-99', { start: 0, end: 10 }],
  ['bytes=5-99', { start: 5, end: 10 }],
  [' BYTES=0-0 ', { start: 0, end: 1 }],
  ['bytes=10-', 'unsatisfiable'],
  ['bytes=-0', 'unsatisfiable'],
  [null, undefined],
  ['bytes=-', undefined],
  ['bytes=5-2', undefined],
  ['bytes=1-2,4-5', undefined],
  ['lines=1-2', undefined],
])('%s of ten bytes', (header, range) => {
  expect(rangeOf(header, 10)).toEqual(range)
})
