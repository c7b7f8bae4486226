import { UampError } from '../../protocol/errors.ts'
import { isRecord } from '../../protocol/json.ts'
import { JsonBudget, short } from './json-budget.ts'

export type JsonSchema = Readonly<Record<string, unknown>>

/** Most steps of one check, some tens of milliseconds: a schema with references can ask for any number. */
const STEPS = 200_000
/** Steps for visiting a schema, apart from what it asks for. */
const SCHEMA_STEPS = 2
/** Steps for naming a member of an object and looking it up. */
const KEY_STEPS = 3
/** How many mistakes to report, and how many characters of a value one of them shows. */
const TOLD = 5
const SHOWN = 300

export interface SchemaOptions {
  /**
   * True if `pattern` and `patternProperties` count. Only for schemas that we trust: a stranger's regular expression can run forever
   * on a short text.
   */
  readonly patterns?: boolean
}

/**
 * Checks a value against a JSON Schema (2020-12, with `items` as a list as in draft 7). Returns the mistakes as sentences that begin
 * with the path. It ignores unknown keywords, `format` among them, as the specification says. It throws for keywords that it knows
 * but does not support: references to other documents, to anchors and to dynamic ones, identifiers inside a schema, and other dialects.
 */
export function mistakesIn(schema: JsonSchema | boolean, value: unknown, options: SchemaOptions = {}): string[] {
  if (typeof schema === 'object' && typeof schema['$schema'] === 'string' && !DIALECT.test(schema['$schema'])) throw unsupported('$schema')
  const check = new Check(schema, options)
  check.value(schema, value, '')
  return check.mistakes
}

/** JSON Schema, and OpenAPI's dialect of it. */
const DIALECT = /^https?:\/\/(json-schema\.org|spec\.openapis\.org)\//

function unsupported(keyword: string): UampError {
  return new UampError('invalid_request', `The schema uses "${keyword}" in a way that is not supported`)
}

/** The members and entries of one value that some schema was for, and that are thus none of the unevaluated ones. */
class Seen {
  readonly names = new Set<string>()
  readonly entries = new Set<number>()

  add({ names, entries }: Seen): void {
    for (const name of names) this.names.add(name)
    for (const entry of entries) this.entries.add(entry)
  }

  get size(): number {
    return this.names.size + this.entries.size
  }
}

class Check {
  mistakes: string[] = []
  readonly #root: JsonSchema | boolean
  readonly #patterns: boolean
  readonly #budget = new JsonBudget(STEPS)
  readonly #refs = new Map<string, unknown>()
  /** True while only a yes or no is needed: the first mistake is then enough. */
  #quiet = false
  /** What was seen of the value that is being checked. Undefined while no schema around asks for it, because it costs time. */
  #seen: Seen | undefined

  constructor(root: JsonSchema | boolean, { patterns = false }: SchemaOptions) {
    this.#root = root
    this.#patterns = patterns
  }

