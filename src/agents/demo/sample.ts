import { isRecord } from '../../protocol/json.ts'

/** Recursive schemas end here. */
const DEPTH = 8

/** A value that fits a JSON Schema: the first choice, the smallest number, every property. */
export function sample(schema: unknown, root: unknown = schema, depth = 0): unknown {
  if (!isRecord(schema) || depth > DEPTH) return null
  if ('const' in schema) return schema['const']
  if (Array.isArray(schema['enum'])) return schema['enum'][0] as unknown
  if (typeof schema['$ref'] === 'string') return sample(lookUp(root, schema['$ref']), root, depth + 1)
  const choices = schema['anyOf'] ?? schema['oneOf'] ?? schema['allOf']
  if (Array.isArray(choices)) return sample(choices[0], root, depth + 1)
  const type = Array.isArray(schema['type'])
    ? (schema['type'][0] as unknown)
    : (schema['type'] ?? ('properties' in schema ? 'object' : undefined))
  switch (type) {
    case 'object':
      return Object.fromEntries(
        Object.entries(isRecord(schema['properties']) ? schema['properties'] : {}).map(([key, value]) => [
          key,
          sample(value, root, depth + 1),
        ]),
      )
    case 'array':
      return Array.from({ length: Math.min(Number(schema['minItems'] ?? 1), 100) }, () => sample(schema['items'], root, depth + 1))
    case 'integer':
    case 'number':
      return sampleNumber(schema, type === 'integer' ? 1 : 0.5)
    case 'boolean':
      return true
    case 'string':
      return sampleString(schema)
    default:
      return null
  }
}

function sampleNumber(schema: Record<string, unknown>, usual: number): number {
  const { minimum, maximum, exclusiveMinimum, multipleOf } = schema
  if (typeof minimum === 'number') return minimum
  if (typeof exclusiveMinimum === 'number') return exclusiveMinimum + usual
  if (typeof multipleOf === 'number') return multipleOf
  return typeof maximum === 'number' ? Math.min(usual, maximum) : usual
}

function sampleString({ format, minLength, maxLength }: Record<string, unknown>): string {
  if (format === 'date-time') return '2026-01-01T00:00:00Z'
  if (format === 'date') return '2026-01-01'
  if (format === 'uuid') return '00000000-0000-4000-8000-000000000000'
  if (format === 'email') return 'demo@example.com'
  if (format === 'uri') return 'https://example.com/'
  const text = 'text'.padEnd(typeof minLength === 'number' ? Math.min(minLength, 10_000) : 0, '.')
  return typeof maxLength === 'number' ? text.slice(0, maxLength) : text
}

/** A local reference such as `#/$defs/city`. */
function lookUp(root: unknown, reference: string): unknown {
  let found = root
  for (const part of reference.replace(/^#\/?/, '').split('/').filter(Boolean)) {
    found = isRecord(found) && Object.hasOwn(found, part) ? found[part] : undefined
  }
  return found
}
