import { UampError } from '../../protocol/errors.ts'
import type { Host, Meter } from '../ports/transport.ts'

export interface ErrorReport {
  readonly transport: string
  /** The log message for an error of ours. */
  readonly message: string
  readonly [field: string]: unknown
}

/** Errors that end a response: the session has counted them already. */
const ofResponses = new WeakSet<Error>()

/** Marks the error of a response that failed, so that it is not counted again when a transport throws it. */
export function ofResponse<E extends Error>(error: E): E {
  ofResponses.add(error)
  return error
}

export function isOfResponse(thrown: unknown): boolean {
  return thrown instanceof Error && ofResponses.has(thrown)
}

/** Counts an error, unless a session has. */
export function countError(meter: Meter, transport: string, { thrown, code }: { readonly thrown: unknown; readonly code: string }): void {
  if (!isOfResponse(thrown)) meter.countError(transport, code)
}

/** The error to tell a client. Also counts it, and logs errors of ours, because the client is not told their cause, but only where to look. */
export function reportError(
  { meter, log, secrets }: Pick<Host, 'meter' | 'log' | 'secrets'>,
  thrown: unknown,
  report: ErrorReport,
): UampError {
  const { transport, message, ...fields } = report
  const error = secrets.told(thrown)
  countError(meter, transport, { thrown, code: error.code })
  if (error.code !== 'internal') return error
  log('error', message, { ...fields, error: error.cause ?? error })
  const { request_id } = fields
  if (request_id === undefined) return error
  // Only the log has the cause: this finds the line.
  return new UampError(error.code, error.message, { details: { ...error.details, request_id }, cause: error.cause })
}
