import type { AgentPort } from '../../core/ports/agent.ts'
import type { Logger } from '../../core/ports/transport.ts'
import { UampError } from '../../protocol/errors.ts'
import { fieldsOf, isRecord, jsonIn, uampIn } from '../../protocol/json.ts'
import { backoff, type BackoffOptions } from '../../wire/backoff.ts'
import { connectIn, TAKEOVER } from '../../wire/connect.ts'
import { HostSocket, type Closing } from './host.ts'
import { Interactions, type LocalGateway } from './interactions.ts'
import { isTransient, Offer, type ConnectToken } from './offer.ts'

export interface ConnectorOptions {
  readonly url: string
  readonly agents: readonly AgentPort[]
  readonly token: ConnectToken | undefined
  readonly gateway: LocalGateway
  readonly log: Logger
  readonly newId: () => string
  readonly pingMs: number
  readonly reconnect: BackoffOptions
  /** Told whenever all agents are hosted, and when the host is lost. */
  readonly onStatus?: ((status: 'online' | 'offline', why?: string) => void) | undefined
}

/** A uamp server takes no larger message before it knows the token. */
const STRANGER = 16 * 1024
/** The longest wait before a refused agent is offered again. */
const REFUSED_MS = 60_000
/** How long a host has to hear that we leave. */
const GOODBYE_MS = 5_000

/** Offers agents to one host, over one socket, for as long as nobody stops it. */
export class Connector {
  /** Resolves when it has stopped: on request, or because other processes have taken over all its agents. */
  readonly closed: Promise<void>
  readonly #options: ConnectorOptions
  readonly #offers: readonly Offer[]
  readonly #interactions: Interactions
  /** Names this process, so that the host knows it again. */
  readonly #instance = crypto.randomUUID()
  #socket: HostSocket | undefined
  #failures = 0
  #timer: NodeJS.Timeout | undefined
  #isLeaving = false
  /** The host has heard that we leave: what it asked before is here. */
  #hasLeft = false
  #ponged: () => void = () => undefined
  #isOver = false
  #close: () => void = () => undefined

