import type { Principal } from '../../core/ports/access.ts'
import type { Session } from '../../core/ports/session.ts'
import type { Host, Socket } from '../../core/ports/transport.ts'
import { UampError } from '../../protocol/errors.ts'
import { Bucket } from './bucket.ts'
import { errorInfo, omniaError } from './errors.ts'
import { COMPRESSED, decodeFrame, LAST, MEDIA } from './frame.ts'
import { Line } from './line.ts'
import type { Media } from './media/index.ts'
import type { OmniaLimits, OmniaOptions } from './options.ts'
import type { Positions } from './positions.ts'
import { invalid, parseMessage, type ClientMessage } from './schema.ts'
import { checkSound, Listener, SOUND } from './sound.ts'

/** The version of binary frames, which is the only one that the protocol has a number for. */
const PROTOCOL_VERSION = 1

/** What all connections share. */
export interface Shared {
  readonly host: Host
  readonly options: OmniaOptions
  readonly limits: OmniaLimits
  readonly positions: Positions
  /** Undefined: uploads are off. */
  readonly media: Media | undefined
}

export interface ConnectionOptions {
  readonly socket: Socket
  readonly principal: Principal
  readonly agent: string
  /** Where this server is for the client. */
  readonly url: string
  readonly binary: boolean
  /** The session of a connection that broke. */
  readonly resume: string | undefined
}

/** One WebSocket: one session at a time, which a message may change. */
export class OmniaConnection {
  readonly #shared: Shared
  readonly #options: ConnectionOptions
  readonly #messages: Bucket
  readonly #media: Bucket
  readonly #listener: Listener
  #calling = false
  /** There once `begin` is through. */
  #line!: Line
  /** Nothing was said in this session, nor put into it. */
  #isFresh = false
  /** What the client calls its session, where that is not its id. */
  #alias: string | undefined
  #unwatch: () => void = () => undefined

