import { UampError } from '../protocol/errors.ts'
import { isRecord } from '../protocol/json.ts'

export type JsonSchema = Readonly<Record<string, unknown>>

/** Schemas and values that one check may look at, and how deep. A schema with references can ask for any number of both. */
const STEPS = 100_000
const DEPTH = 128
/** Mistakes that are worth telling. */
const TOLD = 5

export interface SchemaOptions {
  /**
   * Whether `pattern` and `patternProperties` count. They are for schemas of our own: a stranger's expression can take a
   * lifetime on a short text.
   */
  readonly patterns?: boolean
}

/**
 * What is wrong with a value by a JSON Schema (2020-12, with `items` as a list as of draft 7), as sentences that begin with the
 * place. Keywords that it does not know, `format` among them, say nothing, as the specification has it.
 */
export function mistakesIn(schema: JsonSchema | boolean, value: unknown, options: SchemaOptions = {}): string[] {
  const check = new Check(schema, options)
  check.value(schema, value, '')
  return check.mistakes
}

class Check {
  mistakes: string[] = []
  readonly #root: JsonSchema | boolean
  readonly #patterns: boolean
  #steps = 0
  #depth = 0

  constructor(root: JsonSchema | boolean, { patterns = false }: SchemaOptions) {
    this.#root = root
    this.#patterns = patterns
  }

  value(schema: unknown, value: unknown, path: string): void {
    if (schema === false) return this.#wrong(path, 'is not allowed')
    if (!isRecord(schema) || this.mistakes.length >= TOLD) return
    if (++this.#steps > STEPS || ++this.#depth > DEPTH) throw new UampError('invalid_request', 'The schema is too complicated to check')
    if (typeof schema['$ref'] === 'string') this.value(this.#resolve(schema['$ref']), value, path)
    if (this.#typed(schema, value, path)) {
      this.#constant(schema, value, path)
      if (typeof value === 'string') this.#text(schema, value, path)
      else if (typeof value === 'number') this.#number(schema, value, path)
      else if (Array.isArray(value)) this.#list(schema, value, path)
      else if (isRecord(value)) this.#object(schema, value, path)
      this.#combined(schema, value, path)
    }
    this.#depth--
  }

  #wrong(path: string, what: string): void {
    if (this.mistakes.length < TOLD) this.mistakes.push(`${path === '' ? 'It' : `"${path}"`} ${what}`)
  }

  /** Whether it would do, without saying what is wrong. */
  #fits(schema: unknown, value: unknown): boolean {
    const told = this.mistakes
    this.mistakes = []
    this.value(schema, value, '')
    const fits = this.mistakes.length === 0
    this.mistakes = told
    return fits
  }

