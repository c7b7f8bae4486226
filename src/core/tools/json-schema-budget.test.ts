import { describe, expect, test } from 'vitest'
import { mistakesIn, type JsonSchema } from './json-schema.ts'

const many = <T>(length: number, make: (index: number) => T): T[] => Array.from({ length }, (_, index) => make(index))
const object = (length: number, make: (index: number) => unknown) => Object.fromEntries(many(length, (index) => [`n${index}`, make(index)]))
/** The same small schema many times over: each check costs little, but all together take forever. */
const again = (times: number, schema: object): JsonSchema => ({ allOf: many(times, () => ({ $ref: '#/$defs/s' })), $defs: { s: schema } })

const TEXT = 'x'.repeat(4 * 1024 * 1024)
const WIDE = object(10_000, () => 1)

/** Schemas of some 78 KB and of 4 MB, with values that are costly to check. */
const HOSTILE: [name: string, schema: () => JsonSchema, value: () => unknown][] = [
  [
    'an enum of objects, for each entry',
    () => ({ items: { not: { enum: many(5_000, (n) => ({ n })) } } }),
    () => many(5_000, () => ({ n: -1 })),
  ],
  [
    'an enum of texts as long as the value, again and again',
    () => again(100, { not: { enum: many(400, (n) => `${'x'.repeat(9_990)}${1e9 + n}`) } }),
    () => `${'x'.repeat(9_990)}${1e9 - 1}9`,
  ],
  ['an enum of 4 MB, again and again', () => again(1_000, { not: { enum: many(300_000, (n) => `e${n}`) } }), () => 'none'],
  ['a large constant, again and again', () => again(1_000, { const: object(5_000, (n) => n) }), () => object(5_000, (n) => n)],
  ['the length of a long text, again and again', () => again(1_500, { minLength: TEXT.length - 5 }), () => TEXT],
  [
    'a length that has to be counted, again and again',
    () => again(1_500, { maxLength: TEXT.length / 2 }),
    () => '😀'.repeat(TEXT.length / 2),
  ],
  ['no entry twice, again and again', () => again(1_500, { uniqueItems: true }), () => many(20_000, (n) => n)],
  ['no entry twice, of large ones', () => ({ uniqueItems: true }), () => many(100, () => WIDE)],
  ['members that no schema is for, again and again', () => again(1_500, { properties: {} }), () => WIDE],
  ['entries that no schema is for, again and again', () => again(1_500, { items: true }), () => many(50_000, () => 1)],
  ['required names, again and again', () => again(1_500, { not: { required: many(5_000, (n) => `n${n}`) } }), () => ({ ...WIDE, n0: 1 })],
  ['names that depend on each other', () => again(1_500, { dependentRequired: object(2_000, () => ['n1', 'n2']) }), () => WIDE],
  ['schemas that depend on names', () => again(1_500, { dependentSchemas: object(2_000, () => true) }), () => ({ a: 1 })],
  ['patterns that do not count', () => again(1_500, { patternProperties: object(5_000, () => true) }), () => ({ a: 1 })],
  ['names that have to fit', () => again(1_500, { propertyNames: { maxLength: 9 } }), () => WIDE],
  ['forms that nothing fits', () => ({ items: { not: { oneOf: many(15_000, () => false) } } }), () => many(1_000, () => 1)],
  ['forms that everything fits', () => ({ items: { not: { oneOf: many(15_000, () => true) } } }), () => many(1_000, () => 1)],
  ['a long list of types, for each entry', () => ({ items: { not: { type: many(8_000, () => 'null') } } }), () => many(5_000, () => 1)],
  ['types, again and again', () => again(1_500, { not: { type: many(8_000, () => 'null') } }), () => 1],
  ['a long reference, for each entry', () => ({ items: { $ref: `#/${'a/'.repeat(35_000)}` } }), () => many(50_000, () => 1)],
  [
    'references of references',
    () => ({ $defs: object(127, (n) => ({ allOf: [{ $ref: `#/$defs/n${n + 1}` }, { $ref: `#/$defs/n${n + 1}` }] })), $ref: '#/$defs/n0' }),
    () => 1,
  ],
  ['members that nothing has seen, again and again', () => again(1_500, { unevaluatedProperties: true }), () => WIDE],
  ['members that all have seen', () => ({ unevaluatedProperties: false, ...again(1_500, { additionalProperties: true }) }), () => WIDE],
  ['entries that nothing has seen, again and again', () => again(1_500, { unevaluatedItems: true }), () => many(20_000, () => 1)],
  ['something that it must contain, again and again', () => again(1_500, { contains: { const: 1 } }), () => many(20_000, () => 1)],
]

describe('a schema of a stranger does not hold up the others:', () => {
  test.each(HOSTILE)('%s', (_, schema, value) => {
    expect(() => mistakesIn(schema(), value())).toThrow('too complicated')
  })

  test('a value that is far too deep', () => {
    let deep: unknown = []
    for (let level = 0; level < 100_000; level++) deep = [deep]
    expect(() => mistakesIn({ uniqueItems: true }, [deep, [deep]])).toThrow('too complicated')
    expect(() => mistakesIn({ const: [[deep]] }, [[[deep]]])).toThrow('too complicated')
  })
})

const REASONABLE: [name: string, schema: JsonSchema, value: () => unknown][] = [
  ['a long text', { type: 'string', minLength: 1, maxLength: 5_000_000 }, () => TEXT],
  ['a long text with its length counted', { type: 'string', maxLength: TEXT.length / 2 }, () => '😀'.repeat(TEXT.length / 2)],
  ['a list without repeats', { items: { type: 'integer', minimum: 0 }, uniqueItems: true }, () => many(10_000, (n) => n)],
  [
    'a large table',
    { items: { type: 'object', properties: { a: { type: 'string' }, b: { type: 'number' } } } },
    () => many(10_000, (n) => ({ a: 'x', b: n })),
  ],
  ['a large enum', { items: { enum: many(2_000, (n) => `country ${n}`) } }, () => many(20, () => 'country 1999')],
  ['a wide object', { additionalProperties: { type: 'number' } }, () => WIDE],
]

test.each(REASONABLE)('%s is checked', (_, schema, value) => expect(mistakesIn(schema, value())).toEqual([]))

test('what is told of a large schema, or of a long name, is short', () => {
  const told = [
    ...mistakesIn({ enum: many(5_000, (n) => `choice ${n}`) }, 'x'),
    ...mistakesIn({ const: object(5_000, (n) => n) }, 'x'),
    ...mistakesIn({ type: many(5_000, () => 'null') }, 'x'),
    ...mistakesIn({ additionalProperties: false }, { [TEXT]: 1 }),
    ...mistakesIn({ required: [TEXT] }, {}),
  ]
  expect(told).toHaveLength(5)
  for (const mistake of told) expect(mistake.length).toBeLessThan(700)
})

test('keywords of a wrong type say nothing', () => {
  const odd = { toString: 1 }
  const schema = {
    required: [odd, 1],
    dependentRequired: { a: 5, b: [odd] },
    type: ['object', odd],
    $ref: '#/%',
    minContains: odd,
    enum: 'x',
  }
  expect(mistakesIn(schema as unknown as JsonSchema, { a: 1, b: 2 })).toEqual([])
  expect(mistakesIn({ type: [odd] }, 1)).toHaveLength(1)
})