  constructor(shared: Shared, options: ConnectionOptions) {
    const { host, limits } = shared
    this.#shared = shared
    this.#options = options
    this.#messages = new Bucket(limits.messagesPerSecond, limits.messageBurst, host.now)
    this.#media = new Bucket(limits.mediaBytesPerSecond, limits.mediaBurstBytes, host.now)
    this.#listener = new Listener({
      onStart: () => void this.#line.interrupt(),
      onEnd: (sound) => {
        this.#isFresh = false
        this.#line.hear(sound).catch((thrown: unknown) => this.#refuse(thrown))
      },
    })
  }

  /** Opens the session, or finds the one of a connection that broke, and greets the client. */
  async begin(): Promise<void> {
    const { resume } = this.#options
    const known = resume === undefined ? undefined : await this.#find(resume)
    if (known) await this.#follow(known, this.#shared.positions.find(this.#place(known), this.#shared.host.now()))
    else await this.#open()
    await this.#greet(known !== undefined)
  }

  async run(): Promise<void> {
    try {
      for await (const frame of this.#options.socket) {
        if ((await this.#receive(frame)) === 'hangup') return this.#hangUp()
      }
    } finally {
      this.#leave()
      // Nobody will look for it.
      if (this.#isFresh && !this.#line.ended) await this.#line.session.end()
    }
  }

  async #receive(frame: string | Uint8Array): Promise<'hangup' | void> {
    try {
      if (typeof frame !== 'string') return this.#hear(frame)
      if (!this.#messages.take(1)) throw new UampError('rate_limited', 'rate limit exceeded')
      const message = parseMessage(frame)
      if (message.type === 'hangup') return 'hangup'
      await this.#handle(message)
    } catch (thrown) {
      await this.#refuse(thrown)
    }
  }

  async #handle(message: Exclude<ClientMessage, { type: 'hangup' }>): Promise<void> {
    switch (message.type) {
      case 'message':
        await this.#choose(message.session_id)
        await this.#line.say(message)
        this.#isFresh = false
        return
      case 'upload_request':
        return this.#upload(message)
      case 'tool_call_ack':
        return this.#line.acknowledge(message.tool_call_ack.call_id)
      case 'tool_call_nack': {
        const { call_id: id, reason } = message.tool_call_nack
        return this.#line.answer(id, { error: reason ?? 'client rejected tool call' })
      }
      case 'tool_result':
        return this.#line.answer(message.tool_result.call_id, message.tool_result)
    }
  }

  async #upload({ session_id: id, upload_request: request }: Extract<ClientMessage, { type: 'upload_request' }>): Promise<void> {
    const { media } = this.#shared
    if (!media) throw omniaError('MEDIA_NOT_ENABLED', 'not_supported', 'media storage is not enabled')
    // Without an id it belongs to the session that the client was greeted with: an upload alone begins no conversation.
    if (id != null) await this.#choose(id)
    const { principal, url } = this.#options
    const upload_ready = await media.request({ ...request, session: this.#line.session.id, principal, url })
    this.#isFresh = false
    await this.#line.tell('upload_ready', { upload_ready })
  }

  /** Sound of a call. Not awaited, but for the refusal: what it leads to must not hold up what is said next. */
  #hear(bytes: Uint8Array): void {
    const { host } = this.#shared
    if (!this.#media.take(bytes.length)) throw new UampError('rate_limited', 'media rate limit exceeded')
    const { type, flags, meta, payload } = decodeFrame(bytes)
    if (type !== MEDIA) throw invalid(type === 2 ? 'Upload over HTTP: binary uploads are not possible' : 'unknown binary message type')
    if (flags & COMPRESSED) throw invalid('Compressed frames are not understood')
    if (!host.agents.get(this.#options.agent)?.capabilities.modalities.includes('audio')) {
      throw omniaError('MEDIA_NOT_ENABLED', 'not_supported', 'audio not supported')
    }
    if (!this.#calling) void this.#line.tell('session_config', { session_config: SOUND })
    this.#calling = (flags & LAST) === 0
    checkSound(meta)
    this.#listener.hear(payload)
    if (!this.#calling) this.#listener.finish()
  }

  /** The session that a message belongs to. */
  async #choose(id: string | null | undefined): Promise<void> {
    const { session, ended } = this.#line
    if (id == null || id === '') {
      // Omnia WebSocket protocol, New Session. The one that the client was greeted with will do, if nobody has used it.
      this.#line.checkIdle()
      if (!this.#isFresh || ended) await this.#open()
      return this.#greet(false)
    }
    if (!ended && (id === session.id || id === this.#alias)) return
    this.#line.checkIdle()
    const known = await this.#find(id)
    if (known) return this.#follow(known, undefined)
    // Session Expiration: a new one takes its place, and the client gets to know.
    await this.#open(id)
    await this.#greet(false)
  }

  async #find(id: string): Promise<Session | undefined> {
    const { gateway } = this.#shared.host
    const { principal, agent } = this.#options
    const session = (await gateway.attach(id, principal)) ?? (await gateway.attach({ protocol: 'omnia', id }, principal))
    return session?.agent === agent ? session : undefined
  }

  async #open(alias?: string): Promise<void> {
    const { host, options } = this.#shared
    const { principal, agent } = this.#options
    const { clientTools } = options
    const session = await host.gateway.open({
      transport: 'omnia',
      agent,
      principal,
      config: { modalities: ['text'], ...(clientTools && { tools: [...clientTools] }) },
      duplex: true,
      persist: true,
      onDetach: 'continue',
      ...(alias !== undefined && { alias: { protocol: 'omnia', id: alias } }),
    })
    await this.#follow(session, session.head)
    this.#alias = alias
    this.#isFresh = true
  }

  async #follow(session: Session, after: number | undefined): Promise<void> {
    const { host, limits, options, positions, media } = this.#shared
    const { socket, binary, principal } = this.#options
    if (this.#line) this.#leave()
    const from = after ?? session.head
    // Before it is asked what runs: the end of that is then still to come.
    const reader = session.read({ after: from, extensions: ['x.approval.request'] })
    const turn = session.turn === null ? undefined : await host.gateway.turn(session.turn, principal)
    this.#line = new Line({
      host,
      socket,
      session,
      reader,
      position: positions.enter(this.#place(session), from),
      isBusy: turn?.status === 'open',
      binary,
      options,
      limits,
      resolve: (ref) => {
        if (!media) throw omniaError('MEDIA_NOT_ENABLED', 'not_supported', 'media storage is not enabled')
        return media.resolve(ref, session.id, principal)
      },
    })
    this.#isFresh = false
    this.#alias = undefined
    const line = this.#line
    this.#unwatch =
      media?.watch(this.#place(session), (upload_complete) => void line.tell('upload_complete', { upload_complete })) ?? this.#unwatch
    void line.follow()
  }

  #greet(resumed: boolean): Promise<void> {
    const capabilities = {
      binary_frames: true,
      max_payload_size: this.#shared.limits.messageBytes,
      protocol_version: PROTOCOL_VERSION,
    }
    return this.#line.tell('connected', { connected: { capabilities, resumed } })
  }

  /** The client ends it. What was said stays, and the session can be gone on with. */
  #hangUp(): void {
    this.#line.cancel()
    this.#shared.positions.forget(this.#place(this.#line.session))
    this.#options.socket.close(1000, 'hangup')
  }

  #leave(): void {
    const { limits, host } = this.#shared
    this.#unwatch()
    this.#line.leave(host.now() + limits.resumeMs)
  }

  /** Where a session's things are kept apart from those of others. */
  #place({ owner, id }: Session): string {
    return `${owner.tenant} ${id}`
  }

  async #refuse(thrown: unknown): Promise<void> {
    const error = UampError.from(thrown)
    const { host } = this.#shared
    host.meter.countError('omnia', error.code)
    if (error.code === 'internal') host.log('error', 'A message failed', { session: this.#line.session.id, error: error.cause ?? error })
    await this.#line.tell('error', { error: errorInfo(error.toBody()) })
  }
}
