import * as z from 'zod/mini'
import { UampError } from '../../protocol/errors.ts'
import { isRecord } from '../../protocol/json.ts'
import type { JsonSchema } from './json-schema.ts'

/** The interface that zod, valibot, arktype and others share (standardschema.dev, version 1, with its JSON Schema extension). */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: string
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>
    readonly types?: { readonly input: Input; readonly output: Output } | undefined
    readonly jsonSchema?: { readonly input: (options: { readonly target: 'draft-2020-12' }) => Record<string, unknown> }
  }
}

type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly { readonly message: string; readonly path?: readonly unknown[] | undefined }[] }

/** The type of a value that the schema has parsed. */
export type OutputOf<S extends StandardSchema> = NonNullable<S['~standard']['types']>['output']

export function isStandardSchema(schema: object): schema is StandardSchema {
  return '~standard' in schema && isRecord(schema['~standard'])
}

/** The schema in the form that models get. */
export function jsonSchemaOf(schema: JsonSchema | StandardSchema): JsonSchema {
  if (!isStandardSchema(schema)) return schema as JsonSchema
  const { vendor, jsonSchema } = schema['~standard']
  const made = jsonSchema
    ? jsonSchema.input({ target: 'draft-2020-12' })
    : isZod(schema)
      ? (z.toJSONSchema(schema, { io: 'input' }) as Record<string, unknown>)
      : undefined
  if (!made) throw new UampError('invalid_request', `A schema of ${vendor} cannot be converted for a model: pass JSON Schema instead`)
  const { $schema: _, ...told } = made
  return told
}

/** True for the first versions of zod 4, which have no `jsonSchema` of their own. */
function isZod(schema: object): schema is z.core.$ZodType {
  return '_zod' in schema
}

/** Parses a value, or says what is wrong with it. */
export async function parseStandard(schema: StandardSchema, value: unknown): Promise<{ value: unknown } | { mistakes: string[] }> {
  const result = await schema['~standard'].validate(value)
  if (!result.issues) return { value: result.value }
  return { mistakes: result.issues.map(({ message, path }) => (path?.length ? `"${path.map(keyOf).join('.')}": ${message}` : message)) }
}

function keyOf(part: unknown): string {
  return String(isRecord(part) && 'key' in part ? part['key'] : part)
}
