/**
 * Every code this package throws or sends. A transport maps all of them with a table that
 * `satisfies Record<ErrorCode, …>`, so a new code does not compile until each protocol has an answer to it.
 */
export type ErrorCode =
  | 'invalid_request'
  | 'unauthorized'
  | 'forbidden'
  | 'payment_required'
  | 'not_found'
  | 'agent_offline'
  | 'conflict'
  | 'response_in_progress'
  | 'version_mismatch'
  | 'too_large'
  | 'rate_limited'
  | 'timeout'
  | 'cancelled'
  | 'interrupted'
  | 'approval_unavailable'
  | 'tool_budget_exceeded'
  | 'not_supported'
  | 'provider_error'
  | 'overloaded'
  | 'internal'

/** The only error class. `code` is the contract, `message` is for people, `details` go to the client, `cause` stays on the server. */
export class UampError extends Error {
  override readonly name = 'UampError'
  readonly code: ErrorCode
  readonly details: Record<string, unknown> | undefined

  constructor(code: ErrorCode, message: string, options?: { readonly cause?: unknown; readonly details?: Record<string, unknown> }) {
    super(message, options?.cause === undefined ? undefined : { cause: options.cause })
    this.code = code
    this.details = options?.details
  }

  /** The only place that turns a thrown value into a UampError. The text of an unknown error stays on the server, in `cause`. */
  static from(thrown: unknown): UampError {
    if (thrown instanceof UampError) return thrown
    if (thrown instanceof DOMException && thrown.name === 'AbortError') {
      return new UampError('cancelled', 'The turn was cancelled', { cause: thrown })
    }
    if (thrown instanceof DOMException && thrown.name === 'TimeoutError') return new UampError('timeout', 'Timed out', { cause: thrown })
    // V8 bounds a string at half a gigabyte. Escaping can exceed that within our own limits.
    if (thrown instanceof RangeError && thrown.message === 'Invalid string length') {
      return new UampError('too_large', 'This is larger than one message can be', { cause: thrown })
    }
    return new UampError('internal', 'Internal error', { cause: thrown })
  }

  /** The `error` object of `session.error` and `response.error`. */
  toBody(): { code: string; message: string; details?: Record<string, unknown> } {
    return { code: this.code, message: this.message, ...(this.details && { details: this.details }) }
  }
}