  #resolve(ref: string): unknown {
    if (!ref.startsWith('#')) return true
    let at: unknown = this.#root
    for (const part of ref.slice(1).split('/').filter(Boolean)) {
      const key = decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~')
      at = isRecord(at) && Object.hasOwn(at, key) ? at[key] : Array.isArray(at) ? at[Number(key)] : undefined
    }
    return at
  }

  #typed({ type }: JsonSchema, value: unknown, path: string): boolean {
    const wanted = typeof type === 'string' ? [type] : Array.isArray(type) ? (type as unknown[]) : undefined
    if (!wanted || wanted.some((name) => isOfType(name, value))) return true
    this.#wrong(path, `must be ${wanted.map((name) => NOUNS[String(name)] ?? String(name)).join(' or ')}, but is ${nounOf(value)}`)
    return false
  }

  #constant(schema: JsonSchema, value: unknown, path: string): void {
    const { enum: choice, const: only } = schema
    if (Array.isArray(choice) && !choice.some((one) => equal(one, value)))
      this.#wrong(path, `must be one of ${JSON.stringify(choice).slice(1, -1)}`)
    if (Object.hasOwn(schema, 'const') && !equal(only, value)) this.#wrong(path, `must be ${JSON.stringify(only)}`)
  }

  #text({ minLength, maxLength, pattern }: JsonSchema, value: string, path: string): void {
    if (minLength !== undefined || maxLength !== undefined) {
      this.#bounds({ least: minLength, most: maxLength, unit: 'characters' }, codePoints(value), path)
    }
    if (this.#patterns && typeof pattern === 'string' && !matches(pattern, value)) this.#wrong(path, `must match ${pattern}`)
  }

  #bounds({ least, most, unit }: { least: unknown; most: unknown; unit: string }, count: number, path: string): void {
    if (typeof least === 'number' && count < least) this.#wrong(path, `must have at least ${least} ${unit}`)
    if (typeof most === 'number' && count > most) this.#wrong(path, `must have at most ${most} ${unit}`)
  }

  #number({ minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf }: JsonSchema, value: number, path: string): void {
    if (typeof minimum === 'number' && value < minimum) this.#wrong(path, `must be at least ${minimum}`)
    if (typeof maximum === 'number' && value > maximum) this.#wrong(path, `must be at most ${maximum}`)
    if (typeof exclusiveMinimum === 'number' && value <= exclusiveMinimum) this.#wrong(path, `must be more than ${exclusiveMinimum}`)
    if (typeof exclusiveMaximum === 'number' && value >= exclusiveMaximum) this.#wrong(path, `must be less than ${exclusiveMaximum}`)
    if (typeof multipleOf === 'number' && !isMultiple(value, multipleOf)) this.#wrong(path, `must be a multiple of ${multipleOf}`)
  }

  #list(schema: JsonSchema, value: readonly unknown[], path: string): void {
    const { items, prefixItems, additionalItems, minItems, maxItems, uniqueItems, contains, minContains = 1, maxContains } = schema
    const first = Array.isArray(prefixItems) ? (prefixItems as unknown[]) : Array.isArray(items) ? (items as unknown[]) : []
    const rest = Array.isArray(items) ? additionalItems : items
    for (const [index, entry] of value.entries()) {
      this.value(index < first.length ? first[index] : rest, entry, `${path}[${index}]`)
      if (this.mistakes.length >= TOLD) return
    }
    this.#bounds({ least: minItems, most: maxItems, unit: 'entries' }, value.length, path)
    if (uniqueItems === true && new Set(value.map(canonical)).size < value.length) this.#wrong(path, 'must not have an entry twice')
    if (contains === undefined) return
    const found = value.filter((entry) => this.#fits(contains, entry)).length
    this.#bounds({ least: minContains, most: maxContains, unit: 'entries of the kind that it must contain' }, found, path)
  }

  #object(schema: JsonSchema, value: Record<string, unknown>, path: string): void {
    const { properties, required, additionalProperties, patternProperties, propertyNames, minProperties, maxProperties } = schema
    const known = isRecord(properties) ? properties : {}
    const patterned = isRecord(patternProperties) ? Object.entries(patternProperties) : []
    for (const name of Array.isArray(required) ? (required as string[]) : []) {
      if (!Object.hasOwn(value, name)) this.#wrong(join(path, name), 'is missing')
    }
    for (const [name, member] of Object.entries(value)) {
      const at = join(path, name)
      if (propertyNames !== undefined && !this.#fits(propertyNames, name)) this.#wrong(at, 'is not a name that is allowed here')
      const own = Object.hasOwn(known, name)
      if (own) this.value(known[name], member, at)
      const fitting = this.#patterns ? patterned.filter(([pattern]) => matches(pattern, name)) : []
      for (const [, wanted] of fitting) this.value(wanted, member, at)
      // Without patterns nobody can say which names are additional.
      if (own || fitting.length > 0 || (patterned.length > 0 && !this.#patterns)) continue
      if (additionalProperties === false) this.#wrong(at, 'is not known here')
      else this.value(additionalProperties, member, at)
      if (this.mistakes.length >= TOLD) return
    }
    this.#bounds({ least: minProperties, most: maxProperties, unit: 'members' }, Object.keys(value).length, path)
    this.#dependent(schema, value, path)
  }

  #dependent({ dependentRequired, dependentSchemas }: JsonSchema, value: Record<string, unknown>, path: string): void {
    for (const [name, needed] of isRecord(dependentRequired) ? Object.entries(dependentRequired) : []) {
      if (!Object.hasOwn(value, name)) continue
      for (const other of needed as string[])
        if (!Object.hasOwn(value, other)) this.#wrong(join(path, other), `is missing beside "${name}"`)
    }
    for (const [name, wanted] of isRecord(dependentSchemas) ? Object.entries(dependentSchemas) : []) {
      if (Object.hasOwn(value, name)) this.value(wanted, value, path)
    }
  }

  #combined(schema: JsonSchema, value: unknown, path: string): void {
    const { allOf, anyOf, oneOf, not, if: condition, then, else: otherwise } = schema
    if (Array.isArray(allOf)) for (const one of allOf) this.value(one, value, path)
    if (Array.isArray(anyOf) && !anyOf.some((one) => this.#fits(one, value))) this.#wrong(path, 'has none of the forms that are allowed')
    if (Array.isArray(oneOf)) {
      const fitting = oneOf.filter((one) => this.#fits(one, value)).length
      if (fitting === 0) this.#wrong(path, 'has none of the forms that are allowed')
      if (fitting > 1) this.#wrong(path, `has ${fitting} forms at once, of which only one is allowed`)
    }
    if (not !== undefined && this.#fits(not, value)) this.#wrong(path, 'has a form that is not allowed')
    if (condition !== undefined) this.value(this.#fits(condition, value) ? then : otherwise, value, path)
  }
}

const NOUNS: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  integer: 'a whole number',
  boolean: 'true or false',
  object: 'an object',
  array: 'an array',
}

function isOfType(type: unknown, value: unknown): boolean {
  switch (type) {
    case 'null':
      return value === null
    case 'array':
      return Array.isArray(value)
    case 'object':
      return isRecord(value)
    case 'integer':
      return Number.isInteger(value)
    default:
      return typeof value === type
  }
}

function nounOf(value: unknown): string {
  if (value === null || value === undefined) return String(value)
  return NOUNS[Array.isArray(value) ? 'array' : typeof value] ?? typeof value
}

/** A length in JSON Schema counts characters, not the halves of them that JavaScript has. */
function codePoints(text: string): number {
  let count = 0
  for (const _ of text) count++
  return count
}

/** 0.3 is a multiple of 0.1, whatever binary fractions say. */
function isMultiple(value: number, of: number): boolean {
  const times = value / of
  return Math.abs(times - Math.round(times)) <= 1e-9 * Math.max(1, Math.abs(times))
}

function matches(pattern: string, text: string): boolean {
  try {
    return new RegExp(pattern, 'u').test(text)
  } catch {
    return true
  }
}

function equal(a: unknown, b: unknown): boolean {
  return a === b || (typeof a === 'object' && typeof b === 'object' && canonical(a) === canonical(b))
}

/** JSON with the members of every object in order. */
function canonical(value: unknown): string {
  const sorted = (_: string, member: unknown): unknown =>
    isRecord(member) ? Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1))) : member
  return JSON.stringify(value, sorted) ?? 'undefined'
}

function join(path: string, name: string): string {
  return path === '' ? name : `${path}.${name}`
}
