import { isSamePrincipal } from '../../core/basics/principal.ts'
import type { Principal } from '../../core/ports/access.ts'
import type { HostedBySocket, HostingSocket } from '../../core/ports/hosting.ts'
import { UampError } from '../../protocol/errors.ts'
import { SERVER_EVENTS, type ClientEvent, type EventOf } from '../../protocol/events.ts'
import { isRecord, jsonIn, uampIn } from '../../protocol/json.ts'
import { negotiateVersion, UAMP_VERSION } from '../../protocol/version.ts'
import { CONNECT_VERSION, connectIn, DELTAS } from '../../wire/connect.ts'
import { endOf, type Guest, type GuestSocket } from './guest.ts'
import type { HostedAgents } from './hosting.ts'
import type { Interaction } from './interaction.ts'

/** Agents that one socket may host. */
const AGENTS = 256
/** The longest name of a process. */
const INSTANCE = 128

/** Events that both sides send, and that are not about an answer. */
const OF_BOTH: ReadonlySet<string> = new Set(['session.end', 'voice.invite', 'voice.accept', 'voice.decline', 'voice.end', 'message.read'])

/** The agents that one socket hosts, and the requests that they answer over it. */
export class GuestsOfSocket implements HostedBySocket, GuestSocket {
  /** By session id. Only an answer to a request that went out over this very socket is taken. */
  readonly interactions = new Map<string, Interaction>()
  readonly #hosting: HostedAgents
  readonly #socket: HostingSocket
  readonly #guests = new Map<string, Guest>()
  #hasComplained = false

  constructor(hosting: HostedAgents, socket: HostingSocket) {
    this.#hosting = hosting
    this.#socket = socket
  }

  get size(): number {
    return this.#guests.size
  }

  forget(sessionId: string): void {
    if (this.#guests.delete(sessionId)) this.#socket.left()
  }

  write(texts: readonly string[]): void {
    void this.#socket.send(texts)
  }

  host(event: EventOf<'session.create'>, principal: Principal): boolean {
    const { agent: name, token, client_capabilities: client, session } = event
    const connect = connectIn(session.extensions)
    if (name === undefined) return false
    // Ends that know nothing of our additions show what they want by the agent's own token, which comes with the session. Our own
    // clients announce what they understand, and want to talk to an agent.
    const isPlain = !connect && token !== undefined && Object.keys(uampIn(client?.extensions)).length === 0
    if (!connect && !(isPlain && this.#hosting.mayHost({ name, principal }))) return false
    negotiateVersion(event.uamp_version)
    if (this.#guests.size >= AGENTS) {
      throw new UampError('rate_limited', `One connection hosts at most ${AGENTS} agents`, { details: { limit: AGENTS, retry_after: 1 } })
    }
    const given = connect?.['instance']
    const instance = typeof given === 'string' && given !== '' && given.length <= INSTANCE ? given : undefined
    const { agent, guest, resumed } = this.#hosting.admit({ name, principal, instance })
    const rivals = this.#hosting.rivalsOf(agent, guest)
    this.#attach(guest)
    if (connect?.['leaving'] === true) this.#hosting.leave(guest)
    agent.describe(client, connect?.['description'])
    this.#welcome(event, guest, resumed)
    guest.resume()
    for (const rival of rivals) {
      // One that is away does not come back: what it was asked is lost.
      if (rival.connected) rival.send([endOf(rival)])
      else rival.fail()
      this.#hosting.leave(rival)
    }
    return true
  }

  #attach(guest: Guest): void {
    const id = `sess_${this.#hosting.options.newId()}`
    // A second session for an agent that this socket hosts replaces the first.
    for (const [before, other] of this.#guests) if (other === guest) this.#guests.delete(before)
    this.#guests.set(id, guest)
    guest.attach(this, id)
  }

  #welcome({ event_id: request, session }: EventOf<'session.create'>, guest: Guest, resumed: boolean): void {
    const { now, newId, messageBytes } = this.#hosting.options
    const { agent, instance } = guest.options
    const connect = { version: CONNECT_VERSION, resumed, message_bytes: messageBytes }
    const { extensions: _, ...config } = session
    const created = {
      type: 'session.created',
      event_id: newId(),
      timestamp: now(),
      session_id: guest.sessionId,
      uamp_version: UAMP_VERSION,
      session: { id: guest.sessionId, created_at: Math.floor(now() / 1000), config, status: 'active', agent },
      agent,
      extensions: { uamp: { request, ...(instance !== undefined && { connect }) } },
    }
    this.write([JSON.stringify(created)])
  }

  has(sessionId: string): boolean {
    return this.#guests.has(sessionId)
  }

  ownerOf(sessionId: string): Principal | undefined {
    return this.#guests.get(sessionId)?.principal
  }

  handle(event: ClientEvent, principal: Principal): void {
    const guest = this.#guests.get(event.session_id ?? '')
    if (!guest) return
    switch (event.type) {
      case 'session.update':
        this.#hosting.options.gateway.authorize(principal, 'host', guest.options.agent)
        this.#hosting.renew(guest, principal)
        return this.write([JSON.stringify({ type: 'session.updated', event_id: event.event_id, session_id: event.session_id })])
      case 'client.capabilities':
        return this.#hosting.describe(guest, event.capabilities)
      case 'session.end':
        this.forget(guest.sessionId)
        return this.#hosting.leave(guest)
      default:
        throw new UampError('invalid_request', 'This session hosts an agent: only its answers and its end are taken')
    }
  }

  refresh(principal: Principal): void {
    for (const guest of this.#guests.values()) if (isSamePrincipal(guest.principal, principal)) this.#hosting.renew(guest, principal)
  }

  take(text: string): boolean {
    if (this.#guests.size === 0 && this.interactions.size === 0) return false
    const value = jsonIn(text)
    if (isRecord(value)) return this.#takeOne(value)
    if (!Array.isArray(value)) return false
    for (const each of value as readonly unknown[]) if (isRecord(each)) this.#takeOne(each)
    return true
  }

  #takeOne(value: Record<string, unknown>): boolean {
    const { type, session_id: id } = value
    const interaction = typeof id === 'string' ? this.interactions.get(id) : this.#only(id)
    if (!interaction) return this.#stray(type, id)
    if (type === DELTAS) interaction.takeTexts(value['seq'], value['texts'])
    else interaction.take(value)
    return true
  }

  /** UAMP events §10.1: with one session, events may lack its id. */
  #only(id: unknown): Interaction | undefined {
    return id === undefined && this.interactions.size === 1 ? this.interactions.values().next().value : undefined
  }

  /** True for a piece of an answer that nobody waits for here: it is left out. It may be late, or an answer to somebody else's request. */
  #stray(type: unknown, id: unknown): boolean {
    if (typeof type !== 'string' || OF_BOTH.has(type) || (type !== DELTAS && !SERVER_EVENTS.has(type))) return false
    if (type === 'x.ack' || typeof id !== 'string') return true
    if (this.#hasComplained) return true
    this.#hasComplained = true
    const agents = [...this.#guests.values()].map(({ options }) => options.agent).slice(0, 8)
    this.#hosting.options.log('info', 'A hosted agent answered under a session id that is not open here', { agents: agents.join(', ') })
    return true
  }

  close(): void {
    const guests = new Set(this.#guests.values())
    for (const { way } of this.interactions.values()) guests.add(way as Guest)
    this.#guests.clear()
    for (const guest of guests) if (guest.isAt(this)) this.#hosting.lost(guest)
    this.interactions.clear()
  }
}
