import type { UampError } from '../../protocol/errors.ts'
import type { Host } from '../ports/transport.ts'

export interface ErrorReport {
  readonly transport: string
  /** The log message for an error of ours. */
  readonly message: string
  readonly [field: string]: unknown
}

/** The error to tell a client. Also counts it, and logs errors of ours, because the client is not told their cause. */
export function reportError(
  { meter, log, secrets }: Pick<Host, 'meter' | 'log' | 'secrets'>,
  thrown: unknown,
  report: ErrorReport,
): UampError {
  const { transport, message, ...fields } = report
  const error = secrets.told(thrown)
  meter.countError(transport, error.code)
  if (error.code === 'internal') log('error', message, { ...fields, error: error.cause ?? error })
  return error
}
