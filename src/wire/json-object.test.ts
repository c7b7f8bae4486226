import { expect, test } from 'vitest'
import { parseObject } from './json-object.ts'

const parse = (text: string) => parseObject(text, 'An event', (message) => new TypeError(message))

test('an object is given as it is', () => {
  expect(parse(' {"type":"x","deep":[{}]} ')).toEqual({ type: 'x', deep: [{}] })
})

test.each([
  ['', 'This is not JSON'],
  ['{', 'This is not JSON'],
  ['null', 'An event must be a JSON object'],
  ['[1]', 'An event must be a JSON object'],
  ['"{}"', 'An event must be a JSON object'],
  [`{"a":${'['.repeat(64)}${']'.repeat(64)}}`, 'An event must nest at most 64 levels of objects and arrays'],
])('%s is refused', (text, message) => {
  expect(() => parse(text)).toThrow(new TypeError(message))
})
