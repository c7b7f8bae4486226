import { describe, expect, test } from 'vitest'
import { mistakesIn, type JsonSchema } from './json-schema.ts'

const tree: JsonSchema = {
  $ref: '#/$defs/node',
  $defs: {
    node: {
      type: 'object',
      properties: { name: { type: 'string' }, children: { type: 'array', items: { $ref: '#/$defs/node' } } },
      required: ['name'],
      additionalProperties: false,
    },
  },
}

/** A schema, values that fit, and values that do not. */
const rows: readonly [keyword: string, schema: JsonSchema, good: readonly unknown[], bad: readonly unknown[]][] = [
  ['type', { type: 'string' }, ['', 'a'], [1, null, {}, [], true]],
  ['type integer', { type: 'integer' }, [1, 1.0, -3], [1.5, '1', null]],
  ['types', { type: ['string', 'null'] }, ['a', null], [1, undefined]],
  ['enum', { enum: ['a', 1, { b: [2] }] }, ['a', 1, { b: [2] }], ['b', 2, { b: [3] }]],
  ['const', { const: null }, [null], [0, undefined, '']],
  ['length', { minLength: 2, maxLength: 3 }, ['ab', '😀😀😀', 5], ['a', 'abcd']],
  ['numbers', { minimum: 1, exclusiveMaximum: 3 }, [1, 2.9, 'x'], [0.9, 3]],
  ['exclusiveMinimum, maximum', { exclusiveMinimum: 1, maximum: 3 }, [1.1, 3], [1, 3.1]],
  ['multipleOf', { multipleOf: 0.1 }, [0.3, 1, 1e6], [0.35]],
  ['required', { required: ['a'] }, [{ a: undefined }, 'not an object'], [{}, { b: 1 }]],
  ['required is not inherited', { required: ['toString'] }, [{ toString: 1 }], [{}]],
  ['properties', { properties: { a: { type: 'number' } } }, [{}, { a: 1, b: 2 }], [{ a: '1' }]],
  [
    'additionalProperties',
    { properties: { a: true }, additionalProperties: { type: 'number' } },
    [{ a: 'x' }, { b: 1 }],
    [{ a: 'x', b: 'y' }],
  ],
  ['no additional ones', { properties: { a: {} }, additionalProperties: false }, [{ a: 1 }, {}], [{ b: 1 }]],
  ['propertyNames', { propertyNames: { maxLength: 2 } }, [{ ab: 1 }], [{ abc: 1 }]],
  ['how many members', { minProperties: 1, maxProperties: 2 }, [{ a: 1 }], [{}, { a: 1, b: 2, c: 3 }]],
  ['dependentRequired', { dependentRequired: { a: ['b'] } }, [{}, { b: 1 }, { a: 1, b: 1 }], [{ a: 1 }]],
  ['dependentSchemas', { dependentSchemas: { a: { required: ['b'] } } }, [{ c: 1 }, { a: 1, b: 1 }], [{ a: 1 }]],
  ['items', { items: { type: 'number' } }, [[], [1, 2], 'x'], [[1, '2']]],
  ['prefixItems', { prefixItems: [{ type: 'string' }], items: false }, [['a'], []], [[1], ['a', 'b']]],
  ['items as a list', { items: [{ type: 'string' }], additionalItems: false }, [['a']], [[1], ['a', 'b']]],
  ['how many entries', { minItems: 1, maxItems: 2, uniqueItems: true }, [[1], [1, 2]], [[], [1, 2, 3], [{ a: 1 }, { a: 1 }]]],
  ['contains', { contains: { type: 'string' }, maxContains: 1 }, [[1, 'a']], [[1], ['a', 'b']]],
  ['allOf', { allOf: [{ type: 'string' }, { minLength: 2 }] }, ['ab'], ['a', 1]],
  ['anyOf', { anyOf: [{ type: 'string' }, { type: 'number' }] }, ['a', 1], [null]],
  ['oneOf', { oneOf: [{ type: 'number' }, { minimum: 5 }] }, [1, 'x'], [6]],
  ['not', { not: { type: 'string' } }, [1], ['a']],
  [
    'if',
    JSON.parse('{"if":{"properties":{"kind":{"const":"a"}}},"then":{"required":["x"]},"else":{"required":["y"]}}') as JsonSchema,
    [
      { kind: 'a', x: 1 },
      { kind: 'b', y: 1 },
    ],
    [{ kind: 'a' }, { kind: 'b' }],
  ],
  ['$ref', tree, [{ name: 'a', children: [{ name: 'b' }] }], [{ name: 'a', children: [{ nme: 'b' }] }, {}]],
  ['$ref with escapes', { $defs: { 'a/b': { type: 'number' } }, $ref: '#/$defs/a~1b' }, [1], ['1']],
  ['unknown keywords and formats', { format: 'uri', example: 1 }, ['no uri', 1], []],
]

