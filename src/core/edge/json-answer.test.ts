import fc from 'fast-check'
import { expect, test } from 'vitest'
import { jsonAnswer, jsonPieces } from './json-answer.ts'
import type { Streamed } from '../ports/transport.ts'

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

test('a small answer is one response; a large one is streamed, and counts until it is written or its client has left', async () => {
  let held = 0
  const gateway = {
    hold: (_: unknown, bytes: number) => {
      held += bytes
      return { set: () => undefined, grow: () => undefined, close: () => void (held = 0) }
    },
  }
  const options = { headers: { 'x-id': '7' }, gateway, principal: { tenant: 't', id: 'alice', scopes: [] } }
  const small = jsonAnswer({ a: 1 }, options)
  expect(small).toBeInstanceOf(Response)
  expect(await (small as Response).json()).toEqual({ a: 1 })
  expect(held).toBe(0)
  const large = () => jsonAnswer({ a: 'x'.repeat(1_000_000) }, options) as Streamed
  const read = large()
  expect(read).toMatchObject({ status: 200, headers: { 'content-type': 'application/json', 'x-id': '7' } })
  expect(held).toBeGreaterThan(1_000_000)
  for await (const _ of read.frames);
  expect(held).toBe(0)
  const left = large()
  await left.frames[Symbol.asyncIterator]().return?.()
  expect(held).toBe(0)
})
