import { isRecord } from '../../protocol/json.ts'

type Schema = Record<string, unknown>

const FORMATS = new Set(['date-time', 'time', 'date', 'duration', 'email', 'hostname', 'uri', 'ipv4', 'ipv6', 'uuid'])
const KEPT = new Set(['$ref', 'type', 'enum', 'const', 'title', 'description', 'required'])

/**
 * A JSON Schema as structured outputs take it: with closed objects. Constraints that the API refuses (lengths, ranges, patterns) move
 * to the description, where the model still reads them.
 */
export function outputSchema(schema: Schema): Schema {
  const kept: Schema = {}
  const told: string[] = []
  for (const [key, value] of Object.entries(schema)) {
    if (KEPT.has(key) || isTaken(key, value)) kept[key] = value
    else if (key === 'properties' || key === '$defs') kept[key] = mapped(value)
    else if (key === 'definitions') kept['$defs'] = mapped(value)
    else if (key === 'items' && isRecord(value)) kept[key] = outputSchema(value)
    else if ((key === 'anyOf' || key === 'oneOf' || key === 'allOf') && Array.isArray(value)) {
      kept[key === 'oneOf' ? 'anyOf' : key] = value.map((entry) => (isRecord(entry) ? outputSchema(entry) : entry))
    } else if (key !== 'additionalProperties' && key !== '$schema') told.push(`${key}: ${JSON.stringify(value)}`)
  }
  if (typeof kept['$ref'] === 'string') kept['$ref'] = kept['$ref'].replace('#/definitions/', '#/$defs/')
  if (schema['type'] === 'object' || kept['properties'] !== undefined) kept['additionalProperties'] = false
  if (told.length === 0) return kept
  const words = typeof schema['description'] === 'string' ? `${schema['description']} ` : ''
  return { ...kept, description: `${words}(${told.join(', ')})` }
}

function isTaken(key: string, value: unknown): boolean {
  return (key === 'format' && FORMATS.has(String(value))) || (key === 'minItems' && (value === 0 || value === 1))
}

function mapped(schemas: unknown): unknown {
  if (!isRecord(schemas)) return schemas
  return Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, isRecord(schema) ? outputSchema(schema) : schema]))
}
