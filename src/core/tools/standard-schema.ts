import * as z from 'zod/mini'
import { UampError } from '../../protocol/errors.ts'
import { isRecord } from '../../protocol/json.ts'
import type { JsonSchema } from './json-schema.ts'

/** What zod, valibot, arktype and others have in common (standardschema.dev, version 1, with its JSON Schema extension). */
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

/** What is made of a value that fits. */
export type OutputOf<S extends StandardSchema> = NonNullable<S['~standard']['types']>['output']

export function isStandardSchema(schema: object): schema is StandardSchema {
  return '~standard' in schema && isRecord(schema['~standard'])
}

/** The schema as models are told it. */
export function jsonSchemaOf(schema: JsonSchema | StandardSchema): JsonSchema {
  if (!isStandardSchema(schema)) return schema as JsonSchema
  const { vendor, jsonSchema } = schema['~standard']
  const made = jsonSchema
    ? jsonSchema.input({ target: 'draft-2020-12' })
    : isZod(schema)
      ? (z.toJSONSchema(schema, { io: 'input' }) as Record<string, unknown>)
      : undefined
  if (!made) throw new UampError('invalid_request', `A schema of ${vendor} cannot be told to a model: hand over JSON Schema instead`)
  const { $schema: _, ...told } = made
  return told
}

/** Of the first versions of zod 4, which cannot tell their JSON Schema themselves. */
function isZod(schema: object): schema is z.core.$ZodType {
  return '_zod' in schema
}

/** What the schema makes of the value, or what is wrong with it. */
export async function parseStandard(schema: StandardSchema, value: unknown): Promise<{ value: unknown } | { mistakes: string[] }> {
  const result = await schema['~standard'].validate(value)
  if (!result.issues) return { value: result.value }
  return { mistakes: result.issues.map(({ message, path }) => (path?.length ? `"${path.map(keyOf).join('.')}": ${message}` : message)) }
}

function keyOf(part: unknown): string {
  return String(isRecord(part) && 'key' in part ? part['key'] : part)
}
