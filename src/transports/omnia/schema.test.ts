import { expect, test } from 'vitest'
import * as z from 'zod/mini'
import { check } from './schema.ts'

test('a message with thousands of mistakes is looked at up to the first', () => {
  let looked = 0
  const entry = z.custom(() => {
    looked++
    return false
  })
  expect(() => check(z.object({ parts: z.array(entry) }), { parts: Array.from({ length: 10_000 }, () => ({})) })).toThrow('"parts.0"')
  expect(looked).toBe(1)
})
