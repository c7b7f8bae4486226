import { expect, test } from 'vitest'
import { costOf, MODELS, priceOf, PRICES } from './prices.ts'
import { verifies } from '../../../test/support/verifies.ts'

test.each([
  ['openai', 'gpt-5', 'openai/gpt-5'],
  ['openai', 'gpt-5-2025-08-07', 'openai/gpt-5'],
  ['openai', 'gpt-5-mini-2025-08-07', 'openai/gpt-5-mini'],
  ['anthropic', 'claude-sonnet-4-5-20250929', 'anthropic/claude-sonnet-4-5'],
  ['anthropic', 'claude-sonnet-4-20250514', 'anthropic/claude-sonnet-4'],
  ['anthropic', 'claude-sonnet-4-5-latest', 'anthropic/claude-sonnet-4-5'],
  ['google', 'gemini-2.5-flash-preview-09-2025', 'google/gemini-2.5-flash'],
  ['google', 'gemini-2.5-flash-lite', 'google/gemini-2.5-flash-lite'],
  ['google', 'gemini-3-pro-preview', 'google/gemini-3-pro'],
  ['mistral', 'mistral-large-latest', 'mistral/mistral-large'],
])('%s %s costs what %s does', (provider, model, known) => {
  expect(PRICES[known]).toBeDefined()
  expect(priceOf(provider, model)).toBe(PRICES[known])
})

test.each([
  ['openai', 'gpt-5-codex-ultra'],
  ['openai', 'toString'],
  ['ollama', 'llama4'],
  ['openai', 'gpt-50'],
])('nobody knows what %s %s costs', (provider, model) => expect(priceOf(provider, model)).toBeUndefined())

test('a name that ends in a long number and is no version is looked at once', () => {
  // Cut in every way, 100 digits would never come to an end.
  expect(priceOf('openai', `gpt-5-${'1'.repeat(100)}x`)).toBeUndefined()
  expect(priceOf('openai', `gpt-5-${'1'.repeat(100)}`)).toBe(PRICES['openai/gpt-5'])
})

test('every price of the table is one', () => {
  for (const [name, { input, output, cacheRead, cacheWrite }] of Object.entries(PRICES)) {
    for (const price of [input, output, cacheRead ?? 0, cacheWrite ?? 0]) expect(price, name).toBeGreaterThanOrEqual(0)
    expect(cacheRead ?? 0, name).toBeLessThanOrEqual(input)
  }
})

test('most models of the table have a window, and none is nonsense', () => {
  const windows = Object.values(MODELS).flatMap(({ contextWindow }) => contextWindow ?? [])
  expect(windows.length).toBeGreaterThan(Object.keys(MODELS).length / 2)
  for (const window of windows) expect(Number.isInteger(window) && window >= 512 && window <= 20_000_000, String(window)).toBe(true)
})

verifies('model.cost-cached', 'cached tokens cost what input does, where they have no price of their own', () => {
  const usage = { input_tokens: 100, input_uncached: 40, cache_read: 50, cache_write: 10, output: 5, reasoning: 3 }
  expect(costOf(usage, { input: 10, output: 100 }).input_cost).toBeCloseTo(100 * 10e-6, 12)
  const cost = costOf(usage, { input: 10, output: 100, cacheRead: 1, cacheWrite: 12 })
  expect(cost.input_cost).toBeCloseTo((40 * 10 + 50 * 1 + 10 * 12) / 1e6, 12)
  // Reasoning is a part of the output.
  expect(cost.output_cost).toBeCloseTo(500e-6, 12)
})

test('without the exact fields the vendor’s own count', () => {
  expect(costOf({ input_tokens: 1000, output_tokens: 10 }, { input: 1, output: 2 })).toEqual({
    input_cost: 0.001,
    output_cost: 0.00002,
    total_cost: 0.00102,
    currency: 'USD',
  })
})