describe.each(rows)('%s', (_, schema, good, bad) => {
  test.each(good.map((value) => [JSON.stringify(value), value]))('%s fits', (_text, value) => expect(mistakesIn(schema, value)).toEqual([]))
  test.each(bad.map((value) => [JSON.stringify(value), value]))('%s does not', (_text, value) =>
    expect(mistakesIn(schema, value)).not.toEqual([]),
  )
})

test('mistakes name their place, and no more than five are told', () => {
  const schema = {
    type: 'object',
    properties: { a: { type: 'array', items: { type: 'number' } }, b: { enum: ['x', 'y'] } },
    required: ['c'],
  }
  expect(mistakesIn(schema, { a: [1, '2'], b: 'z' })).toEqual([
    '"c" is missing',
    '"a[1]" must be a number, but is a string',
    '"b" must be one of "x","y"',
  ])
  expect(mistakesIn({ items: { type: 'number' } }, Array.from({ length: 100 }, String))).toHaveLength(5)
  expect(mistakesIn(false, 1)).toEqual(['It is not allowed'])
})

test('patterns count only where they are our own', () => {
  const schema = {
    properties: { id: { pattern: '^[a-z]+$' } },
    patternProperties: { '^n': { type: 'number' } },
    additionalProperties: false,
  }
  expect(mistakesIn(schema, { id: 'A1', n1: 'x', other: 1 }, { patterns: true })).toHaveLength(3)
  expect(mistakesIn(schema, { id: 'ab', n1: 1 }, { patterns: true })).toEqual([])
  expect(mistakesIn(schema, { id: 'A1', n1: 'x', other: 1 })).toEqual([])
  expect(mistakesIn({ pattern: '(' }, 'x', { patterns: true })).toEqual([])
})

test('a schema that goes in circles or doubles at every level is given up', () => {
  expect(() => mistakesIn({ $ref: '#' }, 1)).toThrow('too complicated')
  const both = (name: string) => ({ anyOf: [{ $ref: name }, { $ref: name }] })
  const $defs = Object.fromEntries(Array.from({ length: 30 }, (_, n) => [`s${n}`, both(`#/$defs/s${n + 1}`)]))
  expect(() => mistakesIn({ $ref: '#/$defs/s0', $defs: { ...$defs, s30: false } }, 1)).toThrow('too complicated')
})

test.each([
  ['$ref', { $ref: 'https://a.example/schema' }],
  ['$ref', { $ref: '#name', $defs: { a: { $anchor: 'name' } } }],
  ['$dynamicRef', { $dynamicRef: '#node' }],
  ['$id', { properties: { a: { $id: 'https://a.example/a' } } }],
  ['$schema', { $schema: 'https://a.example/dialect' }],
])('a schema with %s was taken for one without it', (keyword, schema) => {
  expect(() => mistakesIn(schema, { a: 1 })).toThrow(`The schema uses "${keyword}" in a way that is not supported`)
})
