import fc from 'fast-check'
import { expect, test } from 'vitest'
import { jsonMistake } from './json-mistake.ts'

test.each([
  ['', 0, 'value'],
  ['{', 1, 'key or }'],
  ['{ "a" 1 }', 6, ':'],
  ['{ "a": 1, }', 10, 'key'],
  ['{ "a": 1 "b": 2 }', 9, ', or }'],
  ['[1, 2', 5, ', or ]'],
  ['[1,]', 3, 'value'],
  ['[\n  nonsense\n]', 4, 'value or ]'],
  ["{ 'a': 1 }", 2, 'key or }'],
  ['{} // why', 3, 'the end'],
  ['[1]]', 3, 'the end'],
  ['["a\nb"]', 1, 'value or ]'],
])('%j stops being JSON at %i, where %s is expected', (text, offset, wants) => {
  expect(jsonMistake(text)).toEqual({ offset, wants })
})

test('what is JSON has no mistake', () => {
  fc.assert(
    fc.property(fc.json(), (text) => {
      expect(jsonMistake(text)).toBeUndefined()
      expect(jsonMistake(JSON.stringify(JSON.parse(text), null, 2))).toBeUndefined()
    }),
  )
})

test('what is not JSON has one, at or before its end', () => {
  fc.assert(
    fc.property(fc.json(), fc.nat(), fc.constantFrom('', '{', ']', ',', ':', '"', 'x', '1'), (text, at, put) => {
      const place = at % (text.length + 1)
      const broken = text.slice(0, place) + put + text.slice(place + (put === '' ? 1 : 0))
      let isJson = true
      try {
        JSON.parse(broken)
      } catch {
        isJson = false
      }
      const mistake = jsonMistake(broken)
      if (isJson) return
      expect(mistake?.offset).toBeLessThanOrEqual(broken.length)
    }),
  )
})
