import type { Access, Principal } from '../../core/ports/access.ts'
import type { Session } from '../../core/ports/session.ts'
import type { Trace } from '../../core/ports/trace.ts'
import type { Host } from '../../core/ports/transport.ts'
import { sessionCreated } from '../../core/edge/session-created.ts'
import { understoodEvents, type ClientProfile } from '../../protocol/capabilities.ts'
import { UampError } from '../../protocol/errors.ts'
import type { EventOf, ServerEvent } from '../../protocol/events.ts'
import { fieldsOf, uampIn } from '../../protocol/json.ts'
import { tokenPayment } from '../../protocol/payment.ts'
import { negotiateVersion } from '../../protocol/version.ts'

/** Who sends this event: the owner of its token, or else whoever opened the connection. A token must not change who that is. */
export async function identify(access: Access, token: string | undefined, { known, fixed = false }: Before): Promise<Principal> {
  const principal = token === undefined ? known : await access.authenticate({ token })
  if (!principal) throw new UampError('unauthorized', token === undefined ? 'Credentials are missing' : 'The token is not valid')
  if (known && !isSame(known, principal) && (fixed || !(await isAnybody(access, known)))) {
    throw new UampError('unauthorized', 'The token belongs to someone else: connect again with it')
  }
  return principal
}

/** What is known about a connection already. */
interface Before {
  readonly known: Principal | undefined
  /** The connection has acted as `known`: from then on even an anonymous caller stays the same. */
  readonly fixed?: boolean
}

/** Whether a caller without credentials would be the same principal. */
async function isAnybody(access: Access, principal: Principal): Promise<boolean> {
  const anybody = await access.authenticate({})
  return anybody !== undefined && isSame(anybody, principal)
}

function isSame(one: Principal, other: Principal): boolean {
  return one.tenant === other.tenant && one.id === other.id
}

/** A session of the caller's, if they may use its agent. */
export async function findSession(host: Host, id: string, caller: Caller): Promise<Session> {
  const session = await host.gateway.attach(id, caller.principal)
  if (!session) throw new UampError('not_found', `There is no session "${id}"`, { details: { session_id: id } })
  checkAgent(caller, session.agent)
  return session
}

export function checkAgent({ principal, access }: Caller, agent: string): void {
  if (!access.authorize(principal, 'call', agent)) throw new UampError('forbidden', `You may not use "${agent}"`)
}

interface Caller {
  readonly principal: Principal
  readonly access: Access
}

interface Opening extends Caller {
  readonly event: EventOf<'session.create'>
  /** The agent that the path names. */
  readonly agent: string | undefined
  readonly trace: Trace
}

/** Opens the session that a `session.create` asks for, or finds the one that it resumes. */
export async function openSession(host: Host, opening: Opening): Promise<{ session: Session; after: number; resumed: boolean }> {
  const { event, principal, agent: inPath } = opening
  negotiateVersion(event.uamp_version)
  const { resume, on_detach } = uampIn(event.session.extensions)
  const { session_id: known, after } = fieldsOf(resume)
  if (typeof known === 'string') return { session: await findSession(host, known, opening), after: position(after), resumed: true }
  const agent = event.agent ?? inPath
  if (agent === undefined) {
    throw new UampError('invalid_request', 'Name an agent: this server has several', { details: { agents: host.agents.names() } })
  }
  checkAgent(opening, agent)
  const payment = tokenPayment(event.payment_token)
  const session = await host.gateway.open({
    transport: 'events',
    agent,
    principal,
    trace: opening.trace,
    config: event.session,
    client: event.client_capabilities,
    duplex: true,
    persist: true,
    onDetach: on_detach === 'cancel' ? 'cancel' : 'continue',
    ...(payment && { payment }),
    announce: { ...(event.chat !== undefined && { chat: event.chat }), extensions: { uamp: { request: event.event_id } } },
  })
  return { session, after: 0, resumed: false }
}

/** What every event has, for those that are not in the log. */
export function marks({ newId, now }: Pick<Host, 'newId' | 'now'>): { readonly event_id: string; readonly timestamp: number } {
  return { event_id: newId(), timestamp: now() }
}

/** Tells a reader that comes back where it stands. It is not in the log. */
export function resumedEvent(host: Host, session: Session, uamp: Readonly<Record<string, unknown>>): ServerEvent {
  return { ...sessionCreated(session, { extensions: { uamp } }), ...marks(host), session_id: session.id }
}

/** A new token may come with an update, but not a new owner. */
export async function checkToken(access: Access, token: string | undefined, owner: Principal): Promise<void> {
  if (token !== undefined) await identify(access, token, { known: owner, fixed: true })
}

/** What a client announces under `client_capabilities.extensions.uamp`. `ack`: it wants `x.ack` once an event is durable. */
export function announced(capabilities: ClientProfile | undefined): { ack: boolean; extensions: readonly string[] | 'all' } {
  return { ack: uampIn(capabilities?.extensions)['ack'] === true, extensions: understoodEvents(capabilities) }
}

/** A place in the log; anything else is its beginning. */
export function position(value: unknown): number {
  const number = typeof value === 'string' && value !== '' ? Number(value) : value
  return typeof number === 'number' && Number.isSafeInteger(number) && number > 0 ? number : 0
}
