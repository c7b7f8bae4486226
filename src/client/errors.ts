import type { ErrorCode } from '../protocol/errors.ts'
import type { EventOf } from '../protocol/events.ts'

/**
 * What the client says by itself, beside the codes of the protocol:
 * `unreachable` no connection could be made or made again, `closed` by us or the session has ended,
 * `gap` the server no longer has events that were missed, `slow_consumer` a reader let too much pile up.
 */
export type ClientErrorCode = ErrorCode | 'unreachable' | 'closed' | 'gap' | 'slow_consumer'

export interface ErrorBody {
  readonly code: string
  readonly message: string
  readonly details?: Record<string, unknown> | undefined
}

/** The one error of the client. `code` may also be one that only the server knows. */
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

/** Worth another try: the server is busy or restarting, and has said nothing about the request itself. */
export function isTransient({ code }: UampClientError): boolean {
  return code === 'rate_limited' || code === 'overloaded' || code === 'unreachable'
}
