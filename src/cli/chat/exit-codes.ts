import { UampClientError } from '../../client/node.ts'
import { UampError } from '../../protocol/errors.ts'

/** What the exit code of `uamp chat` tells a script. */
export const EXIT = {
  answered: 0,
  /** The answer failed, or the session ended. */
  failed: 1,
  /** The command line or a config is wrong. */
  usage: 2,
  /** The server or the agent would not answer: no valid token, no such agent or session, a limit, a refusal. */
  refused: 3,
  /** There is no server, or it went away and did not come back. */
  unreachable: 4,
  /** What shells give a program that Ctrl-C ended. */
  interrupted: 130,
} as const

const REFUSALS = new Set([
  'unauthorized',
  'forbidden',
  'not_found',
  'agent_offline',
  'payment_required',
  'rate_limited',
  'version_mismatch',
  'approval_unavailable',
])

export function isRefusal(code: string): boolean {
  return REFUSALS.has(code)
}

/** The exit code after an error that ended the chat. */
export function exitCode(thrown: unknown): number {
  if (thrown instanceof UampError) return thrown.code === 'invalid_request' || thrown.code === 'not_found' ? EXIT.usage : EXIT.failed
  if (!(thrown instanceof UampClientError)) return EXIT.failed
  if (thrown.code === 'unreachable') return EXIT.unreachable
  return isRefusal(thrown.code) || Array.isArray(thrown.details?.['agents']) ? EXIT.refused : EXIT.failed
}