  value(schema: unknown, value: unknown, path: string): void {
    this.#budget.spend(SCHEMA_STEPS)
    if (schema === false) return this.#wrong(path, 'is not allowed')
    if (!isRecord(schema) || this.#enough) return
    if (typeof schema['$dynamicRef'] === 'string') throw unsupported('$dynamicRef')
    if (typeof schema['$id'] === 'string' && schema !== this.#root) throw unsupported('$id')
    this.#budget.enter()
    const outer = this.#seen
    const asks = 'unevaluatedProperties' in schema || 'unevaluatedItems' in schema
    if (asks) this.#seen = new Seen()
    if (typeof schema['$ref'] === 'string') this.value(this.#resolve(schema['$ref']), value, path)
    if (this.#typed(schema, value, path)) {
      this.#constant(schema, value, path)
      if (typeof value === 'string') this.#text(schema, value, path)
      else if (typeof value === 'number') this.#number(schema, value, path)
      else if (Array.isArray(value)) this.#list(schema, value, path)
      else if (isRecord(value)) this.#object(schema, value, path)
      this.#combined(schema, value, path)
      if (asks) this.#unevaluated(schema, value, path)
    }
    if (asks && this.#seen) this.#merge(outer, this.#seen)
    this.#seen = outer
    this.#budget.leave()
  }

  /** Checks a part of the value. What is seen of it says nothing about the whole. */
  #part(schema: unknown, value: unknown, path: string): void {
    const seen = this.#seen
    this.#seen = undefined
    this.value(schema, value, path)
    this.#seen = seen
  }

  #merge(into: Seen | undefined, seen: Seen): void {
    if (!into) return
    this.#budget.spend(seen.size)
    into.add(seen)
  }

  #unevaluated({ unevaluatedProperties, unevaluatedItems }: JsonSchema, value: unknown, path: string): void {
    const { names, entries } = this.#seen ?? new Seen()
    if (Array.isArray(value)) {
      if (unevaluatedItems === undefined) return
      for (const [index, entry] of value.entries()) {
        if (!entries.has(index)) this.#part(unevaluatedItems, entry, `${path}[${index}]`)
        entries.add(index)
      }
    } else if (isRecord(value) && unevaluatedProperties !== undefined) {
      for (const name of this.#keys(value)) {
        if (!names.has(name)) this.#part(unevaluatedProperties, value[name], join(path, name))
        names.add(name)
      }
    }
  }

  get #enough(): boolean {
    return this.mistakes.length >= (this.#quiet ? 1 : TOLD)
  }

  #wrong(path: string, what: string | (() => string)): void {
    if (this.#enough) return
    if (this.#quiet) this.mistakes.push('')
    else this.mistakes.push(`${path === '' ? 'It' : `"${short(path, SHOWN)}"`} ${typeof what === 'string' ? what : what()}`)
  }

  /** True if the value fits; reports no mistakes. */
  #fits(schema: unknown, value: unknown): boolean {
    const [told, quiet, seen] = [this.mistakes, this.#quiet, this.#seen]
    this.mistakes = []
    this.#quiet = true
    this.#seen = seen && new Seen()
    this.value(schema, value, '')
    const fits = this.mistakes.length === 0
    // A schema that does not fit was for nothing.
    if (fits && this.#seen) this.#merge(seen, this.#seen)
    this.#seen = seen
    this.mistakes = told
    this.#quiet = quiet
    return fits
  }

  /** The same for a part of the value. */
  #partFits(schema: unknown, value: unknown): boolean {
    const seen = this.#seen
    this.#seen = undefined
    const fits = this.#fits(schema, value)
    this.#seen = seen
    return fits
  }

  #resolve(ref: string): unknown {
    if (ref !== '#' && !ref.startsWith('#/')) throw unsupported('$ref')
    if (this.#refs.has(ref)) return this.#refs.get(ref)
    this.#budget.spend(ref.length)
    let at: unknown = this.#root
    for (const part of ref.split('/').slice(1)) {
      const key = unescaped(part)
      at = isRecord(at) && Object.hasOwn(at, key) ? at[key] : Array.isArray(at) ? at[Number(key)] : undefined
    }
    this.#refs.set(ref, at)
    return at
  }

  #typed({ type }: JsonSchema, value: unknown, path: string): boolean {
    const wanted = typeof type === 'string' ? [type] : Array.isArray(type) ? (type as unknown[]) : undefined
    if (wanted) this.#budget.spend(wanted.length / 8)
    if (!wanted || wanted.some((name) => isOfType(name, value))) return true
    this.#wrong(path, () => `must be ${short(wanted.slice(0, SHOWN).map(wantedNoun).join(' or '), SHOWN)}, but is ${nounOf(value)}`)
    return false
  }

  #constant(schema: JsonSchema, value: unknown, path: string): void {
    const { enum: choice, const: only } = schema
    if (Array.isArray(choice) && !choice.some((one) => this.#budget.equal(one, value)))
      this.#wrong(path, () => `must be one of ${this.#budget.shown(choice, SHOWN)}`)
    if (Object.hasOwn(schema, 'const') && !this.#budget.equal(only, value))
      this.#wrong(path, () => `must be ${this.#budget.shown([only], SHOWN)}`)
  }

  #text({ minLength, maxLength, pattern }: JsonSchema, value: string, path: string): void {
    const bounds = { least: minLength, most: maxLength, unit: 'characters' }
    // `length` counts UTF-16 units, of which a character has at most two: often that is enough to decide.
    const { length } = value
    const fits = (typeof minLength !== 'number' || length >= minLength * 2) && (typeof maxLength !== 'number' || length <= maxLength)
    if (!fits) {
      this.#budget.spendOn(value)
      this.#bounds(bounds, codePoints(value), path)
    }
    if (this.#patterns && typeof pattern === 'string' && !this.#matches(pattern, value)) this.#wrong(path, `must match ${pattern}`)
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
      this.#part(index < first.length ? first[index] : rest, entry, this.#quiet ? '' : `${path}[${index}]`)
      if (index < first.length || rest !== undefined) this.#seen?.entries.add(index)
      if (this.#enough) return
    }
    this.#bounds({ least: minItems, most: maxItems, unit: 'entries' }, value.length, path)
    if (uniqueItems === true && new Set(value.map((entry) => this.#budget.canonical(entry))).size < value.length)
      this.#wrong(path, 'must not have an entry twice')
    if (contains === undefined) return
    const found = value.filter((entry, index) => {
      const fits = this.#partFits(contains, entry)
      if (fits) this.#seen?.entries.add(index)
      return fits
    }).length
    this.#bounds({ least: minContains, most: maxContains, unit: 'entries of the kind that it must contain' }, found, path)
  }

  #object(schema: JsonSchema, value: Record<string, unknown>, path: string): void {
    const { properties, required, additionalProperties, patternProperties, propertyNames, minProperties, maxProperties } = schema
    const known = isRecord(properties) ? properties : {}
    const patterned = this.#keys(patternProperties)
    for (const name of this.#names(required)) if (!Object.hasOwn(value, name)) this.#wrong(join(path, name), 'is missing')
    const names = this.#keys(value)
    for (const name of names) {
      const member = value[name]
      const at = this.#quiet ? '' : join(path, name)
      if (propertyNames !== undefined && !this.#partFits(propertyNames, name)) this.#wrong(at, 'is not a name that is allowed here')
      const own = Object.hasOwn(known, name)
      if (own) this.#part(known[name], member, at)
      const fitting = this.#patterns ? patterned.filter((pattern) => this.#matches(pattern, name)) : []
      for (const pattern of fitting) this.#part((patternProperties as JsonSchema)[pattern], member, at)
      // If patterns do not count, it is not known which names are additional.
      const matched = own || fitting.length > 0 || (patterned.length > 0 && !this.#patterns)
      if (matched || additionalProperties !== undefined) this.#seen?.names.add(name)
      if (matched) continue
      if (additionalProperties === false) this.#wrong(at, 'is not known here')
      else this.#part(additionalProperties, member, at)
      if (this.#enough) return
    }
    this.#bounds({ least: minProperties, most: maxProperties, unit: 'members' }, names.length, path)
    this.#dependent(schema, value, path)
  }

  #dependent({ dependentRequired, dependentSchemas }: JsonSchema, value: Record<string, unknown>, path: string): void {
    for (const name of this.#keys(dependentRequired)) {
      if (!Object.hasOwn(value, name)) continue
      for (const other of this.#names((dependentRequired as JsonSchema)[name]))
        if (!Object.hasOwn(value, other)) this.#wrong(join(path, other), () => `is missing beside "${short(name, SHOWN)}"`)
    }
    for (const name of this.#keys(dependentSchemas))
      if (Object.hasOwn(value, name)) this.value((dependentSchemas as JsonSchema)[name], value, path)
  }

  #names(list: unknown): string[] {
    if (!Array.isArray(list)) return []
    this.#budget.spend(list.length * KEY_STEPS)
    return list.filter((name) => typeof name === 'string')
  }

  #keys(table: unknown): string[] {
    if (!isRecord(table)) return []
    const keys = Object.keys(table)
    this.#budget.spend(keys.length * KEY_STEPS)
    return keys
  }

  #matches(pattern: string, text: string): boolean {
    this.#budget.spendOn(text)
    return matches(pattern, text)
  }

  /** Stops at the first that fits, unless what the others see matters. */
  #fitsAny(schemas: readonly unknown[], value: unknown): boolean {
    if (!this.#seen) return schemas.some((one) => this.#fits(one, value))
    return schemas.filter((one) => this.#fits(one, value)).length > 0
  }

  #combined(schema: JsonSchema, value: unknown, path: string): void {
    const { allOf, anyOf, oneOf, not, if: condition, then, else: otherwise } = schema
    if (Array.isArray(allOf)) for (const one of allOf) this.value(one, value, path)
    if (Array.isArray(anyOf) && !this.#fitsAny(anyOf, value)) this.#wrong(path, 'has none of the forms that are allowed')
    if (Array.isArray(oneOf)) {
      const fitting = oneOf.filter((one) => this.#fits(one, value)).length
      if (fitting === 0) this.#wrong(path, 'has none of the forms that are allowed')
      if (fitting > 1) this.#wrong(path, `has ${fitting} forms at once, of which only one is allowed`)
    }
    if (not !== undefined && this.#partFits(not, value)) this.#wrong(path, 'has a form that is not allowed')
    if (condition !== undefined) this.value(this.#fits(condition, value) ? then : otherwise, value, path)
  }
}

/** Decodes one part of a reference. A malformed escape stays as it is. */
function unescaped(part: string): string {
  try {
    return decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~')
  } catch {
    return part
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

function wantedNoun(type: unknown): string {
  return typeof type === 'string' ? (NOUNS[type] ?? type) : 'something unknown'
}

function nounOf(value: unknown): string {
  if (value === null || value === undefined) return String(value)
  return NOUNS[Array.isArray(value) ? 'array' : typeof value] ?? typeof value
}

/** JSON Schema counts code points, JavaScript UTF-16 units. */
function codePoints(text: string): number {
  let count = text.length
  for (let at = 1; at < text.length; at++) if (isHalf(text.charCodeAt(at - 1), 0xd800) && isHalf(text.charCodeAt(at), 0xdc00)) count--
  return count
}

function isHalf(code: number, first: number): boolean {
  return (code & 0xfc00) === first
}

/** Allows for rounding: 0.3 is a multiple of 0.1. */
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

function join(path: string, name: string): string {
  return path === '' ? name : `${path}.${name}`
}
