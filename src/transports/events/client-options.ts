import type { Capabilities } from '../../protocol/capabilities.ts'
import { uampIn, understoodEvents } from '../../protocol/extensions.ts'
import { isRecord } from '../../protocol/json.ts'
import type { SessionConfig } from '../../protocol/session-config.ts'

/** What a client announces under `client_capabilities.extensions.uamp`. */
export interface Announced {
  /** It wants `x.ack` once an event is durable. */
  readonly ack: boolean
  /** The extension events it understands. */
  readonly extensions: readonly string[] | 'all'
}

export function announced(capabilities: Capabilities | undefined): Announced {
  return { ack: uampIn(capabilities?.extensions)['ack'] === true, extensions: understoodEvents(capabilities) }
}

/** What a client asks for under `session.extensions.uamp`. */
export interface Wanted {
  readonly resume: { readonly session_id: string; readonly after: number } | undefined
  readonly onDetach: 'cancel' | 'continue'
}

export function wanted(config: SessionConfig): Wanted {
  const { resume, on_detach } = uampIn(config.extensions)
  const known =
    isRecord(resume) && typeof resume['session_id'] === 'string'
      ? { session_id: resume['session_id'], after: position(resume['after']) }
      : undefined
  return { resume: known, onDetach: on_detach === 'cancel' ? 'cancel' : 'continue' }
}

/** A place in the log; anything else is its beginning. */
export function position(value: unknown): number {
  const number = typeof value === 'string' && value !== '' ? Number(value) : value
  return typeof number === 'number' && Number.isSafeInteger(number) && number > 0 ? number : 0
}
