import type { Access, Principal } from '../../core/ports/access.ts'
import type { Session } from '../../core/ports/session.ts'
import type { Host } from '../../core/ports/transport.ts'
import { sessionCreated } from '../../core/edge/session-created.ts'
import { UampError } from '../../protocol/errors.ts'
import type { EventOf, ServerEvent } from '../../protocol/events.ts'
import { negotiateVersion } from '../../protocol/version.ts'
import { wanted } from './client-options.ts'

/** Who sends this event: the token it carries, else whoever opened the connection. A token must not change who that is. */
export async function identify(access: Access, token: string | undefined, { known, fixed = false }: Before): Promise<Principal> {
  const principal = token === undefined ? known : await access.authenticate({ token })
  if (!principal) throw new UampError('unauthorized', token === undefined ? 'Credentials are missing' : 'The token is not valid')
  if (known && !isSame(known, principal) && (fixed || !(await isAnybody(access, known)))) {
    throw new UampError('unauthorized', 'The token belongs to someone else: connect again with it')
  }
  return principal
}

/** What is known of a connection already. */
interface Before {
  readonly known: Principal | undefined
  /** Something was done for them: also somebody who has shown nothing is then no longer anybody. */
  readonly fixed?: boolean
}

/** Whether they are no more than somebody who shows nothing at all. */
async function isAnybody(access: Access, principal: Principal): Promise<boolean> {
  const anybody = await access.authenticate({})
  return anybody !== undefined && isSame(anybody, principal)
}

function isSame(one: Principal, other: Principal): boolean {
  return one.tenant === other.tenant && one.id === other.id
}

/** A session of the caller's, if they may use its agent. */
export function checkAgent(access: Access, principal: Principal, { agent }: Pick<Session, 'agent'>): void {
  if (!access.authorize(principal, 'call', agent)) throw new UampError('forbidden', `You may not use "${agent}"`)
}

export interface Opening {
  readonly event: EventOf<'session.create'>
  readonly principal: Principal
  readonly access: Access
  /** The agent that the path names. */
  readonly agent: string | undefined
}

/** Opens the session that a `session.create` asks for, or finds the one it resumes. */
export async function openSession(
  host: Host,
  { event, principal, access, agent: inPath }: Opening,
): Promise<{ session: Session; after: number; resumed: boolean }> {
  negotiateVersion(event.uamp_version)
  const { resume, onDetach } = wanted(event.session)
  if (resume) {
    const session = await host.gateway.attach(resume.session_id, principal)
    if (!session)
      throw new UampError('not_found', `There is no session "${resume.session_id}"`, { details: { session_id: resume.session_id } })
    checkAgent(access, principal, session)
    return { session, after: resume.after, resumed: true }
  }
  const agent = event.agent ?? inPath
  if (agent === undefined) {
    throw new UampError('invalid_request', 'Say which agent: several are here', { details: { agents: host.agents.names() } })
  }
  checkAgent(access, principal, { agent })
  const session = await host.gateway.open({
    transport: 'events',
    agent,
    principal,
    config: event.session,
    client: event.client_capabilities,
    duplex: true,
    persist: true,
    onDetach,
    announce: { ...(event.chat !== undefined && { chat: event.chat }), extensions: { uamp: { request: event.event_id } } },
  })
  return { session, after: 0, resumed: false }
}

/** Tells a reader that comes back where it stands; not an event of the log. */
export function resumedEvent(session: Session, eventId: string, uamp: Readonly<Record<string, unknown>>): ServerEvent {
  return { ...sessionCreated(session, { extensions: { uamp } }), event_id: eventId, session_id: session.id }
}

/** A new token may come with an update, but not a new owner. */
export async function checkToken(access: Access, token: string | undefined, owner: Principal): Promise<void> {
  if (token !== undefined) await identify(access, token, { known: owner, fixed: true })
}