  constructor(options: ConnectorOptions) {
    this.#options = options
    this.#offers = options.agents.map((agent) => new Offer(agent, options.token))
    this.closed = new Promise((resolve) => (this.#close = resolve))
    const { gateway, log, newId, url } = options
    this.#interactions = new Interactions({ gateway, log, newId, host: new URL(url).host })
    this.#connect()
  }

  /** Resolves when all agents are hosted. Rejects if the host refuses one of them before. */
  async ready(): Promise<void> {
    await Promise.all(this.#offers.map(({ ready }) => ready))
  }

  /** Takes no new work, lets running answers finish for `graceMs`, and leaves. */
  async close(graceMs: number): Promise<void> {
    if (this.#isOver) return this.closed
    this.#isLeaving = true
    for (const offer of this.#offers) clearTimeout(offer.retry)
    // A host that knows our additions asks for nothing from now on. Another might take this for the end of the answers.
    if (this.#interactions.isOurs) await this.#leave(graceMs)
    this.#hasLeft = true
    await this.#interactions.finish(graceMs)
    if (!this.#interactions.isOurs) this.#sayGoodbye()
    await this.#stop()
  }

  /** Says goodbye, and waits until the host has heard it: a request may be on its way until then. */
  async #leave(graceMs: number): Promise<void> {
    this.#sayGoodbye()
    if (!this.#socket?.isOpen) return
    const heard = new Promise<void>((resolve) => (this.#ponged = resolve))
    const timer = setTimeout(() => this.#ponged(), Math.min(graceMs, GOODBYE_MS))
    this.#tell({ type: 'ping' })
    await heard.finally(() => clearTimeout(timer))
  }

  async #stop(): Promise<void> {
    this.#isOver = true
    clearTimeout(this.#timer)
    for (const offer of this.#offers) offer.lost()
    this.#interactions.abandon()
    await this.#socket?.close()
    await this.#interactions.close()
    this.#close()
  }

  #sayGoodbye(): void {
    for (const { sessionId } of this.#offers) {
      if (sessionId !== undefined) this.#tell({ type: 'session.end', session_id: sessionId, reason: 'drain' })
    }
  }

  #connect(): void {
    const { url, pingMs, newId } = this.#options
    const socket: HostSocket = new HostSocket({
      url,
      pingMs,
      newId,
      onOpen: () => this.#offerAll(),
      onMessage: (text) => this.#receive(text),
      onClose: (why) => this.#lost(socket, why),
    })
    this.#socket = socket
  }

  #lost(socket: HostSocket, { code, reason, status }: Closing): void {
    if (this.#socket !== socket) return
    this.#socket = undefined
    this.#ponged()
    this.#interactions.detach()
    for (const offer of this.#offers) offer.lost()
    if (this.#isOver) return
    if (status !== undefined && isFinal(status) && !this.#offers.some(({ isReady }) => isReady)) return this.#nobodyThere(status)
    const { log, reconnect, onStatus } = this.#options
    const wait = backoff({ minMs: 500, maxMs: 30_000, ...reconnect })(this.#failures)
    if (this.#failures++ === 0) log('warn', 'The host is not connected: trying again until it is', { code, reason })
    onStatus?.('offline', reason === '' ? `closed with ${code}` : reason)
    this.#timer = setTimeout(() => this.#connect(), wait)
  }

  /** The address is a wrong one: to try it again would not help. */
  #nobodyThere(status: number): void {
    const { origin, pathname } = new URL(this.#options.url)
    const why = `Nobody hosts agents at ${origin}${pathname}: it answered ${status}. A uamp server does at /ws`
    for (const offer of this.#offers) this.#end(offer, new UampError('not_found', why, { details: { status } }))
  }

  #offerAll(): void {
    // One that another process has taken over comes back only to finish its answers.
    for (const offer of this.#offers) if (!offer.over || this.#interactions.isAnswering(offer.name)) void this.#offer(offer)
  }

  async #offer(offer: Offer): Promise<void> {
    const socket = this.#socket
    const { newId, log } = this.#options
    try {
      const token = await offer.token()
      if (this.#socket !== socket || !socket?.isOpen) return
      const leaving = this.#isLeaving || offer.over !== undefined
      const create = offer.create(token, { instance: this.#instance, leaving, newId })
      if (token !== undefined && JSON.stringify(create).length > STRANGER) this.#tell({ type: 'session.update', token })
      this.#tell(create)
      offer.refreshLater(token, (next) => this.#renew(offer, next))
    } catch (error) {
      log('error', 'There is no token for an agent', { agent: offer.name, error })
      if (!offer.isReady) return this.#end(offer, UampError.from(error))
      this.#retry(offer)
    }
  }

  #renew({ sessionId }: Offer, token: string): void {
    this.#tell({ type: 'session.update', session_id: sessionId, token })
  }

  #tell(event: object): void {
    this.#socket?.tell({ event_id: this.#options.newId(), ...event })
  }

  #receive(text: string): void {
    const value = jsonIn(text)
    if (!isRecord(value)) return
    const id = value['session_id']
    switch (value['type']) {
      case 'session.created':
        return this.#created(value)
      case 'session.error':
      case 'response.error':
        return this.#failed(value)
      case 'ping':
        return this.#tell({ type: 'pong' })
      case 'session.end': {
        const offer = this.#offers.find(({ sessionId }) => sessionId !== undefined && sessionId === id)
        return offer ? this.#ended(offer, value['reason']) : this.#interactions.end(id)
      }
      case 'pong':
        return this.#ponged()
      case 'session.updated':
      case 'capabilities':
      case 'rate_limit':
        return undefined
      default: {
        const named = this.#offers.find(({ sessionId }) => sessionId === id) ?? this.#offers.find(({ name }) => name === agentIn(value))
        const only = this.#offers.length === 1 ? this.#offers[0] : undefined
        this.#interactions.receive(value, this.#refuses ? undefined : (named ?? only)?.name)
      }
    }
  }

  #created(value: Record<string, unknown>): void {
    const extensions = fieldsOf(value['extensions'])
    const session = fieldsOf(value['session'])
    const { request } = uampIn(extensions)
    const agent = value['agent'] ?? session['agent']
    const asked = this.#offers.filter((offer) => offer.asked !== undefined)
    // Some hosts name no request: they name the agent, or answer in order.
    const offer = asked.find((each) => each.asked === request) ?? asked.find(({ name }) => name === agent) ?? asked[0]
    const id = value['session_id'] ?? session['id']
    if (!offer || typeof id !== 'string' || !this.#socket) return
    const connect = connectIn(extensions)
    offer.hosted(id)
    this.#failures = 0
    const { outbox } = this.#socket
    if (connect) {
      outbox.joins = true
      if (typeof connect['message_bytes'] === 'number') outbox.mostLength = connect['message_bytes']
    }
    this.#interactions.attach({ outbox, isOurs: connect !== undefined }, { agent: offer.name, resumed: connect?.['resumed'] === true })
    if (this.#offers.every(({ over, sessionId }) => over ?? sessionId)) this.#options.onStatus?.('online')
  }

  /** Nothing new is begun. A host of ours has been told so, and what it asked before it heard that is still answered. */
  get #refuses(): boolean {
    return this.#hasLeft || (this.#isLeaving && !this.#interactions.isOurs)
  }

  #failed(value: Record<string, unknown>): void {
    const error = fieldsOf(value['error'])
    const details = fieldsOf(error['details'])
    if (details['slowed'] === true) return
    const known = this.#offers.find(({ sessionId }) => sessionId !== undefined && sessionId === value['session_id'])
    if (!known) return this.#refused(error, details)
    const { log } = this.#options
    log('warn', 'The host reports an error of an agent', { agent: known.name, code: error['code'], reason: error['message'] })
    // The host waits for a newer token for a while. A refusal of that one says nothing of waiting.
    if (details['grace_seconds'] === undefined) return
    known
      .refresh((next) => this.#renew(known, next))
      .catch((thrown: unknown) => log('error', 'There is no token for an agent', { agent: known.name, error: thrown }))
  }

  #refused(error: Record<string, unknown>, { event_id: named, retry_after: after }: Record<string, unknown>): void {
    const asked = this.#offers.filter((offer) => offer.asked !== undefined)
    const offer = typeof named === 'string' ? asked.find((each) => each.asked === named) : asked[0]
    if (!offer) return
    offer.asked = undefined
    const code = typeof error['code'] === 'string' ? error['code'] : 'internal'
    const reason = new UampError('forbidden', `The host refused the agent "${offer.name}": ${String(error['message'])}`, {
      details: { code },
    })
    // Nobody can take its answers any more.
    if (offer.over) return this.#interactions.forgetAll(offer.name)
    if (!offer.isReady && !isTransient({ code, after })) return this.#end(offer, reason)
    this.#options.log('warn', reason.message)
    this.#retry(offer, Number(after) * 1000)
  }

  /** Offers a refused agent again after a while. */
  #retry(offer: Offer, leastMs = 0): void {
    const wait = Math.max(backoff({ minMs: 1000, maxMs: REFUSED_MS })(offer.refusals++), leastMs || 0)
    offer.retry = setTimeout(() => void this.#offer(offer), wait)
  }

  /** The host wants no more answers of an agent. */
  #ended(offer: Offer, reason: unknown): void {
    const { log } = this.#options
    offer.lost()
    if (this.#isLeaving) return
    if (reason !== TAKEOVER) {
      log('warn', 'The host ended the session of an agent: it is offered again', { agent: offer.name, reason })
      return this.#retry(offer)
    }
    // To offer it again would end the other one, and so on forever.
    log('warn', 'Another process hosts this agent from now on', { agent: offer.name })
    this.#end(offer, new UampError('conflict', `Another process hosts the agent "${offer.name}" from now on`))
  }

  #end(offer: Offer, reason: UampError): void {
    offer.end(reason)
    if (this.#offers.every(({ over }) => over)) void this.#interactions.finish(Infinity).then(() => this.#stop())
  }
}

/** The agent that an interaction is for, if the host says so. */
function agentIn(value: Readonly<Record<string, unknown>>): unknown {
  return value['agent'] ?? connectIn(fieldsOf(value['extensions']))?.['agent'] ?? fieldsOf(value['context'])['agent']
}

/** True for an answer that says that the address, or the caller, is a wrong one, and not that the server is busy. */
function isFinal(status: number): boolean {
  return status >= 300 && status < 500 && ![408, 425, 429].includes(status)
}
