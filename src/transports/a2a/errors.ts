/** Errors of A2A: what a client is told of one, and how each binding writes it. */
import type { RefusalOptions } from '../../core/ports/transport.ts'
import { UampError, type ErrorCode } from '../../protocol/errors.ts'
import { REASONS, type Kind, type Reason } from '../../wire/a2a/errors.ts'
import { refusalResponse } from '../../wire/refusal.ts'

/** An error that A2A has a name for. `details.field` says where in the request it is, such as `message.parts[0]`. */
export function a2aError(reason: Reason, message: string, details?: Readonly<Record<string, unknown>>): UampError {
  return new UampError(REASONS[reason].of, message, { details: { ...details, reason } })
}

/** Whether A2A calls an error by this name. */
export function isReason(error: UampError, reason: Reason): boolean {
  return error.details?.['reason'] === reason
}

export interface Told extends Kind {
  readonly reason: string
  readonly message: string
  readonly details: Readonly<Record<string, unknown>>
}

/** What a client is told of an error. */
export function told(thrown: unknown): Told {
  const error = UampError.from(thrown)
  const { reason, ...details } = error.details ?? {}
  const known = typeof reason === 'string' && reason in REASONS ? (reason as Reason) : undefined
  const kind = known ? REASONS[known] : OTHERS[error.code]
  return { ...kind, of: error.code, reason: known ?? OTHERS[error.code].reason, message: error.message, details }
}

const SERVER = { code: -32603, status: 500, rpc: 'INTERNAL' }
const REQUEST = { code: -32602, status: 400, rpc: 'INVALID_ARGUMENT' }

/** Errors that A2A has no name for. Those that stop a request before it reaches the protocol keep their own HTTP status. */
const OTHERS = {
  invalid_request: { ...REQUEST, reason: 'INVALID_PARAMS' },
  too_large: { ...REQUEST, status: 413, reason: 'REQUEST_TOO_LARGE' },
  conflict: { ...REQUEST, status: 409, rpc: 'ABORTED', reason: 'CONFLICT' },
  response_in_progress: { ...REASONS.UNSUPPORTED_OPERATION, reason: 'UNSUPPORTED_OPERATION' },
  version_mismatch: { ...REASONS.VERSION_NOT_SUPPORTED, reason: 'VERSION_NOT_SUPPORTED' },
  not_supported: { ...REASONS.UNSUPPORTED_OPERATION, reason: 'UNSUPPORTED_OPERATION' },
  not_found: { code: -32601, status: 404, rpc: 'NOT_FOUND', reason: 'NOT_FOUND' },
  agent_offline: { ...SERVER, status: 404, rpc: 'NOT_FOUND', reason: 'AGENT_OFFLINE' },
  unauthorized: { ...SERVER, status: 401, rpc: 'UNAUTHENTICATED', reason: 'UNAUTHENTICATED' },
  forbidden: { ...SERVER, status: 403, rpc: 'PERMISSION_DENIED', reason: 'PERMISSION_DENIED' },
  payment_required: { ...SERVER, status: 402, rpc: 'FAILED_PRECONDITION', reason: 'PAYMENT_REQUIRED' },
  rate_limited: { ...SERVER, status: 429, rpc: 'RESOURCE_EXHAUSTED', reason: 'RATE_LIMITED' },
  overloaded: { ...SERVER, status: 503, rpc: 'UNAVAILABLE', reason: 'OVERLOADED' },
  timeout: { ...SERVER, status: 504, rpc: 'DEADLINE_EXCEEDED', reason: 'TIMEOUT' },
  cancelled: { ...SERVER, status: 499, rpc: 'CANCELLED', reason: 'CANCELLED' },
  interrupted: { ...SERVER, reason: 'INTERRUPTED' },
  approval_unavailable: { ...SERVER, reason: 'APPROVAL_UNAVAILABLE' },
  tool_budget_exceeded: { ...SERVER, reason: 'TOOL_BUDGET_EXCEEDED' },
  provider_error: { ...REASONS.INVALID_AGENT_RESPONSE, reason: 'INVALID_AGENT_RESPONSE' },
  internal: { ...SERVER, reason: 'INTERNAL' },
} satisfies Record<ErrorCode, Omit<Kind, 'of'> & { reason: string }>

/** What A2A 1.0 has in `error.data` (§9.5) and in `error.details` (§11.6): objects that name their type. */
export function errorDetails({ reason, message, details }: Told): readonly object[] {
  const { field, ...rest } = details
  const metadata = Object.entries(rest).map(([name, value]) => [name, typeof value === 'string' ? value : JSON.stringify(value)])
  return [
    {
      '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
      reason,
      domain: 'a2a-protocol.org',
      ...(metadata.length > 0 && { metadata: Object.fromEntries(metadata) as object }),
    },
    ...(typeof field === 'string'
      ? [{ '@type': 'type.googleapis.com/google.rpc.BadRequest', fieldViolations: [{ field, description: message }] }]
      : []),
  ]
}

/** What `error.data` holds before 1.0, where its form is free. */
export function errorData({ reason, details }: Told): object {
  return { reason, ...details }
}

/** Answers an HTTP request with an error, in the form of a binding. */
export type Refusal = (error: UampError, options?: RefusalOptions) => Response

/** `statuses`: the HTTP status of a reason, where this binding has another one than 1.0. */
export function refusalWith(
  contentType: string,
  body: (told: Told, status: number) => object,
  statuses: Readonly<Record<string, number>> = {},
): Refusal {
  return (error, options = {}) => {
    const what = told(error)
    const { allow } = what.details
    const wrongMethod = typeof allow === 'string' ? { status: 405, headers: { allow } } : {}
    const { status = statuses[what.reason] ?? what.status, headers } = { ...wrongMethod, ...options }
    return refusalResponse(error, JSON.stringify(body(what, status)), { status, headers: { 'content-type': contentType, ...headers } })
  }
}

/** JSON-RPC, for a request that is refused before its id is read. */
export const rpcRefusal = refusalWith('application/json', (what) => ({
  jsonrpc: '2.0',
  id: null,
  error: { code: what.code, message: what.message, data: errorDetails(what) },
}))

/** REST of 1.0: `google.rpc.Status` (A2A 1.0 §11.6). */
export const restRefusal = refusalWith('application/a2a+json', restError)

/** The same as the text of an event. */
export function restErrorText(error: UampError): string {
  const what = told(error)
  return JSON.stringify(restError(what, what.status))
}

function restError(what: Told, status: number): object {
  return { error: { code: status, status: what.rpc, message: what.message, details: errorDetails(what) } }
}

/** REST of 0.3: the body is the error of JSON-RPC. */
export const restV03Refusal = refusalWith(
  'application/json',
  (what) => ({ code: what.code, message: what.message, data: errorData(what) }),
  { TASK_NOT_CANCELABLE: 409, CONTENT_TYPE_NOT_SUPPORTED: 415 },
)
