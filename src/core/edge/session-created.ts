import type { Draft, EventOf } from '../../protocol/events.ts'
import { UAMP_VERSION } from '../../protocol/version.ts'
import { Stamp } from '../log/entry.ts'
import type { Session } from '../ports/session.ts'
import { hidden } from '../secrets/sealing.ts'
import type { AgentSession } from '../engine/session.ts'

type Extra = Partial<Pick<EventOf<'session.created'>, 'chat' | 'extensions'>>

/** Appends the first two events of a session. */
export function announce(session: AgentSession, extra: Extra = {}): void {
  session.log.append(new Stamp(session.id), sessionCreated(session, extra))
  session.announceCapabilities()
}

/** `session.created`, for a session that opens and for clients that come back to it. */
export function sessionCreated(
  { id, createdAt, config, agent, chat }: Pick<Session, 'id' | 'createdAt' | 'config' | 'agent' | 'chat'>,
  extra: Extra,
): Draft<EventOf<'session.created'>> {
  // Hide payments: the log is stored and may have other readers, and the client knows them anyway.
  const shown = config.extensions ? { ...config, extensions: hidden(config.extensions) } : config
  const session = { id, created_at: Math.floor(createdAt / 1000), config: shown, status: 'active' as const }
  return { type: 'session.created', uamp_version: UAMP_VERSION, session, agent, ...(chat !== undefined && { chat }), ...extra }
}
