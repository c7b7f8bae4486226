import { expect, test } from 'vitest'
import * as z from 'zod/mini'
import { parseParams } from './rpc-params.ts'

const Params = z.object({ path: z.string(), line: z.nullish(z.number()) })

test('parameters, or which of them is wrong', () => {
  expect(parseParams(Params, { path: '/a', more: 1 })).toEqual({ path: '/a' })
  expect(() => parseParams(Params, { path: 1 })).toThrow('"path" must be a string, not a number')
  expect(() => parseParams(Params, undefined)).toThrow('"path" must be a string, but is missing')
})
