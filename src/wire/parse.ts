import * as z from 'zod/mini'
import { UampError } from '../protocol/errors.ts'
import { FIRST_EXPLAINED, FIRST_MISTAKE } from '../protocol/explain.ts'
import { isRecord, JsonBoundError, parseJson, type Slot } from '../protocol/json.ts'
import { limits } from '../protocol/limits.ts'

/** A body from its text. Throws `invalid_request` with the wrong field in `details.param`. */
export function parseBody<T extends z.ZodMiniType>(schema: T, text: string): z.output<T> {
  return parseValue(
    schema,
    boundedJson(text, 'The body', (message, code) => invalid(message, undefined, code)),
  )
}

type Refusal = (message: string, code?: string) => Error

/** A frame as the object that it should be. `name`: what errors call it. */
export function parseObject(text: string, name: string, refusal: Refusal): Slot {
  const value = boundedJson(text, name, refusal)
  if (!isRecord(value)) throw refusal(`${name} must be a JSON object`)
  return value
}

function boundedJson(text: string, name: string, refusal: Refusal): unknown {
  try {
    return parseJson(text, limits.depth)
  } catch (cause) {
    if (!(cause instanceof JsonBoundError)) throw refusal(`${name} is not JSON`, 'invalid_json')
    throw cause.bound === 'members' ? new UampError('too_large', `${name} ${cause.message}`) : refusal(`${name} ${cause.message}`)
  }
}

/** The same for a value that is parsed already. */
export function parseValue<T extends z.ZodMiniType>(schema: T, value: unknown): z.output<T> {
  const { value: parsed, issues } = schema._zod.run({ value, issues: [] }, FIRST_MISTAKE) as z.core.ParsePayload<z.output<T>>
  if (issues.length === 0) return parsed
  const { error } = z.safeParse(schema, value, FIRST_EXPLAINED)
  const issue = deepest(error?.issues ?? [])
  if (!issue) throw invalid('The body of this request is not valid')
  const param = spell(issue.path)
  throw new UampError('invalid_request', param === '' ? `The body ${issue.message}` : `"${param}" ${issue.message}`, {
    details: { param: param === '' ? null : param, code: codeOf(issue) },
  })
}

type Issue = z.core.$ZodIssue

/** When no alternative of a union fits, the mistake in the one that came furthest says most. */
function deepest(issues: readonly Issue[]): Issue | undefined {
  const [first] = issues
  if (first?.code !== 'invalid_union' || first.errors.length === 0) return first
  const inner = first.errors.flatMap((alternative) => deepest(alternative) ?? []).filter(({ path }) => path.length > 0)
  const best = inner.sort((a, b) => b.path.length - a.path.length)[0]
  return best ? { ...best, path: [...first.path, ...best.path] } : first
}

function codeOf(issue: Issue): string {
  if (issue.message.endsWith('but is missing')) return 'missing_required_parameter'
  return issue.code === 'invalid_type' ? 'invalid_type' : 'invalid_value'
}

/** `messages[0].content`, as OpenAI writes it. */
function spell(path: readonly PropertyKey[]): string {
  return path.reduce<string>((spelled, key) => {
    if (typeof key === 'number') return `${spelled}[${key}]`
    return spelled === '' ? String(key) : `${spelled}.${String(key)}`
  }, '')
}

/** Refuses a request and names the wrong field. */
export function invalid(message: string, param?: string, code?: string): UampError {
  return new UampError('invalid_request', message, {
    details: { ...(param !== undefined && { param }), ...(code !== undefined && { code }) },
  })
}
