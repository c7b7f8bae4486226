import { RESPONSE_ENDS } from '../../core/reading/response-fold.ts'
import { credentialsEnded, isSamePrincipal, TOKEN_EXPIRED, unauthorized } from '../../core/basics/principal.ts'
import type { Principal } from '../../core/ports/access.ts'
import type { HostedBySocket } from '../../core/ports/hosting.ts'
import type { Reader, Session } from '../../core/ports/session.ts'
import type { Call, Host, Socket } from '../../core/ports/transport.ts'
import { reportError } from '../../core/edge/report-error.ts'
import { UampError } from '../../protocol/errors.ts'
import type { ClientEvent, Draft, EventOf } from '../../protocol/events.ts'
import { tokenPayment } from '../../protocol/payment.ts'
import { parseClientText } from '../../protocol/parse.ts'
import { announced, checkEvent, marks, onlyRefreshes, openSession, refreshed, resumedEvent } from './open.ts'
import { Owner } from './owner.ts'
import { nothingLeft, whatIsLeft } from './rate-limit.ts'
import { viewOf } from './view.ts'

/** Sessions that one connection may carry. */
const SESSIONS = 256
/** Events of one connection that are being stored. With more, the connection is not read. */
const UNDER_WAY = 64

/** Unknown event types that are logged for one connection. */
const LOGGED_TYPES = 16
const UNAUTHORIZED = 4401

interface Attached {
  /** The id that its events carry. */
  readonly id: string
  readonly session: Session
  /** Whose session it is, by the newest token that was shown for it. */
  principal: Principal
  readonly reader: Reader
  ack: boolean
  view: ReturnType<typeof viewOf>
  /** The session of one interaction of a platform: it ends with its response, and only its input starts one. */
  readonly once?: boolean
  /** Until this is called, the session ends here with the credentials of its principal. */
  unwatch?: () => void
}

/** One WebSocket: any number of sessions, told apart by `session_id`. */
export class Connection {
  readonly #host: Host
  readonly #socket: Socket
  readonly #call: Call
  readonly #sessions = new Map<string, Attached>()
  /** The agents that this connection hosts. */
  #hosted: HostedBySocket | undefined
  #underWay = 0
  #arrived: (() => void) | undefined
  readonly #owner: Owner
  #ignored: Set<string> | undefined
  /** For sessions that bring none of their own. */
  #paymentToken: string | undefined

  constructor(host: Host, socket: Socket, call: Call) {
    this.#host = host
    this.#socket = socket
    this.#call = call
    this.#owner = new Owner(host, call, () => this.#closeIfUnused())
  }

