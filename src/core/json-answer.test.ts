import fc from 'fast-check'
import { expect, test } from 'vitest'
import { jsonAnswer, jsonPieces } from './json-answer.ts'

const joined = (value: unknown): string => [...jsonPieces(value)].join('')

test('in pieces it is what JSON.stringify makes of it', () => {
  fc.assert(fc.property(fc.jsonValue(), (value) => joined(value) === JSON.stringify(value)))
})

test.each([
  ['text', 'x"\n\u0000é'.repeat(200_000)],
  ['pairs at every cut', `a${'😀'.repeat(300_000)}`],
  ['half a pair', '\ud83d'.repeat(300_000)],
  ['many small members', Array.from({ length: 100_000 }, (_, n) => ({ n, text: `t${n}`, none: undefined }))],
  ['empty ones beside a large one', { a: [], b: {}, c: 'x'.repeat(500_000), d: null, e: undefined, f: [undefined] }],
  ['a large one deep inside', { output: [{ content: [{ text: 'x'.repeat(600_000), annotations: [] }] }] }],
])('%s', (_, value) => {
  expect(joined(value) === JSON.stringify(value)).toBe(true)
  expect(Math.max(...[...jsonPieces(value)].map((piece) => piece.length))).toBeLessThan(6 * 300_000)
})

test('a small answer is one response, a large one is streamed', async () => {
  const small = jsonAnswer({ a: 1 }, { 'x-id': '7' })
  expect(small).toBeInstanceOf(Response)
  expect(await (small as Response).json()).toEqual({ a: 1 })
  const large = jsonAnswer({ a: 'x'.repeat(1_000_000) }, { 'x-id': '7' })
  expect(large).toMatchObject({ status: 200, headers: { 'content-type': 'application/json', 'x-id': '7' } })
})
