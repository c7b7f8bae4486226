import type { ErrorCode, UampError } from '../protocol/errors.ts'
import { unpaidAnswer } from './payment.ts'

/** The HTTP status of each error, in every protocol. */
export const HTTP_STATUS = {
  invalid_request: 400,
  unauthorized: 401,
  payment_required: 402,
  forbidden: 403,
  not_found: 404,
  agent_offline: 404,
  conflict: 409,
  response_in_progress: 409,
  version_mismatch: 400,
  too_large: 413,
  rate_limited: 429,
  timeout: 504,
  cancelled: 499,
  interrupted: 503,
  approval_unavailable: 409,
  tool_budget_exceeded: 500,
  not_supported: 501,
  provider_error: 502,
  overloaded: 503,
  internal: 500,
} satisfies Record<ErrorCode, number>

export interface Refusing {
  readonly status?: number | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
}

/** An error as an HTTP response. The body is the protocol's own JSON. */
export function refusalResponse(error: UampError, body: string, { status = HTTP_STATUS[error.code], headers }: Refusing = {}): Response {
  const { retry_after: wait, challenge: given, dpop_nonce: nonce, reason } = error.details ?? {}
  // RFC 6750 §3.1: a caller without a token is asked for one, and one with a token that does not count is told so.
  // §3: the scheme is never alone.
  const challenge = typeof given === 'string' ? given : reason === undefined ? 'Bearer realm="uamp"' : 'Bearer error="invalid_token"'
  return new Response(body, {
    status,
    headers: {
      'content-type': 'application/json',
      ...(error.code === 'unauthorized' && { 'www-authenticate': challenge }),
      // RFC 6750 §3.1
      ...(error.code === 'forbidden' && reason === 'insufficient_scope' && { 'www-authenticate': 'Bearer error="insufficient_scope"' }),
      ...(typeof nonce === 'string' && { 'dpop-nonce': nonce }),
      ...(typeof wait === 'number' && { 'retry-after': String(Math.ceil(wait)) }),
      ...unpaidAnswer(error).headers,
      ...headers,
    },
  })
}
