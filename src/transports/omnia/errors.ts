import type { RefusalOptions } from '../../core/ports/transport.ts'
import { UampError, type ErrorCode } from '../../protocol/errors.ts'
import type { EventOf } from '../../protocol/events.ts'
import type { Slot } from '../../protocol/json.ts'
import { refusalResponse } from '../../wire/refusal.ts'

const CODES = {
  invalid_request: 'INVALID_MESSAGE',
  unauthorized: 'AGENT_UNAVAILABLE',
  forbidden: 'AGENT_UNAVAILABLE',
  payment_required: 'PAYMENT_REQUIRED',
  not_found: 'INVALID_MESSAGE',
  agent_offline: 'AGENT_UNAVAILABLE',
  conflict: 'UPLOAD_FAILED',
  response_in_progress: 'RATE_LIMITED',
  version_mismatch: 'INVALID_MESSAGE',
  too_large: 'INVALID_MESSAGE',
  rate_limited: 'RATE_LIMITED',
  timeout: 'PROVIDER_ERROR',
  cancelled: 'INTERNAL_ERROR',
  interrupted: 'AGENT_UNAVAILABLE',
  approval_unavailable: 'TOOL_ERROR',
  tool_budget_exceeded: 'TOOL_ERROR',
  not_supported: 'INVALID_MESSAGE',
  provider_error: 'PROVIDER_ERROR',
  overloaded: 'AGENT_UNAVAILABLE',
  internal: 'INTERNAL_ERROR',
} as const satisfies Record<ErrorCode, string>

/** Codes that agents give an answer which failed because of a tool; ours are in the table. */
const TOOL = /^tool(_|$)/

/** Codes of the specification, of Omnia's own server where that has none, and ours for payment. */
export type OmniaCode = (typeof CODES)[ErrorCode] | 'SESSION_NOT_FOUND' | 'SESSION_EXPIRED' | 'MEDIA_NOT_ENABLED' | 'UNSATISFIABLE_FORMAT'

/** How an error is told that its own code does not describe well enough. */
interface Told extends RefusalOptions {
  readonly code: OmniaCode
}

export function omniaError(told: OmniaCode | Told, code: ErrorCode, message: string): UampError {
  return new UampError(code, message, { details: { omnia: typeof told === 'string' ? { code: told } : told } })
}

export function invalid(message: string): UampError {
  return new UampError('invalid_request', message)
}

export function expired(): UampError {
  return omniaError('SESSION_EXPIRED', 'not_found', 'The session has ended: start a new one')
}

export function inFlight(): UampError {
  return new UampError('rate_limited', 'too many in-flight requests')
}

/** Why a session refused a message, in terms of this protocol. */
export function refusedBy(thrown: unknown): UampError {
  const error = UampError.from(thrown)
  const { max_inputs: parts, max_bytes: bytes } = error.details ?? {}
  if (error.code === 'not_found') return expired()
  if (error.code === 'response_in_progress') return inFlight()
  if (error.code !== 'too_large') return error
  return new UampError('too_large', `A message may have ${String(parts)} parts and ${String(bytes)} bytes`)
}

/** An error as clients see it. `details.code` is our own, finer code. */
export function errorInfo({ code, message, details = {} }: EventOf<'response.error'>['error'], more: Slot = {}): Slot {
  const { omnia, ...rest } = details
  const unknown = TOOL.test(code) ? 'TOOL_ERROR' : CODES.internal
  const usual = Object.hasOwn(CODES, code) ? CODES[code as ErrorCode] : unknown
  return { code: (omnia as Told | undefined)?.code ?? usual, message, details: { code, ...rest, ...more } }
}

export function refusal(error: UampError, options?: RefusalOptions): Response {
  const told = error.details?.['omnia'] as Told | undefined
  return refusalResponse(error, JSON.stringify({ error: errorInfo(error) }), { ...told, ...options })
}
