import { UampError } from '../../protocol/errors.ts'

/** Seconds after which an agent may be there: it may come with the next reload of the configuration. */
const RETRY_AFTER = 30

/** The refusal of an agent that is not there (UAMP events §6.3). */
export function agentOffline(message: string, details: Readonly<Record<string, unknown>> = {}): UampError {
  return new UampError('agent_offline', message, { details: { retry_after: RETRY_AFTER, ...details } })
}
