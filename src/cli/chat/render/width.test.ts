import { expect, test } from 'vitest'
import { cut, rowsOf, widthOf } from './width.ts'

test.each([
  ['abc', 3],
  ['日本', 4],
  ['e\u0301', 1],
  ['👩‍👩‍👧‍👦', 2],
  ['❤️', 2],
  ['…─', 2],
])('%s takes %i columns', (text, width) => {
  expect(widthOf(text)).toBe(width)
})

test('texts are cut between characters', () => {
  expect(cut('abcdef', 4)).toBe('abc…')
  expect(cut('日本語', 4)).toBe('日…')
  expect(cut('abc', 3)).toBe('abc')
  expect(rowsOf('ab日本c', 3)).toEqual(['ab', '日', '本c'])
  expect(rowsOf('', 3)).toEqual([''])
})
