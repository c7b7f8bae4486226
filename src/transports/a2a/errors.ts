/** Our errors as A2A's. */
import { UampError, type ErrorCode } from '../../protocol/errors.ts'
import { REASONS, type Kind, type Reason } from '../../wire/a2a/errors.ts'

/** An error that A2A has a name for. `field`: where in the request, as `message.parts[0]`. */
export function a2aError(reason: Reason, message: string, details?: Readonly<Record<string, unknown>>): UampError {
  return new UampError(REASONS[reason].of, message, { details: { ...details, reason } })
}

export interface Told extends Kind {
  readonly reason: string
  readonly message: string
  readonly details: Readonly<Record<string, unknown>>
}

/** What the outside is told of an error. */
export function told(thrown: unknown): Told {
  const error = UampError.from(thrown)
  const { reason, ...details } = error.details ?? {}
  const known = typeof reason === 'string' && reason in REASONS ? (reason as Reason) : undefined
  const kind = known ? REASONS[known] : OTHERS[error.code]
  return { ...kind, of: error.code, reason: known ?? OTHERS[error.code].reason, message: error.message, details }
}

const SERVER = { code: -32603, status: 500, rpc: 'INTERNAL' }
const REQUEST = { code: -32602, status: 400, rpc: 'INVALID_ARGUMENT' }

/** Errors that A2A has no name for. HTTP keeps its own status where the request did not reach the protocol. */
const OTHERS = {
  invalid_request: { ...REQUEST, reason: 'INVALID_PARAMS' },
  too_large: { ...REQUEST, status: 413, reason: 'REQUEST_TOO_LARGE' },
  conflict: { ...REQUEST, status: 409, rpc: 'ABORTED', reason: 'CONFLICT' },
  response_in_progress: { code: -32004, status: 400, rpc: 'FAILED_PRECONDITION', reason: 'UNSUPPORTED_OPERATION' },
  version_mismatch: { code: -32009, status: 400, rpc: 'FAILED_PRECONDITION', reason: 'VERSION_NOT_SUPPORTED' },
  not_supported: { code: -32004, status: 400, rpc: 'FAILED_PRECONDITION', reason: 'UNSUPPORTED_OPERATION' },
  not_found: { code: -32601, status: 404, rpc: 'NOT_FOUND', reason: 'NOT_FOUND' },
  agent_offline: { code: -32603, status: 404, rpc: 'NOT_FOUND', reason: 'AGENT_OFFLINE' },
  unauthorized: { code: -32603, status: 401, rpc: 'UNAUTHENTICATED', reason: 'UNAUTHENTICATED' },
  forbidden: { code: -32603, status: 403, rpc: 'PERMISSION_DENIED', reason: 'PERMISSION_DENIED' },
  payment_required: { code: -32603, status: 402, rpc: 'FAILED_PRECONDITION', reason: 'PAYMENT_REQUIRED' },
  rate_limited: { code: -32603, status: 429, rpc: 'RESOURCE_EXHAUSTED', reason: 'RATE_LIMITED' },
  overloaded: { code: -32603, status: 503, rpc: 'UNAVAILABLE', reason: 'OVERLOADED' },
  timeout: { code: -32603, status: 504, rpc: 'DEADLINE_EXCEEDED', reason: 'TIMEOUT' },
  cancelled: { code: -32603, status: 499, rpc: 'CANCELLED', reason: 'CANCELLED' },
  interrupted: { ...SERVER, reason: 'INTERRUPTED' },
  approval_unavailable: { ...SERVER, reason: 'APPROVAL_UNAVAILABLE' },
  tool_budget_exceeded: { ...SERVER, reason: 'TOOL_BUDGET_EXCEEDED' },
  provider_error: { code: -32006, status: 500, rpc: 'INTERNAL', reason: 'INVALID_AGENT_RESPONSE' },
  internal: { ...SERVER, reason: 'INTERNAL' },
} satisfies Record<ErrorCode, Omit<Kind, 'of'> & { reason: string }>
