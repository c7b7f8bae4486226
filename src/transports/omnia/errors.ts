import type { RefusalOptions } from '../../core/ports/transport.ts'
import { UampError, type ErrorCode } from '../../protocol/errors.ts'
import type { EventOf } from '../../protocol/events.ts'

/** The specification's codes, those of Omnia's own facade where it has none, and ours for payment. */
export type OmniaCode =
  | 'INVALID_MESSAGE'
  | 'SESSION_NOT_FOUND'
  | 'SESSION_EXPIRED'
  | 'PROVIDER_ERROR'
  | 'TOOL_ERROR'
  | 'INTERNAL_ERROR'
  | 'UPLOAD_FAILED'
  | 'MEDIA_NOT_ENABLED'
  | 'AGENT_UNAVAILABLE'
  | 'RATE_LIMITED'
  | 'UNSATISFIABLE_FORMAT'
  | 'PAYMENT_REQUIRED'

const TABLE = {
  invalid_request: ['INVALID_MESSAGE', 400],
  unauthorized: ['AGENT_UNAVAILABLE', 401],
  forbidden: ['AGENT_UNAVAILABLE', 403],
  payment_required: ['PAYMENT_REQUIRED', 402],
  not_found: ['INVALID_MESSAGE', 404],
  agent_offline: ['AGENT_UNAVAILABLE', 404],
  conflict: ['UPLOAD_FAILED', 409],
  response_in_progress: ['RATE_LIMITED', 409],
  version_mismatch: ['INVALID_MESSAGE', 400],
  too_large: ['INVALID_MESSAGE', 413],
  rate_limited: ['RATE_LIMITED', 429],
  timeout: ['PROVIDER_ERROR', 504],
  cancelled: ['INTERNAL_ERROR', 499],
  interrupted: ['AGENT_UNAVAILABLE', 503],
  approval_unavailable: ['TOOL_ERROR', 409],
  tool_budget_exceeded: ['TOOL_ERROR', 500],
  not_supported: ['INVALID_MESSAGE', 501],
  provider_error: ['PROVIDER_ERROR', 502],
  overloaded: ['AGENT_UNAVAILABLE', 503],
  internal: ['INTERNAL_ERROR', 500],
} satisfies Record<ErrorCode, readonly [OmniaCode, number]>

export interface ErrorInfo {
  readonly code: OmniaCode
  readonly message: string
  readonly details: Readonly<Record<string, unknown>>
}

/** What a client is told. `details.code` is our own, finer one; `details.omnia` names Omnia's where it is not the usual. */
export function errorInfo({ code, message, details = {} }: EventOf<'response.error'>['error']): ErrorInfo {
  const { omnia, ...rest } = details
  const [usual] = Object.hasOwn(TABLE, code) ? TABLE[code as ErrorCode] : TABLE.internal
  return { code: (omnia as OmniaCode | undefined) ?? usual, message, details: { code, ...rest } }
}

/** An error whose code here is not the usual one. */
export function omniaError(omnia: OmniaCode, code: ErrorCode, message: string): UampError {
  return new UampError(code, message, { details: { omnia } })
}

export function refusal(error: UampError, { status = TABLE[error.code][1], headers }: RefusalOptions = {}): Response {
  const wait = error.details?.['retry_after']
  return new Response(JSON.stringify({ error: errorInfo(error.toBody()) }), {
    status,
    headers: {
      'content-type': 'application/json',
      ...(error.code === 'unauthorized' && { 'www-authenticate': 'Bearer' }),
      ...(typeof wait === 'number' && { 'retry-after': String(Math.ceil(wait)) }),
      ...headers,
    },
  })
}
