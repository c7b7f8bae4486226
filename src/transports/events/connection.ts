import { RESPONSE_ENDS } from '../../core/reading/response-fold.ts'
import type { Principal } from '../../core/ports/access.ts'
import type { Reader, Session } from '../../core/ports/session.ts'
import type { Call, Host, Socket } from '../../core/ports/transport.ts'
import { reportError } from '../../core/edge/report-error.ts'
import { UampError } from '../../protocol/errors.ts'
import type { ClientEvent, Draft, EventOf } from '../../protocol/events.ts'
import { tokenPayment } from '../../protocol/payment.ts'
import { parseClientText } from '../../protocol/parse.ts'
import { announced, checkAgent, checkToken, identify, marks, openSession, resumedEvent } from './open.ts'
import { nothingLeft, whatIsLeft } from './rate-limit.ts'
import { viewOf } from './view.ts'

/** Sessions that one connection may carry. */
const SESSIONS = 256
/** Events of one connection that are being stored. With more, the connection is not read. */
const UNDER_WAY = 64

/** Unknown event types that are logged for one connection. */
const LOGGED_TYPES = 16

interface Attached {
  readonly session: Session
  readonly reader: Reader
  ack: boolean
  view: ReturnType<typeof viewOf>
  /** The session of one interaction of a platform: it ends with its response, and only its input starts one. */
  readonly once?: boolean
}

/** One WebSocket: any number of sessions, told apart by `session_id`. */
export class Connection {
  readonly #host: Host
  readonly #socket: Socket
  readonly #call: Call
  readonly #sessions = new Map<string, Attached>()
  #underWay = 0
  #arrived: (() => void) | undefined
  #principal: Principal | undefined
  #ignored: Set<string> | undefined
  /** For sessions that bring none of their own. */
  #paymentToken: string | undefined
  /** A token or a session has fixed who the caller is. */
  #fixed = false

  constructor(host: Host, socket: Socket, call: Call) {
    this.#host = host
    this.#socket = socket
    this.#call = call
    this.#principal = call.principal
  }

