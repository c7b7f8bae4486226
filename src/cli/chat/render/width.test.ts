import { expect, test } from 'vitest'
import { cut, graphemes, rowsOf, widthOf } from './width.ts'

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

test('a long text is divided as a short one is, and soon', () => {
  const family = '👩‍👩‍👧‍👦'
  for (const part of [family, '🇩🇪', 'e\u0301', '日', 'a\n']) {
    const whole = graphemes(part)
    const expected = Array.from({ length: 300 }, () => whole).flat()
    expect(graphemes(part.repeat(300)), part).toEqual(expected)
  }
  const begun = performance.now()
  expect(graphemes('line of a paste é\n'.repeat(20_000))).toHaveLength(360_000)
  expect(performance.now() - begun).toBeLessThan(10_000)
})
