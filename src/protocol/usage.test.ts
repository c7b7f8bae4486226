import { expect, test } from 'vitest'
import { verifies } from '../../test/support/verifies.ts'
import { addUsage } from './usage.ts'

verifies('uamp:response:usage-delta', 'increments add up', () => {
  const first = addUsage(undefined, { input_tokens: 20, cached_tokens: 5, cost: { total_cost: 0.25, currency: 'USD' } })
  const second = addUsage(first, { output_tokens: 3, cost: { total_cost: 0.5 }, audio: { output_seconds: 1.5 } })
  expect(addUsage(second, { output_tokens: 4, audio: { input_seconds: 1, output_seconds: 1 } })).toEqual({
    input_tokens: 20,
    output_tokens: 7,
    cached_tokens: 5,
    cost: { total_cost: 0.75, currency: 'USD' },
    audio: { input_seconds: 1, output_seconds: 2.5 },
  })
})

test('what nobody reported is not there', () => {
  expect(addUsage({ output_tokens: 1 }, {})).toEqual({ output_tokens: 1 })
})