  async run(): Promise<void> {
    this.#socket.onFlood = ({ limit, resetMs }) => {
      const details = { limit, retry_after: Math.max(1, Math.ceil(resetMs / 1000)), slowed: true }
      this.#refuse(undefined, new UampError('rate_limited', 'Too many events: they are read more slowly, and none is lost', { details }))
    }
    try {
      for await (const frame of this.#socket) await this.#receive(frame)
    } finally {
      this.#owner.close()
      this.#hosted?.close()
      for (const { reader } of this.#sessions.values()) reader.close()
    }
  }

  async #receive(frame: string | Uint8Array): Promise<void> {
    let event: ClientEvent | undefined
    try {
      if (typeof frame !== 'string') throw new UampError('invalid_request', 'Events are JSON in text frames, not binary frames')
      if (this.#hosted?.take(frame)) return
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
    if (!this.#owner.known) return
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
    if (event.session_id !== undefined && this.#hosted?.has(event.session_id)) return this.#handleHosted(this.#hosted, event)
    if (event.type === 'session.update' && event.token !== undefined) return this.#renew(event, event.token)
    if (event.type === 'session.update' && event.session_id === undefined) {
      const only = this.#only()
      if (event.session === undefined && (!only || only.once)) return this.#updateConnection(event)
    }
    if (event.session_id !== undefined && event.type === 'input.text' && event.messages && !this.#sessions.has(event.session_id)) {
      if (await this.#interact(event, event.session_id)) return
    }
    const attached = this.#find(event)
    checkEvent(this.#host, event, { principal: attached.principal, agent: attached.session.agent })
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
      .send(event, { principal: attached.principal, trace: this.#call.trace })
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
    const principal = await this.#owner.openedWith(event.token)
    if (this.#hosts(event, principal)) return
    const { session, after, resumed } = await openSession(this.#host, {
      event: this.#paid(event, principal),
      principal,
      agent: this.#call.agent,
      trace: this.#call.trace,
    })
    const { ack, extensions } = announced(event.client_capabilities)
    this.#sessions.get(session.id)?.reader.close()
    const reader = session.read({ after, extensions })
    if (resumed) {
      const resume = { recovered: reader.recovered, after, head: session.lastSeq }
      reader.tell(resumedEvent(this.#host, session, { request: event.event_id, resume }))
    }
    const { id } = session
    const attached = { id, session, principal, reader, ack, view: viewOf(event.client_capabilities ?? session.client) }
    this.#sessions.set(id, attached)
    void this.#follow(attached)
    this.#acknowledge(attached, event)
    this.#watch(attached)
  }

  /** True if the event offers an agent, and does not ask for one. */
  #hosts(event: EventOf<'session.create'>, principal: Principal): boolean {
    const hosted =
      this.#hosted ?? this.#host.hosting?.open({ send: (texts) => this.#socket.send(texts), left: () => this.#closeIfUnused() })
    if (!hosted?.host(event, principal)) return false
    this.#hosted = hosted
    return true
  }

  async #handleHosted(hosted: HostedBySocket, event: ClientEvent): Promise<void> {
    const owner = hosted.ownerOf(event.session_id ?? '')
    if (!owner) return
    const isNewer = event.type === 'session.update' && event.token !== undefined
    hosted.handle(event, isNewer ? await refreshed(this.#call.access, event.token ?? '', owner) : owner)
  }

  /**
   * UAMP events §10.2: a platform sends each interaction under a new session id, with the whole conversation. The session answers it,
   * ends, and is not stored. False: the caller is no platform.
   */
  async #interact(event: EventOf<'input.text'>, id: string): Promise<boolean> {
    const { agent } = this.#call
    const principal = this.#owner.known
    // To speak for many users is no action of its own: it is a way to `call`, which a token has to be given by name.
    if (!principal?.scopes.includes('platform') || agent === undefined) return false
    this.#checkRoom()
    this.#owner.fix()
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
    const reader = session.read({ after: session.lastSeq })
    const attached = { id, session, principal, reader, ack: false, view: viewOf(undefined), once: true }
    this.#sessions.set(id, attached)
    void this.#follow(attached)
    this.#watch(attached)
    try {
      await session.say([event], { type: 'response.create', event_id: this.#host.newId() })
    } catch (thrown) {
      attached.reader.close()
      throw thrown
    }
    return true
  }

  /** The connection's payment token pays only for whoever it belongs to. */
  #paid(event: EventOf<'session.create'>, principal: Principal): EventOf<'session.create'> {
    if (this.#paymentToken === undefined || !this.#owner.owns(principal)) return event
    return { payment_token: this.#paymentToken, ...event }
  }

  #checkRoom(): void {
    if (this.#sessions.size < SESSIONS) return
    throw new UampError('rate_limited', `One connection carries at most ${SESSIONS} sessions: end some, or connect again`, {
      details: { limit: SESSIONS, retry_after: 1 },
    })
  }

  /** The outbound loop of one session: everything between the cursor and the head in one write. */
  async #follow(attached: Attached): Promise<void> {
    const { id, session, reader, once = false } = attached
    let begun = false
    try {
      await reader.each((batch) => {
        if (once && batch.has(RESPONSE_ENDS)) {
          reader.close()
          // Before its client hears of the end, and sends the next interaction under this id.
          this.#detach(attached)
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
      this.#detach(attached)
      if (once) await session.end()
    }
  }

  #detach(attached: Attached): void {
    attached.unwatch?.()
    if (this.#sessions.get(attached.id) !== attached) return
    this.#sessions.delete(attached.id)
    this.#closeIfUnused()
  }

  /** Ends the session here with the credentials of its principal. It stays stored, and can be resumed with others. */
  #watch(attached: Attached): void {
    const { id, reader } = attached
    attached.unwatch?.()
    attached.unwatch = this.#host.live.add({
      principal: () => attached.principal,
      expired: (grace) => {
        const error = credentialsEnded(TOKEN_EXPIRED, { grace_seconds: grace }).toBody()
        this.#tell({ type: 'session.error', session_id: id, error })
      },
      cut: (reason) => {
        reader.close()
        this.#tell({ type: 'session.end', session_id: id, reason })
        this.#detach(attached)
      },
    })
  }

  /** A connection without credentials is kept for the sessions of others, and for nothing else. */
  #closeIfUnused(): void {
    const { lost } = this.#owner
    if (lost !== undefined && this.#sessions.size === 0 && (this.#hosted?.size ?? 0) === 0) this.#socket.close(UNAUTHORIZED, lost)
  }

  /**
   * UAMP events §5.2: without a session id, tokens are for the connection: for the sessions of whoever it belongs to, and those that
   * they open.
   */
  async #updateConnection(event: EventOf<'session.update'>): Promise<void> {
    const own = [...this.#sessions.values()].filter(({ principal }) => this.#owner.owns(principal))
    for (const { principal, session } of own) checkEvent(this.#host, event, { principal, agent: session.agent })
    this.#paymentToken = event.payment_token ?? this.#paymentToken
    await Promise.all(own.map(({ session }) => session.send({ ...event, session_id: session.id })))
    this.#tell({ type: 'session.updated' })
  }

  /** UAMP events §10.3: a newer token, for one session or for the connection. Nobody else hears of it. */
  async #renew(event: EventOf<'session.update'>, token: string): Promise<void> {
    const named = event.session_id === undefined ? undefined : this.#find(event)
    if (named) this.#adopt(named, await refreshed(this.#call.access, token, named.principal))
    else await this.#refresh(token)
    if (!onlyRefreshes(event)) {
      const { token: _, ...rest } = event
      return this.#handle(rest)
    }
    const attached = named ?? this.#only()
    if (attached) this.#acknowledge(attached, event)
    this.#tell({ type: 'session.updated', ...(attached && { session_id: attached.id }) })
  }

  #adopt(attached: Attached, principal: Principal): void {
    attached.principal = principal
    // It may have ended while the token was looked at.
    if (this.#sessions.get(attached.id) === attached) this.#watch(attached)
  }

  /** A newer token for the connection, and for those of its sessions that belong to the same principal. */
  async #refresh(token: string): Promise<void> {
    const principal = await this.#owner.refresh(token)
    for (const attached of this.#sessions.values()) {
      if (isSamePrincipal(attached.principal, principal)) this.#adopt(attached, principal)
    }
    this.#hosted?.refresh(principal)
  }

  #find({ session_id: id }: ClientEvent): Attached {
    const attached = id === undefined ? this.#only() : this.#sessions.get(id)
    if (attached) return attached
    const isUsed = this.#sessions.size > 0
    if (!isUsed && !this.#owner.known) throw unauthorized(undefined, 'Credentials are missing: send session.create with a token first')
    if (id !== undefined) throw new UampError('not_found', `There is no session "${id}" on this connection`)
    const message = isUsed ? 'Several sessions are open here: say which by session_id' : 'Send session.create first'
    throw new UampError('invalid_request', message)
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
