import * as z from 'zod/mini'
import { UampError } from '../protocol/errors.ts'
import { FIRST_EXPLAINED, FIRST_MISTAKE } from '../protocol/explain.ts'
import { JsonBoundError, parseJson } from '../protocol/json.ts'
import { limits } from '../protocol/limits.ts'

/** A body from its text. Throws `invalid_request`, and says in `details.param` where it is wrong. */
export function parseBody<T extends z.ZodMiniType>(schema: T, text: string): z.output<T> {
  let value: unknown
  try {
    value = parseJson(text, limits.depth)
  } catch (cause) {
    if (cause instanceof JsonBoundError) throw excessive('The body', cause)
    throw new UampError('invalid_request', 'The body of this request is not JSON', { cause, details: { code: 'invalid_json' } })
  }
  return parseValue(schema, value)
}

/** The same for a value that is JSON already. */
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

/** Of a union that fits nowhere, what is wrong with the alternative that came furthest says most. */
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

/** A refusal of what a client sent, with the field that is wrong. */
export function invalid(message: string, param?: string, code?: string): UampError {
  return new UampError('invalid_request', message, {
    details: { ...(param !== undefined && { param }), ...(code !== undefined && { code }) },
  })
}

/** A refusal of what is too much to be parsed. `name`: what it is called. */
function excessive(name: string, { bound, message }: JsonBoundError): UampError {
  return bound === 'members' ? new UampError('too_large', `${name} ${message}`) : invalid(`${name} ${message}`)
}
