import { parseAmount } from '../protocol/money.ts'
import type { HttpClient } from '../core/ports/http.ts'
import { UampError } from '../protocol/errors.ts'
import { fieldsOf } from '../protocol/json.ts'
import { readJson } from '../wire/upstream.ts'

/** The longest answer, and how long one may take. */
const MOST_BYTES = 64 * 1024
const TOTAL_MS = 10_000
/** Refusals that say nothing of the money: the same request may succeed later. */
const MAY_PASS: ReadonlySet<number> = new Set([401, 403, 407, 408, 421, 425, 429])

export interface PlatformApiOptions {
  /** Where its API is: `https://pay.example/api/payments`. */
  readonly url: string
  /** What this server shows there. */
  readonly token: string | undefined
  readonly http: HttpClient
}

/** What a ledger elsewhere said. `unknown`: nobody can tell whether it did what was asked. */
export type Said =
  | { readonly kind: 'done'; readonly body: Readonly<Record<string, unknown>> }
  | { readonly kind: 'refused'; readonly status: number; readonly body: Readonly<Record<string, unknown>> }
  | { readonly kind: 'unknown'; readonly why: string }

/** The REST API of a ledger elsewhere. It never throws. */
export class PlatformApi {
  readonly #options: PlatformApiOptions

  constructor(options: PlatformApiOptions) {
    this.#options = options
  }

  async ask(method: 'POST' | 'PATCH', path: string, { key, ...body }: Readonly<Record<string, unknown>> & { key?: string }): Promise<Said> {
    const { url, token, http } = this.#options
    try {
      const { status, body: answer } = await http.request({
        url: `${url.replace(/\/$/, '')}/${path}`,
        method,
        headers: {
          'content-type': 'application/json',
          accept: 'application/json',
          ...(token !== undefined && { authorization: `Bearer ${token}` }),
          ...(key !== undefined && { 'idempotency-key': key }),
        },
        body: JSON.stringify({ ...body, ...(key !== undefined && { idempotencyKey: key }) }),
        once: true,
        signal: AbortSignal.timeout(TOTAL_MS),
        maxBytes: MOST_BYTES,
        timeouts: { firstByteMs: TOTAL_MS, idleMs: TOTAL_MS, totalMs: TOTAL_MS },
      })
      const read = readJson('The ledger', answer, MOST_BYTES)
      if (status >= 200 && status < 300) return { kind: 'done', body: fieldsOf(await read) }
      const told = fieldsOf(await read.catch(() => ({})))
      if (status < 400 || status >= 500 || MAY_PASS.has(status)) return { kind: 'unknown', why: answered(status, told) }
      return { kind: 'refused', status, body: told }
    } catch (thrown) {
      return { kind: 'unknown', why: failureOf(thrown) }
    }
  }
}

/** A word of a code, such as `agent_offline`: nothing that could hold a token. */
const WORD = /^[a-z][a-z_.-]{0,47}$/

/** What an operator is told of an answer. Its text may repeat the token, so only its status and its code are shown. */
export function answered(status: number, body: Readonly<Record<string, unknown>>): string {
  const code = codeOf(body)
  return `It answered with ${status}${WORD.test(code) ? ` (${code})` : ''}`
}

/** Why there was no answer. An error of Node is known by its code, such as `ECONNREFUSED`. */
function failureOf(thrown: unknown): string {
  const { code, cause } = thrown as { readonly code?: unknown; readonly cause?: { readonly code?: unknown } }
  const found = thrown instanceof UampError ? (cause?.code ?? thrown.message) : code
  return typeof found === 'string' ? found : UampError.from(thrown).message
}

/** An amount in an answer: a text, or a number of some ledgers. */
export function amountOf(body: Readonly<Record<string, unknown>>, ...names: readonly string[]): bigint | undefined {
  const value = names.map((name) => body[name]).find((each) => each !== undefined)
  return parseAmount(typeof value === 'number' && value >= 0 && value < 1e15 ? value.toFixed(9) : value)
}

/** The code of a refusal, wherever a ledger puts it. */
export function codeOf(body: Readonly<Record<string, unknown>>): string {
  const error = fieldsOf(body['error'])
  const details = fieldsOf(error['details'])
  const given = [details['code'], error['subcode'], error['code'], body['subcode'], body['error_code'], body['code'], body['reason']]
  return String(given.find((each) => typeof each === 'string') ?? '').toLowerCase()
}
