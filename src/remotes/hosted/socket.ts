import { isSamePrincipal } from '../../core/basics/principal.ts'
import { weigh } from '../../core/basics/weight.ts'
import type { Principal } from '../../core/ports/access.ts'
import type { HostedBySocket, HostingSocket } from '../../core/ports/hosting.ts'
import type { ClientProfile } from '../../protocol/capabilities.ts'
import { UampError } from '../../protocol/errors.ts'
import { SERVER_EVENTS, type ClientEvent, type EventOf } from '../../protocol/events.ts'
import { isRecord, jsonIn, JsonBoundError, outlineOf, parseJson, uampIn } from '../../protocol/json.ts'
import { negotiateVersion, UAMP_VERSION } from '../../protocol/version.ts'
import { CONNECT_VERSION, connectIn, DELTAS } from '../../wire/connect.ts'
import { endOf, type Guest, type GuestSocket } from './guest.ts'
import type { Admitted, HostedAgents } from './hosting.ts'
import type { Interaction } from './interaction.ts'

/** Agents that one socket may host. */
const AGENTS = 256
/** The longest name of a process. */
const INSTANCE = 128
/** Bytes of what an agent says that it can do. */
const PROFILE = 64 * 1024

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
    if (name === undefined) {
      if (connect) throw new UampError('invalid_request', 'Name the agent that this session hosts')
      return false
    }
    // Ends that know nothing of our additions show what they want by the agent's own token, which comes with the session. Our own
    // clients announce what they understand, and want to talk to an agent.
    const isPlain = !connect && token !== undefined && Object.keys(uampIn(client?.extensions)).length === 0
    if (!connect && !(isPlain && this.#hosting.isOwnToken({ name, principal }))) return false
    try {
      negotiateVersion(event.uamp_version)
      checkProfile(client)
      this.#checkRoom(name)
      const given = connect?.['instance']
      const instance = typeof given === 'string' && given !== '' && given.length <= INSTANCE ? given : undefined
      const arrival = this.#hosting.admit({ name, principal, instance })
      this.#arrive(event, arrival, { leaving: connect?.['leaving'] === true, description: connect?.['description'] })
    } catch (thrown) {
      this.#hosting.logRefusal(name, principal, UampError.from(thrown))
      throw thrown
    }
    return true
  }

  #arrive(event: EventOf<'session.create'>, { agent, guest, resumed }: Admitted, said: { leaving: boolean; description: unknown }): void {
    const isReplaced = this.#hosting.isReplaced(agent, guest)
    // One that has come back only to finish its answers takes nothing over.
    const leaves = said.leaving || isReplaced
    const rivals = leaves ? [] : this.#hosting.rivalsOf(agent, guest)
    this.#attach(guest)
    if (!leaves) agent.describe(event.client_capabilities, said.description)
    this.#welcome(event, guest, resumed)
    guest.resume()
    // It was told before, and did not hear it.
    if (isReplaced) guest.send([endOf(guest)])
    if (leaves) this.#hosting.leave(guest)
    for (const rival of rivals) this.#hosting.replace(agent, rival)
  }

  #checkRoom(name: string): void {
    if (this.#guests.size < AGENTS || [...this.#guests.values()].some(({ options }) => options.agent === name)) return
    throw new UampError('rate_limited', `One connection hosts at most ${AGENTS} agents: connect again for others`, {
      details: { limit: AGENTS },
    })
  }

  #attach(guest: Guest): void {
    const id = `sess_${this.#hosting.options.newId()}`
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
        checkProfile(event.capabilities)
        return this.#hosting.describe(guest, event.capabilities)
      case 'session.end':
        this.forget(guest.sessionId)
        return this.#hosting.leave(guest)
      default:
        throw new UampError('invalid_request', 'This session hosts an agent: only its answers and its end are taken')
    }
  }

  refresh(principal: Principal): void {
    for (const guest of this.#guests.values()) {
      // A newer token that allows less does not keep an agent here: it stays for as long as the last one that did.
      if (isSamePrincipal(guest.principal, principal) && this.#hosting.mayHost({ name: guest.options.agent, principal }))
        this.#hosting.renew(guest, principal)
    }
  }

  take(text: string): boolean {
    if (this.#guests.size === 0 && this.interactions.size === 0) return false
    let value: unknown
    try {
      value = parseJson(text)
    } catch (thrown) {
      return thrown instanceof JsonBoundError && this.#tooLarge(text, thrown)
    }
    if (isRecord(value)) return this.#takeOne(value)
    if (!Array.isArray(value)) return false
    const others = (value as readonly unknown[]).filter((each) => !isRecord(each) || !this.#takeOne(each))
    if (others.length > 0) throw new UampError('invalid_request', 'Of several events in one message, each must be a piece of an answer')
    return true
  }

  #takeOne(value: Record<string, unknown>): boolean {
    const { type, session_id: id } = value
    const interaction = typeof id === 'string' ? this.interactions.get(id) : isAnswer(type) ? this.#only(id) : undefined
    if (!interaction) return this.#stray(type, id)
    if (type === DELTAS) interaction.takeTexts(value['seq'], value['texts'])
    else interaction.take(value)
    return true
  }

  /** An event of an answer that cannot be read: the answer would go on without it. False: it is none. */
  #tooLarge(text: string, { message }: JsonBoundError): boolean {
    const outline = jsonIn(outlineOf(text))
    const id = isRecord(outline) ? outline['session_id'] : undefined
    const interaction = typeof id === 'string' ? this.interactions.get(id) : undefined
    interaction?.refuse(`sent an event that cannot be read: it ${message}`)
    return interaction !== undefined
  }

  /** UAMP events §10.1: with one session, events may lack its id. */
  #only(id: unknown): Interaction | undefined {
    return id === undefined && this.interactions.size === 1 ? this.interactions.values().next().value : undefined
  }

  /** True for a piece of an answer that nobody waits for here: it is left out. It may be late, or an answer to somebody else's request. */
  #stray(type: unknown, id: unknown): boolean {
    if (type === 'pong') return true
    if (!isAnswer(type)) return false
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

/** True for what an agent says. Everything else on its socket is said by a client, such as a ping, and belongs to no answer. */
function isAnswer(type: unknown): type is string {
  return typeof type === 'string' && type !== 'pong' && (type === DELTAS || (SERVER_EVENTS.has(type) && !OF_BOTH.has(type)))
}

/** Throws `too_large`: what an agent says of itself is kept, and shown to everybody who asks. */
function checkProfile(profile: ClientProfile | undefined): void {
  if (weigh(profile, PROFILE) > PROFILE) throw new UampError('too_large', `Capabilities of more than ${PROFILE} bytes are not kept`)
}
