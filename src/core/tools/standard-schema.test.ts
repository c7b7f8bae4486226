import { expect, test } from 'vitest'
import * as z from 'zod'
import * as mini from 'zod/mini'
import { isStandardSchema, jsonSchemaOf, parseStandard, type StandardSchema } from './standard-schema.ts'
import { defineTool, toolDefinition } from './tool.ts'

const told = { type: 'object', properties: { city: { type: 'string' }, days: { type: 'number', default: 1 } }, required: ['city'] }

test.each([
  ['zod', z.object({ city: z.string(), days: z.number().default(1) })],
  ['zod/mini', mini.object({ city: mini.string(), days: mini._default(mini.number(), 1) })],
])('a schema of %s is told to models, and gives what it makes of the arguments', async (_, schema) => {
  expect(isStandardSchema(schema)).toBe(true)
  expect(jsonSchemaOf(schema)).toMatchObject(told)
  expect(jsonSchemaOf(schema)).not.toHaveProperty('$schema')
  expect(await parseStandard(schema, { city: 'Bern' })).toEqual({ value: { city: 'Bern', days: 1 } })
  const { mistakes } = (await parseStandard(schema, { days: 1 })) as { mistakes: string[] }
  expect(mistakes).toEqual([expect.stringContaining('"city": ')])
})

test('a schema of zod that cannot tell its JSON Schema itself is read', () => {
  const schema = z.object({ city: z.string() })
  const { jsonSchema: _, ...early } = schema['~standard']
  expect(jsonSchemaOf({ _zod: schema._zod, '~standard': early } as StandardSchema)).toMatchObject({
    properties: { city: { type: 'string' } },
  })
})

test('a schema that cannot be told to models is refused by its vendor’s name', () => {
  const schema: StandardSchema = { '~standard': { version: 1, vendor: 'acme', validate: (value) => ({ value }) } }
  expect(() => jsonSchemaOf(schema)).toThrow('A schema of acme cannot be converted for a model')
})

test('JSON Schema is what it is', () => {
  expect(isStandardSchema(told)).toBe(false)
  expect(jsonSchemaOf(told)).toBe(told)
})

test('a tool knows the types of its arguments', () => {
  const tool = defineTool({
    name: 'weather',
    description: 'Tomorrow',
    parameters: z.object({ city: z.string(), days: z.number().default(1) }),
    needsApproval: ({ days }) => days > 7,
    run: ({ city, days }) => city.repeat(days),
  })
  expect(toolDefinition(tool)).toMatchObject({ type: 'function', function: { name: 'weather', description: 'Tomorrow', parameters: told } })
  expect(toolDefinition({ name: 'clock', run: () => '' }).function).toEqual({
    name: 'clock',
    parameters: { type: 'object', properties: {} },
  })
})
