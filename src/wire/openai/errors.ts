import { UampError, type ErrorCode } from '../../protocol/errors.ts'
import type { EventOf } from '../../protocol/events.ts'
import { unpaidAnswer } from '../payment.ts'
import { HTTP_STATUS, refusalResponse, type Refusing } from '../refusal.ts'

/** `type` and `code` as OpenAI's clients know them. */
const ERRORS = {
  invalid_request: ['invalid_request_error', 'invalid_value'],
  unauthorized: ['invalid_request_error', 'invalid_api_key'],
  payment_required: ['payment_required', 'payment_required'],
  forbidden: ['invalid_request_error', 'permission_denied'],
  not_found: ['invalid_request_error', 'not_found'],
  agent_offline: ['invalid_request_error', 'model_not_found'],
  conflict: ['invalid_request_error', 'conflict'],
  response_in_progress: ['invalid_request_error', 'conversation_already_has_active_response'],
  version_mismatch: ['invalid_request_error', 'version_mismatch'],
  too_large: ['invalid_request_error', 'request_too_large'],
  rate_limited: ['rate_limit_error', 'rate_limit_exceeded'],
  timeout: ['server_error', 'timeout'],
  cancelled: ['server_error', 'cancelled'],
  interrupted: ['server_error', 'interrupted'],
  approval_unavailable: ['invalid_request_error', 'approval_unavailable'],
  tool_budget_exceeded: ['server_error', 'tool_budget_exceeded'],
  not_supported: ['server_error', 'not_supported'],
  provider_error: ['server_error', 'provider_error'],
  overloaded: ['server_error', 'overloaded'],
  internal: ['server_error', 'server_error'],
} satisfies Record<ErrorCode, readonly [string, string]>

export interface OpenAiError {
  readonly message: string
  readonly type: string
  readonly code: string
  readonly param: string | null
  readonly accepts?: unknown
  /** Finds the log line of an error whose cause only the log has. Clients over a socket see no headers. */
  readonly request_id?: string
  /** Seconds after which to come again. Only where no header can say it. */
  readonly retry_after?: number
}

/** `details.param` names the wrong field, `details.code` is a finer code of OpenAI's that replaces the usual one. */
export function openAiErrorBody(error: UampError): OpenAiError {
  const [type, usual] = ERRORS[error.code]
  const { param, code, accepts, request_id, reason } = error.details ?? {}
  // A client that can get another token must know that it is time to.
  const finer = error.code === 'unauthorized' && reason === 'token_expired' ? reason : code
  return {
    message: error.message,
    type,
    code: typeof finer === 'string' ? finer : usual,
    param: typeof param === 'string' ? param : null,
    ...(accepts !== undefined && { accepts }),
    ...(typeof request_id === 'string' && { request_id }),
  }
}

/** The same for an event of a stream or a socket, whose headers are gone. */
export function openAiEventError(error: UampError): OpenAiError {
  const wait = error.details?.['retry_after']
  return { ...openAiErrorBody(error), ...(typeof wait === 'number' && { retry_after: Math.ceil(wait) }) }
}

/** The HTTP status of an error. Events have it too, as clients choose their error class by it. */
export function openAiStatus({ code }: UampError): number {
  return HTTP_STATUS[code]
}

/** When to come again, as answers over HTTP and events of sockets have it. */
export function openAiRetryHeaders({ details }: UampError): Record<string, string> {
  const wait = details?.['retry_after']
  return typeof wait === 'number' ? { 'retry-after': String(Math.ceil(wait)), 'retry-after-ms': String(Math.ceil(wait * 1000)) } : {}
}

/** An error as the answer to a request. */
export function openAiRefusal(error: UampError, { status, headers }: Refusing = {}): Response {
  const body = openAiErrorBody(error)
  return refusalResponse(
    error,
    JSON.stringify({
      error: body,
      // For the first clients of UAMP; those of OpenAI keep only `error`.
      ...(body.accepts !== undefined && { status_code: 402, context: { accepts: body.accepts } }),
      ...unpaidAnswer(error).body,
    }),
    {
      status,
      headers: {
        ...openAiRetryHeaders(error),
        ...headers,
      },
    },
  )
}

/**
 * The failure of an agent that had begun. OpenAI's clients repeat a request after 408, 409 and every 5xx, and the same work would be
 * paid for again, so they are told not to.
 */
export function openAiFailure(error: UampError, headers: Readonly<Record<string, string>> = {}): Response {
  const costly = error.code !== 'rate_limited'
  return openAiRefusal(error, { headers: { ...headers, ...(costly && { 'x-should-retry': 'false' }) } })
}

/** The error of a `response.error`. An agent's own code goes on as it is. */
export function toldError({ code, message, details }: EventOf<'response.error'>['error']): UampError {
  // The answer is too large for us: unless the provider says so of the request (413), the client has done nothing wrong.
  if (code === 'too_large' && details?.['status'] !== 413) {
    return new UampError('provider_error', message, { details: { ...details, code: 'answer_too_large' } })
  }
  const known = Object.hasOwn(ERRORS, code)
  return new UampError(known ? (code as ErrorCode) : 'internal', message, { details: known ? { ...details } : { ...details, code } })
}
