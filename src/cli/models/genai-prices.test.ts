import { expect, test } from 'vitest'
import { fromGenaiPrices } from './genai-prices.ts'

const DAY = '2026-11-18'
const model = (id: string, prices: unknown, more: object = {}) => ({ id, match: { equals: id }, prices, ...more })
const rowsIn = (list: readonly unknown[]) =>
  fromGenaiPrices((id) => list.find((each) => each !== null && typeof each === 'object' && 'id' in each && each.id === id), DAY)
const rowsOf = (vendor: string, ...models: readonly unknown[]) => rowsIn([{ id: vendor, models }])

test('a model has its prices and its window under each of its names', () => {
  const match = { or: [{ starts_with: 'gpt-9' }, { or: [{ equals: 'gpt9' }] }, { regex: '^x' }, { contains: 'y' }] }
  const prices = { input_mtok: 1, output_mtok: 8, cache_read_mtok: 0.1, cache_write_mtok: 1.25, input_audio_mtok: 40 }
  const row = { input: 1, output: 8, cacheRead: 0.1, cacheWrite: 1.25, contextWindow: 400_000 }
  expect(rowsOf('openai', { id: 'gpt-9', match, prices, context_window: 400_000 })).toEqual({ 'openai/gpt-9': row, 'openai/gpt9': row })
})

test('of tiers the first counts, of dates the one that has begun, of hours that of most', () => {
  const tiered = { input_mtok: { base: 2, tiers: [{ start: 200_000, price: 4 }] }, output_mtok: 9 }
  const dated = [
    { prices: { input_mtok: 5, output_mtok: 6 } },
    { constraint: { start_date: '2026-03-01' }, prices: { input_mtok: 3, output_mtok: 4 } },
    { constraint: { start_date: '2026-11-19' }, prices: { input_mtok: 1, output_mtok: 2 } },
    { constraint: { start_time: '00:30:00Z', end_time: '16:30:00Z' }, prices: { input_mtok: 7, output_mtok: 8 } },
  ]
  expect(rowsOf('google', model('tiered', tiered), model('dated', dated))).toEqual({
    'google/tiered': { input: 2, output: 9 },
    'google/dated': { input: 3, output: 4 },
  })
})

test('a preview counts for the model, and one that is over for nothing', () => {
  const [early, now] = [
    { input_mtok: 1, output_mtok: 1 },
    { input_mtok: 2, output_mtok: 2 },
  ]
  expect(rowsOf('google', model('a-preview', early), model('b-preview', early), model('b', now))).toEqual({
    'google/a': { input: 1, output: 1 },
    'google/b': { input: 2, output: 2 },
  })
})

test('vendors have our names, and others are left out, as is what has no price by token', () => {
  const price = { input_mtok: 1, output_mtok: 2 }
  const lists = ['x-ai', 'fireworks', 'somebody'].map((id) => ({
    id,
    models: [model('m', price), model('images', { requests_kcount: 4 })],
  }))
  expect(Object.keys(rowsIn(lists))).toEqual(['fireworks/accounts/fireworks/models/m', 'xai/m'])
})

test.each([
  ['nothing', []],
  ['other things', [1, null, 'openai', { id: 'openai' }, { id: 'openai', models: 'gpt-5' }]],
  ['a model of nothing', [{ id: 'openai', models: [null, {}, { id: 5, match: 5, prices: 5 }] }]],
  [
    'names that are none',
    [{ id: 'openai', models: [model('a b', { input_mtok: 1, output_mtok: 1 }), model('', { input_mtok: 1, output_mtok: 1 })] }],
  ],
  ['rules in rules', [{ id: 'openai', models: [{ id: null, match: nested(10_000), prices: { input_mtok: 1, output_mtok: 1 } }] }]],
])('a list of %s gives no row, and no failure', (_, list) => {
  expect(rowsIn(list)).toEqual({})
})

function nested(levels: number): unknown {
  let rule: unknown = { equals: 'deep' }
  for (let level = 0; level < levels; level++) rule = { or: [rule] }
  return rule
}
