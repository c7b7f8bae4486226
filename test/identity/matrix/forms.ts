/** How each protocol says no. */
import { fieldsOf } from '../../../src/protocol/json.ts'
import type { Decision } from './rule.ts'

type Refused = Exclude<Decision, 'admitted'>

interface FormOf {
  /** The word of the protocol for what is wrong; undefined if nothing is. */
  word(body: unknown): unknown
  readonly words: Readonly<Record<Refused, readonly unknown[]>>
  /** Decisions about a message, and not about the request that brought it: then the status is 200, and the error in the body. */
  readonly inBody?: readonly Refused[]
}

const at = (body: unknown, ...path: readonly (string | number)[]): unknown =>
  path.reduce<unknown>((value, key) => fieldsOf(value)[key], body)
const UAMP = { unauthorized: ['unauthorized'], forbidden: ['forbidden'], 'not found': ['not_found'] }
const A2A = { unauthorized: ['UNAUTHENTICATED'], forbidden: ['PERMISSION_DENIED'], 'not found': ['TASK_NOT_FOUND'] }
const list = (value: unknown, index: number): unknown => (Array.isArray(value) ? (value as unknown[])[index] : undefined)

const FORMS = {
  /** The server's own, of UAMP events, and of AG-UI, which has none. */
  uamp: { word: (body) => at(body, 'error', 'code'), words: UAMP },
  openai: {
    word: (body) => at(body, 'error', 'code'),
    words: {
      unauthorized: ['invalid_api_key', 'token_expired'],
      forbidden: ['permission_denied'],
      'not found': ['not_found', 'model_not_found', 'previous_response_not_found'],
    },
  },
  /** JSON-RPC of A2A: before 1.0 the data is an object. */
  a2a: {
    word: (body) => {
      const data = at(body, 'error', 'data')
      return at(list(data, 0) ?? data, 'reason') ?? at(body, 'error', 'code')
    },
    words: A2A,
    // A2A 1.0 §7.4: HTTP says who may not.
    inBody: ['not found'],
  },
  'a2a rest': { word: (body) => at(list(at(body, 'error', 'details'), 0), 'reason'), words: A2A },
  'a2a rest 0.3': { word: (body) => at(body, 'data', 'reason'), words: A2A },
  'a2a tasks': { word: (body) => at(body, 'code'), words: UAMP },
  acp: {
    word: (body) => at(body, 'error', 'code'),
    words: { unauthorized: [-32000], forbidden: [-32003], 'not found': [-32002] },
    inBody: ['forbidden', 'not found'],
  },
  omnia: { word: (body) => at(body, 'error', 'details', 'code'), words: UAMP },
  oauth: { word: (body) => at(body, 'error'), words: { unauthorized: ['invalid_client'], forbidden: [], 'not found': [] } },
} as const satisfies Record<string, FormOf>

export type Form = keyof typeof FORMS

const STATUS: Readonly<Record<Refused, number>> = { unauthorized: 401, forbidden: 403, 'not found': 404 }

/** What a message of the protocol says. Another error is told as it is, which is no decision. */
export function decisionIn(form: Form, body: unknown): string {
  const { word, words }: FormOf = FORMS[form]
  const found = word(body)
  if (found === undefined) return 'admitted'
  const [decision] = Object.entries(words).find(([, known]) => known.includes(found)) ?? []
  return decision ?? `error: ${JSON.stringify(body)}`
}

export interface Answered {
  readonly status: number
  readonly challenge: string | null
  readonly text: string
}

/** The decision of an answer over HTTP, if all of it is in the form of the protocol: its status, its words and its challenge. */
export function decisionOf(form: Form, { status, challenge, text }: Answered): string {
  const isGood = status < 400
  // An answer that is no JSON is no refusal.
  const decision = decisionIn(form, isGood && !text.startsWith('{') ? {} : jsonIn(text))
  const odd = `${decision}, with ${status} and ${challenge}: ${text.slice(0, 300)}`
  if (decision === 'admitted') return isGood ? decision : odd
  const { inBody = [] }: FormOf = FORMS[form]
  const expected = STATUS[decision as Refused]
  if (expected !== undefined && status !== expected && !(inBody.includes(decision as Refused) && status === 200)) return odd
  // RFC 9110 §15.5.2, RFC 6750 §3.1
  if (status === 401 && !(form === 'oauth' ? /^Basic / : /^Bearer/).test(challenge ?? '')) return odd
  if (status === 403 && challenge !== 'Bearer error="insufficient_scope"') return odd
  return decision
}

function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return {}
  }
}
