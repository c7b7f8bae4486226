import { withHops } from '../../core/basics/hops.ts'
import { isDenial, isSamePrincipal, unauthorized } from '../../core/basics/principal.ts'
import type { Access, Action, Principal } from '../../core/ports/access.ts'
import type { Session } from '../../core/ports/session.ts'
import type { Trace } from '../../core/ports/trace.ts'
import type { Host } from '../../core/ports/transport.ts'
import { sessionCreated } from '../../core/edge/session-created.ts'
import { understoodEvents, type ClientProfile } from '../../protocol/capabilities.ts'
import { UampError } from '../../protocol/errors.ts'
import type { ClientEvent, EventOf, ServerEvent } from '../../protocol/events.ts'
import { fieldsOf, uampIn } from '../../protocol/json.ts'
import { tokenPayment } from '../../protocol/payment.ts'
import { negotiateVersion } from '../../protocol/version.ts'

/** Who sends this event: the owner of its token, or else whoever opened the connection (UAMP events §10.3). */
export async function identify(access: Access, token: string | undefined, known: Principal | undefined): Promise<Principal> {
  const found = token === undefined ? known : await access.authenticate({ token })
  if (found && !isDenial(found)) return found
  throw unauthorized(found, token === undefined ? 'Credentials are missing' : 'The token is not valid')
}

/** The same principal by a newer token. Nobody can take over what belongs to somebody else. */
export async function refreshed(access: Access, token: string, owner: Principal): Promise<Principal> {
  const principal = await identify(access, token, undefined)
  if (isSamePrincipal(principal, owner)) return principal
  throw new UampError('unauthorized', 'The token belongs to someone else: open a session of its own with it')
}

/** True for a `session.update` that brings a newer token and changes nothing. */
export function onlyRefreshes(event: EventOf<'session.update'>): boolean {
  return event.token !== undefined && event.session === undefined && event.payment_token === undefined
}

/** What a client must be allowed to do in order to send an event. `openSession` asks for more. */
const ACTIONS = {
  'input.text': 'call',
  'input.audio': 'call',
  'input.image': 'call',
  'input.video': 'call',
  'input.file': 'call',
  'input.typing': 'call',
  'response.create': 'call',
  'response.cancel': 'cancel',
  'session.update': 'call',
  'session.end': 'cancel',
  'tool.result': 'call',
  'x.approval.response': 'call',
  'payment.submit': 'call',
  'message.read': 'call',
  'voice.invite': 'call',
  'voice.accept': 'call',
  'voice.decline': 'call',
  'voice.end': 'call',
  'client.capabilities': 'read',
  'capabilities.query': 'read',
  'session.create': 'read',
  ping: 'read',
} satisfies Record<ClientEvent['type'], Action>

/** Throws `forbidden` if the principal may read the session, but not do this. */
export function checkEvent({ gateway }: Host, { type }: ClientEvent, { principal, agent }: Sending): void {
  gateway.authorize(principal, ACTIONS[type], agent)
}

interface Sending {
  readonly principal: Principal
  readonly agent: string
}

/** A session of the caller's, if they may use its agent. */
export async function findSession(host: Host, id: string, principal: Principal): Promise<Session> {
  const session = await host.gateway.attach(id, principal, 'read')
  if (!session) throw new UampError('not_found', `There is no session "${id}"`, { details: { session_id: id } })
  return session
}

interface Opening {
  readonly principal: Principal
  readonly event: EventOf<'session.create'>
  /** The agent that the path names. */
  readonly agent: string | undefined
  readonly trace: Trace
}

/** Opens the session that a `session.create` asks for, or finds the one that it resumes. */
export async function openSession(host: Host, opening: Opening): Promise<{ session: Session; after: number; resumed: boolean }> {
  const { event, principal, agent: inPath } = opening
  negotiateVersion(event.uamp_version)
  const { resume, on_detach, hops } = uampIn(event.session.extensions)
  const { session_id: known, after } = fieldsOf(resume)
  if (typeof known === 'string') return { session: await findSession(host, known, principal), after: position(after), resumed: true }
  const agent = event.agent ?? inPath
  if (agent === undefined) {
    throw new UampError('invalid_request', 'Name an agent: this server has several', { details: { agents: host.agents.names() } })
  }
  const payment = tokenPayment(event.payment_token)
  const session = await host.gateway.open({
    transport: 'events',
    agent,
    principal,
    trace: withHops(opening.trace, hops),
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

/** What a client announces under `client_capabilities.extensions.uamp`. `ack`: it wants `x.ack` once an event is durable. */
export function announced(capabilities: ClientProfile | undefined): { ack: boolean; extensions: readonly string[] | 'all' } {
  return { ack: uampIn(capabilities?.extensions)['ack'] === true, extensions: understoodEvents(capabilities) }
}

/** A place in the log; anything else is its beginning. */
export function position(value: unknown): number {
  const number = typeof value === 'string' && value !== '' ? Number(value) : value
  return typeof number === 'number' && Number.isSafeInteger(number) && number > 0 ? number : 0
}
