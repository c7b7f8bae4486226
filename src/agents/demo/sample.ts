import { fieldsOf, isRecord } from '../../protocol/json.ts'

/** Where recursive schemas end. */
const DEPTH = 8
/** Bounds of one sample: a schema of 300 bytes can ask for a million values. */
const VALUES = 1_000
const CHARACTERS = 100_000

interface Left {
  values: number
  characters: number
}

/** A value that fits a JSON Schema: the first choice, the smallest number, every property. A large one ends early. */
export function sample(root: unknown): unknown {
  const left: Left = { values: VALUES, characters: CHARACTERS }
  return of(root, 0)

  function of(schema: unknown, depth: number): unknown {
    if (!isRecord(schema) || depth > DEPTH || --left.values < 0) return null
    if ('const' in schema) return given(schema['const'], left)
    if (Array.isArray(schema['enum'])) return given(schema['enum'][0], left)
    if (typeof schema['$ref'] === 'string') return of(lookUp(root, schema['$ref']), depth + 1)
    const choices = schema['anyOf'] ?? schema['oneOf'] ?? schema['allOf']
    if (Array.isArray(choices)) return of(choices[0], depth + 1)
    const type = Array.isArray(schema['type'])
      ? (schema['type'][0] as unknown)
      : (schema['type'] ?? ('properties' in schema ? 'object' : undefined))
    switch (type) {
      case 'object':
        return sampleObject(schema, depth + 1)
      case 'array':
        return sampleArray(schema, depth + 1)
      case 'integer':
      case 'number':
        return sampleNumber(schema, type === 'integer' ? 1 : 0.5)
      case 'boolean':
        return true
      case 'string':
        return given(sampleString(schema), left)
      default:
        return null
    }
  }

  function sampleObject({ properties }: Record<string, unknown>, depth: number): unknown {
    const members: [string, unknown][] = []
    for (const [key, schema] of Object.entries(fieldsOf(properties))) {
      if (left.values <= 0) break
      left.characters -= key.length
      members.push([key, of(schema, depth)])
    }
    return Object.fromEntries(members)
  }

  function sampleArray({ minItems = 1, items }: Record<string, unknown>, depth: number): unknown {
    const entries: unknown[] = []
    const length = Math.min(Number(minItems), 100)
    while (entries.length < length && left.values > 0) {
      // `of` counts only schemas.
      if (!isRecord(items)) left.values--
      entries.push(of(items, depth))
    }
    return entries
  }
}

/** A value from the schema itself, which may be large and occur often. */
function given(value: unknown, left: Left): unknown {
  if (left.characters > 0) left.characters -= JSON.stringify(value)?.length ?? 0
  return left.characters <= 0 ? null : value
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