  async run(): Promise<void> {
    this.#socket.onFlood = ({ limit, resetMs }) => {
      const details = { limit, retry_after: Math.max(1, Math.ceil(resetMs / 1000)), slowed: true }
      this.#refuse(undefined, new UampError('rate_limited', 'Too many events: they are read more slowly, and none is lost', { details }))
    }
    try {
      for await (const frame of this.#socket) await this.#receive(frame)
    } finally {
      for (const { reader } of this.#sessions.values()) reader.close()
    }
  }

  async #receive(frame: string | Uint8Array): Promise<void> {
    let event: ClientEvent | undefined
    try {
      if (typeof frame !== 'string') throw new UampError('invalid_request', 'Events are JSON in text frames, not binary frames')
      const parsed = parseClientText(frame, this.#host.newId)
      if (parsed.kind === 'unknown') return this.#ignore(parsed)
      event = parsed.event
      this.#host.gateway.checkSlots(event, frame.length)
      await this.#handle(event)
    } catch (thrown) {
      this.#refuse(event, thrown)
    }
  }

  /**
   * An ignored event is acknowledged, or its client would send it again each time it connects. Each type is logged once, and only a
   * few types, so that no client can fill the disk. Unknown callers are not logged.
   */
  #ignore({ type, event_id, session_id }: { type: string; event_id: string | undefined; session_id: string | undefined }): void {
    const attached = session_id === undefined ? this.#only() : this.#sessions.get(session_id)
    if (attached && event_id !== undefined) this.#acknowledge(attached, { event_id })
    if (!this.#principal) return
    this.#ignored ??= new Set()
    if (this.#ignored.has(type) || this.#ignored.size >= LOGGED_TYPES) return
    this.#ignored.add(type)
    this.#host.log('info', 'Ignored an event of unknown type', { type, ...this.#call.trace.fields })
  }

  async #handle(event: ClientEvent): Promise<void> {
    if (event.type === 'ping') {
      return this.#tell({ type: 'pong', ...(event.session_id !== undefined && { session_id: event.session_id }) })
    }
    if (event.type === 'session.create') return this.#create(event)
    if (event.type === 'session.update' && event.session_id === undefined) {
      if (event.token !== undefined) this.#principal = await this.#identify(event.token)
      const only = this.#only()
      if (event.session === undefined && (!only || only.once)) return this.#updateConnection(event)
    }
    if (event.session_id !== undefined && event.type === 'input.text' && event.messages && !this.#sessions.has(event.session_id)) {
      if (await this.#interact(event, event.session_id)) return
    }
    const attached = this.#find(event)
    if (event.type === 'session.update') await checkToken(this.#call.access, event.token, attached.session.owner)
    if (event.type === 'client.capabilities') {
      const { ack, extensions } = announced(event.capabilities)
      attached.ack = ack
      attached.reader.understand(extensions)
      attached.view = viewOf(event.capabilities)
    }
    // The input has started the response already.
    if (attached.once && event.type === 'response.create') return
    if (attached.once && /^input\.(?!typing)/.test(event.type)) throw beingAnswered(attached.session)
    // Not awaited: the event takes effect now, in order. The acknowledgement says that it is durable.
    this.#underWay++
    void attached.session
      .send(event, this.#call.trace)
      .then(
        () => {
          this.#acknowledge(attached, event)
          if (event.type === 'response.create') this.#tellRate(attached.session.id)
        },
        (thrown: unknown) => this.#refuse(event, thrown),
      )
      .finally(() => {
        this.#underWay--
        this.#arrived?.()
      })
    while (this.#underWay >= UNDER_WAY) await new Promise<void>((resolve) => (this.#arrived = resolve))
  }

  async #create(event: EventOf<'session.create'>): Promise<void> {
    this.#checkRoom()
    const principal = await this.#identify(event.token)
    const { session, after, resumed } = await openSession(this.#host, {
      event: this.#paymentToken === undefined ? event : { payment_token: this.#paymentToken, ...event },
      principal,
      access: this.#call.access,
      agent: this.#call.agent,
      trace: this.#call.trace,
    })
    this.#fixed = true
    const { ack, extensions } = announced(event.client_capabilities)
    this.#sessions.get(session.id)?.reader.close()
    const reader = session.read({ after, extensions })
    if (resumed) {
      const resume = { recovered: reader.recovered, after, head: session.lastSeq }
      reader.tell(resumedEvent(this.#host, session, { request: event.event_id, resume }))
    }
    const attached = { session, reader, ack, view: viewOf(event.client_capabilities ?? session.client) }
    this.#sessions.set(session.id, attached)
    void this.#follow(attached)
    this.#acknowledge(attached, event)
  }

  /**
   * UAMP events §10.2: a platform sends each interaction under a new session id, with the whole conversation. The session answers it,
   * ends, and is not stored. False: the caller is no platform.
   */
  async #interact(event: EventOf<'input.text'>, id: string): Promise<boolean> {
    const { agent, access } = this.#call
    const principal = this.#principal
    if (!principal || agent === undefined) return false
    // An `Access` of a user's own may say yes to whatever it is asked: this right has to be given by name.
    if (!principal.scopes.includes('platform') || !access.authorize(principal, 'platform', agent)) return false
    checkAgent({ principal, access }, agent)
    this.#checkRoom()
    this.#fixed = true
    const payment = tokenPayment(event.payment_token ?? this.#paymentToken)
    const session = await this.#host.gateway.open({
      transport: 'events',
      agent,
      principal,
      trace: this.#call.trace,
      config: { modalities: ['text'] },
      duplex: true,
      persist: false,
      onDetach: 'cancel',
      shownId: id,
      ...(payment && { payment }),
    })
    const attached = { session, reader: session.read({ after: session.lastSeq }), ack: false, view: viewOf(undefined), once: true }
    this.#sessions.set(id, attached)
    void this.#follow(attached, id)
    try {
      await session.say([event], { type: 'response.create', event_id: this.#host.newId() })
    } catch (thrown) {
      attached.reader.close()
      throw thrown
    }
    return true
  }

  #checkRoom(): void {
    if (this.#sessions.size < SESSIONS) return
    throw new UampError('rate_limited', `One connection carries at most ${SESSIONS} sessions: end some, or connect again`, {
      details: { limit: SESSIONS, retry_after: 1 },
    })
  }

  /** The outbound loop of one session: everything between the cursor and the head in one write. */
  async #follow(attached: Attached, id = attached.session.id): Promise<void> {
    const { session, reader, once = false } = attached
    let begun = false
    try {
      await reader.each((batch) => {
        if (once && batch.has(RESPONSE_ENDS)) {
          reader.close()
          // Before its client hears of the end, and sends the next interaction under this id.
          this.#detach(id, reader)
        }
        const sent = this.#socket.send(attached.view(batch))
        if (!begun && !once) this.#tellRate(id)
        begun = true
        return sent
      })
    } catch (error) {
      this.#host.log('error', 'A reader failed', { session: session.id, error, ...this.#call.trace.fields })
      this.#tell({ type: 'session.error', session_id: id, error: UampError.from(error).toBody() })
      this.#socket.close(1011, 'internal error')
    } finally {
      session.leave()
      this.#detach(id, reader)
      if (once) await session.end()
    }
  }

  #detach(id: string, reader: Reader): void {
    if (this.#sessions.get(id)?.reader === reader) this.#sessions.delete(id)
  }

  /** UAMP events §5.2: without a session id, tokens are for the connection: for all its sessions, and those that it opens. */
  async #updateConnection(event: EventOf<'session.update'>): Promise<void> {
    this.#paymentToken = event.payment_token ?? this.#paymentToken
    await Promise.all([...this.#sessions.values()].map(({ session }) => session.send({ ...event, session_id: session.id })))
    this.#tell({ type: 'session.updated' })
  }

  async #identify(token: string | undefined): Promise<Principal> {
    const principal = await identify(this.#call.access, token, { known: this.#principal, fixed: this.#fixed })
    if (!this.#fixed) this.#principal = principal
    this.#fixed ||= token !== undefined
    return principal
  }

  #find(event: ClientEvent): Attached {
    if (event.session_id !== undefined) {
      const attached = this.#sessions.get(event.session_id)
      if (attached) return attached
      throw new UampError('not_found', `There is no session "${event.session_id}" on this connection`)
    }
    const only = this.#only()
    if (only) return only
    throw new UampError(
      'invalid_request',
      this.#sessions.size > 0 ? 'Several sessions are open here: say which by session_id' : 'Send session.create first',
    )
  }

  #only(): Attached | undefined {
    return this.#sessions.size === 1 ? this.#sessions.values().next().value : undefined
  }

  #acknowledge({ ack, reader, session }: Attached, { event_id }: Pick<ClientEvent, 'event_id'>): void {
    if (ack) reader.tell({ type: 'x.ack', ...marks(this.#host), session_id: session.id, event_ids: [event_id] })
  }

  #refuse(event: ClientEvent | undefined, thrown: unknown): void {
    const error = reportError(this.#host, thrown, {
      transport: 'events',
      message: 'An event failed',
      type: event?.type,
      ...this.#call.trace.fields,
    })
    const details = { ...error.details, ...(event && { event_id: event.event_id }) }
    const sessionId = event?.session_id ?? error.details?.['session_id'] ?? this.#only()?.session.id
    this.#tell({
      type: isAboutResponse(event?.type ?? error.details?.['type'], error) ? 'response.error' : 'session.error',
      ...(typeof sessionId === 'string' && { session_id: sessionId }),
      error: { ...error.toBody(), details },
    })
    if (error.code === 'rate_limited') this.#tell(nothingLeft(error, this.#host.now()))
  }

  /** Told when a session and a response begin, and never in between: a delta costs nothing more. */
  #tellRate(sessionId: string): void {
    const { quota } = this.#socket
    if (quota) this.#tell({ session_id: sessionId, ...whatIsLeft(quota, this.#host.now()) })
  }

  #tell(draft: Draft & { readonly session_id?: string }): void {
    void this.#socket.send([JSON.stringify({ ...marks(this.#host), ...draft })])
  }
}

/** An interaction is one input and its answer. What came beside it would be heard by nobody. */
function beingAnswered({ lastResponse }: Session): UampError {
  return new UampError('response_in_progress', 'This interaction is being answered: wait for its end, or send another session_id', {
    details: { response_id: lastResponse },
  })
}

/** Failures of a session are `session.error`, those of what is said in it `response.error` (UAMP events §6.3, §6.8, §14.2). */
function isAboutResponse(type: unknown, { code }: UampError): boolean {
  if (code === 'version_mismatch') return true
  return typeof type === 'string' && /^(input|response|tool|payment|x)\./.test(type) && code !== 'unauthorized'
}
