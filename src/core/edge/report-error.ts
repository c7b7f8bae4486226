import type { UampError } from '../../protocol/errors.ts'
import type { Host } from '../ports/transport.ts'

export interface ErrorReport {
  readonly transport: string
  /** What the log says of an error that is our own. */
  readonly message: string
  readonly [field: string]: unknown
}

/** What a client is to be told of what was thrown. It is counted; our own mistakes are logged too, as nobody else learns what they were. */
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
