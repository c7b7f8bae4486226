import { expect, test } from 'vitest'
import * as z from 'zod/mini'
import { parseParams } from './json-rpc.ts'
import { parseBody, parseObject, parseValue } from './parse.ts'

/** An array of which every entry is wrong, in several ways, and that counts how many were looked at. */
function wrong() {
  let looked = 0
  const entry = z.custom(() => {
    looked++
    return false
  })
  const schema = z.object({ messages: z.array(z.union([z.string(), z.object({ role: entry, content: entry })])) })
  return { schema, looked: () => looked }
}

const value = { messages: Array.from({ length: 10_000 }, () => ({})) }

test.each([
  ['a body', (schema: z.ZodMiniType) => parseBody(schema, JSON.stringify(value))],
  ['a value', (schema: z.ZodMiniType) => parseValue(schema, value)],
  ['parameters', (schema: z.ZodMiniType) => parseParams(schema, value)],
])('%s with thousands of mistakes is looked at up to the first', (_, parse) => {
  const { schema, looked } = wrong()
  expect(() => parse(schema)).toThrow('messages')
  expect(looked()).toBeLessThan(10)
})

test('the first mistake is told as before: of a union, where the alternative that came furthest is wrong', () => {
  const Part = z.discriminatedUnion('type', [z.object({ type: z.literal('text'), text: z.string() })])
  const schema = z.object({ messages: z.array(z.object({ content: z.union([z.string(), z.array(Part)]) })) })
  const messages = [{ content: 'fine' }, { content: [{ type: 'text', text: 'a' }, { type: 'text' }, { type: 'text' }] }, { content: 1 }]
  expect(() => parseValue(schema, { messages })).toThrow('"messages[1].content[1].text" must be a string, but is missing')
})

const asObject = (text: string) => parseObject(text, 'An event', (message) => new TypeError(message))

test('an object is given as it is', () => {
  expect(asObject(' {"type":"x","deep":[{}]} ')).toEqual({ type: 'x', deep: [{}] })
})

test.each([
  ['', 'An event is not JSON'],
  ['{', 'An event is not JSON'],
  ['null', 'An event must be a JSON object'],
  ['[1]', 'An event must be a JSON object'],
  ['"{}"', 'An event must be a JSON object'],
  [`{"a":${'['.repeat(64)}${']'.repeat(64)}}`, 'An event must nest at most 64 levels of objects and arrays'],
])('%s is refused', (text, message) => {
  expect(() => asObject(text)).toThrow(new TypeError(message))
})
