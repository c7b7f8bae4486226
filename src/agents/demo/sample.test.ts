import { expect, test } from 'vitest'
import { sample } from './sample.ts'

function valuesIn(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 1
  return Object.values(value).reduce<number>((sum, member) => sum + valuesIn(member), 1)
}

const nested = (levels: number, wrap: (inner: object) => object): object =>
  levels === 0 ? { type: 'string' } : wrap(nested(levels - 1, wrap))

const wide = Array.from({ length: 100 }, (_, index) => `p${index}`)

test.each([
  ['arrays in arrays', nested(3, (items) => ({ type: 'array', minItems: 100, items }))],
  ['objects in objects', nested(3, (inner) => ({ type: 'object', properties: Object.fromEntries(wide.map((key) => [key, inner])) }))],
  [
    'an object that is in itself',
    {
      $ref: '#/$defs/node',
      $defs: { node: { properties: Object.fromEntries(wide.slice(0, 5).map((key) => [key, { $ref: '#/$defs/node' }])) } },
    },
  ],
  ['arrays of nothing', { type: 'array', minItems: 100, items: { type: 'array', minItems: 100 } }],
  ['texts that are long', { type: 'array', minItems: 100, items: { type: 'string', minLength: 10_000 } }],
  ['a text that stands there once', nested(2, (items) => ({ type: 'array', minItems: 100, items })), 'x'.repeat(50_000)],
])('a sample of %s has a bound', (_, schema, text?: string) => {
  const asked =
    text === undefined ? schema : (JSON.parse(JSON.stringify(schema).replace('"type":"string"', `"const":"${text}"`)) as unknown)
  const made = sample(asked)
  expect(valuesIn(made)).toBeLessThanOrEqual(2_000)
  expect(JSON.stringify(made).length).toBeLessThan(300_000)
})

test('a sample that is not large is whole', () => {
  const city = { type: 'object', properties: { name: { type: 'string' }, size: { type: 'integer', minimum: 3 } } }
  expect(sample({ type: 'array', minItems: 2, items: city })).toEqual([
    { name: 'text', size: 3 },
    { name: 'text', size: 3 },
  ])
})
