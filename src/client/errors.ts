import type { ErrorCode } from '../protocol/errors.ts'
import type { EventOf, ServerEvent } from '../protocol/events.ts'

/**
 * The codes of the protocol, and the client's own: `unreachable` (it cannot connect, or reconnect), `closed` (by the client, or the
 * session has ended), `gap` (the server no longer has the missed events), `slow_consumer` (a reader let too much pile up), `bad_signature`
 * (an answer that was to be verified is not signed, or not by the server), `payment_declined` and `budget_exceeded` (the wallet does not
 * pay).
 */
export type ClientErrorCode =
  ErrorCode | 'unreachable' | 'closed' | 'gap' | 'slow_consumer' | 'bad_signature' | 'payment_declined' | 'budget_exceeded'

export interface ErrorBody {
  readonly code: string
  readonly message: string
  readonly details?: Record<string, unknown> | undefined
}

/** The client's only error class. `code` may be one that only the server knows. */
export class UampClientError extends Error {
  override readonly name = 'UampClientError'
  readonly code: ClientErrorCode | (string & {})
  readonly details: Record<string, unknown> | undefined

  constructor({ code, message, details }: ErrorBody & { readonly code: ClientErrorCode | (string & {}) }, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.code = code
    this.details = details
  }

  static from(event: EventOf<'session.error' | 'response.error'>): UampClientError {
    return new UampClientError(event.error)
  }
}

/** True if the server says that a token has expired, of itself and not as the answer to an event. */
export function tellsExpiry({ type, ...event }: ServerEvent): boolean {
  if (type === 'session.end') return 'reason' in event && event.reason === 'token_expired'
  if (type !== 'session.error' || !('error' in event)) return false
  const { reason, event_id: answered } = event.error?.details ?? {}
  return reason === 'token_expired' && answered === undefined
}

/** True if another try may work: the server is busy or restarting, and has not judged the request. */
export function isTransient({ code }: UampClientError): boolean {
  return code === 'rate_limited' || code === 'overloaded' || code === 'unreachable'
}
