import { Bucket } from '../../core/basics/bucket.ts'
import type { Session } from '../../core/ports/session.ts'
import { UampError } from '../../protocol/errors.ts'
import { expired, invalid, omniaError } from './errors.ts'
import { COMPRESSED, decodeFrame, LAST, MEDIA } from './frame.ts'
import { Line } from './line.ts'
import { enabled } from './media/index.ts'
import { check, ClientMessage, type Message, parse, UploadRequest } from './schema.ts'
import { findSession, offeredTools, type Link } from './shared.ts'
import { Listener, SOUND, soundFormat } from './sound.ts'

/** The version of binary frames, the only version number of the protocol. */
const PROTOCOL_VERSION = 1

/** Changes of the sound's format: each may need filters of its own. A call has one change at its beginning. */
const FORMATS = { perSecond: 4, burst: 16 }

type Of<T extends ClientMessage['type']> = Extract<ClientMessage, { type: T }>

/** The session of a message. `resumed`: the client is greeted, as one that comes back or as a new one. */
type Chosen = readonly [line: Line, resumed?: boolean | undefined]

/** One WebSocket: one session at a time, which a message may change. */
export class OmniaConnection {
  readonly #link: Link
  readonly #messages: Bucket
  readonly #media: Bucket
  readonly #formats: Bucket
  readonly #listener: Listener
  #calling = false
  /** Set before any message is read. */
  #line!: Line

  constructor(link: Link) {
    const { limits, host } = link
    this.#link = link
    this.#messages = new Bucket({ perSecond: limits.messagesPerSecond, burst: limits.messageBurst, monotonic: host.monotonic })
    this.#media = new Bucket({ perSecond: limits.mediaBytesPerSecond, burst: limits.mediaBurstBytes, monotonic: host.monotonic })
    this.#formats = new Bucket({ ...FORMATS, monotonic: host.monotonic })
    this.#listener = new Listener({
      onStart: () => void this.#line.interrupt(),
      onEnd: (samples) => void this.#line.hear(samples).catch((thrown: unknown) => this.#line.refuse(thrown)),
    })
  }

  /** `resume`: the session of a connection that broke. */
  async run(resume: string | undefined): Promise<void> {
    try {
      await this.#begin(resume)
      for await (const frame of this.#link.socket) {
        if ((await this.#receive(frame)) === 'hangup') return this.#hangUp()
      }
    } finally {
      this.#line?.leave()
      await this.#link.positions.settle()
    }
  }

  /** Opens the session, or finds the one of a connection that broke, and greets the client. */
  async #begin(resume: string | undefined): Promise<void> {
    const known = resume === undefined ? undefined : await this.#find(resume)
    await this.#follow(known ? [await this.#attach(known, resume), true] : await this.#open())
  }

  async #receive(frame: string | Uint8Array): Promise<'hangup' | void> {
    try {
      if (typeof frame !== 'string') return this.#hear(frame)
      if (!this.#messages.take(1)) throw new UampError('rate_limited', 'rate limit exceeded')
      const message = parse(ClientMessage, frame)
      if (message.type === 'hangup') return 'hangup'
      this.#link.host.gateway.checkSlots(message, frame.length)
      await this.#handle(message)
    } catch (thrown) {
      await this.#line.refuse(thrown)
    }
  }

  async #handle(message: Exclude<ClientMessage, Of<'hangup'>>): Promise<void> {
    switch (message.type) {
      case 'message':
        return this.#say(message)
      case 'upload_request':
        return this.#upload(message)
      case 'tool_call_ack':
        return this.#line.calls.acknowledged(message.tool_call_ack.call_id)
      case 'tool_call_nack': {
        const { call_id: id, reason } = message.tool_call_nack
        return this.#line.calls.answer(id, { error: reason ?? 'client rejected tool call' })
      }
      case 'tool_result':
        return this.#line.calls.answer(message.tool_result.call_id, message.tool_result)
    }
  }

  /** A message that is refused does not move the connection to another session. */
  async #say(message: Message): Promise<void> {
    const chosen = await this.#choose(message.session_id)
    const [line] = chosen
    const { host, principal } = this.#link
    const hold = host.gateway.hold(principal, 0)
    let bytes = 0
    try {
      const inputs = await line.prepare(message, { add: (more) => hold.grow((bytes += more)) })
      await this.#follow(chosen)
      await line.say(message, inputs)
    } catch (thrown) {
      if (line !== this.#line) line.leave('unused')
      throw thrown
    } finally {
      hold.close()
    }
  }

  async #upload({ session_id: id, upload_request }: Of<'upload_request'>): Promise<void> {
    const media = enabled(this.#link.media)
    const request = check(UploadRequest, upload_request)
    // Without an id it belongs to the session of the greeting: an upload alone begins no conversation.
    if (id != null || this.#line.ended) await this.#follow(await this.#choose(id))
    const { principal, url } = this.#link
    const { id: session, agent } = this.#line.session
    const upload_ready = await media.request({ ...request, session, agent, principal, url })
    this.#line.isFresh = false
    await this.#line.tell('upload_ready', { upload_ready })
  }

  /** Sound of a call. The answer to it is not awaited, as that would hold up the next frame. */
  #hear(bytes: Uint8Array): void {
    if (!this.#media.take(bytes.length)) throw new UampError('rate_limited', 'media rate limit exceeded')
    const { type, flags, meta, payload } = decodeFrame(bytes)
    if (type !== MEDIA) throw invalid(type === 2 ? 'Upload over HTTP: binary uploads are not supported' : 'unknown binary message type')
    if (flags & COMPRESSED) throw invalid('Compressed frames are not supported')
    if (!this.#link.host.agents.get(this.#link.agent)?.capabilities.modalities.includes('audio')) {
      throw omniaError('MEDIA_NOT_ENABLED', 'not_supported', 'audio not supported')
    }
    if (this.#line.ended) throw expired()
    if (!this.#calling) void this.#line.tell('session_config', { session_config: SOUND })
    this.#calling = (flags & LAST) === 0
    const format = soundFormat(meta, this.#listener.format)
    if (this.#listener.isChange(format) && !this.#formats.take(1)) {
      throw new UampError('rate_limited', 'The format of the sound changes too often: keep the sample rate and the channels of a call')
    }
    this.#listener.hear(payload, format)
    if (!this.#calling) this.#listener.finish()
  }

  /** The session that a message belongs to. */
  async #choose(id: string | null | undefined): Promise<Chosen> {
    if (id == null || id === '') {
      // Omnia WebSocket protocol, New Session. The session of the greeting is new, if nobody has used it.
      this.#line.checkIdle()
      return this.#line.isUnused && !this.#line.ended ? [this.#line, false] : this.#open()
    }
    if (this.#line.isCalled(id)) return [this.#line]
    this.#line.checkIdle()
    const known = await this.#find(id)
    // Session Expiration: a new session takes its place, and the client is told.
    if (!known) return this.#open(id)
    return [await this.#attach(known), known.id !== id && known.lastResponse === null ? false : undefined]
  }

  async #find(id: string): Promise<Session | undefined> {
    const { host, principal, agent } = this.#link
    const session = await findSession(host, id, { principal })
    return session?.agent === agent ? session : undefined
  }

  async #open(alias?: string): Promise<Chosen> {
    const { host, principal, agent, trace } = this.#link
    const tools = offeredTools(this.#link)
    const session = await host.gateway.open({
      transport: 'omnia',
      agent,
      principal,
      trace,
      config: { modalities: ['text'], ...(tools.length > 0 && { tools }) },
      duplex: true,
      persist: true,
      onDetach: 'continue',
      ...(alias !== undefined && { alias: { protocol: 'omnia', id: alias } }),
    })
    return [new Line(this.#link, session, { alias, isFresh: true }), false]
  }

  /** `resume`: the id by which a client comes back. A client that only names the session in a message is not told what it missed. */
  async #attach(session: Session, resume?: string): Promise<Line> {
    const { positions } = this.#link
    if (resume === undefined) positions.reopen(session)
    const heard = resume === undefined ? 'all' : await positions.take(session)
    const kept = heard === 'all' ? undefined : heard
    const line = new Line(this.#link, session, { kept, isUnknown: heard === undefined, alias: resume })
    try {
      await line.look()
      return line
    } catch (thrown) {
      line.leave('unused')
      throw thrown
    }
  }

  async #follow([line, resumed]: Chosen): Promise<void> {
    const isNew = line !== this.#line
    if (isNew) {
      this.#line?.leave()
      this.#line = line
    }
    if (resumed !== undefined) await this.#greet(resumed)
    if (isNew) await line.begin()
  }

  #greet(resumed: boolean): Promise<void> {
    const capabilities = {
      binary_frames: true,
      max_payload_size: this.#link.limits.messageBytes,
      protocol_version: PROTOCOL_VERSION,
    }
    return this.#line.tell('connected', { connected: { capabilities, resumed } })
  }

  /** The client hangs up. The conversation stays, and can be continued. */
  #hangUp(): void {
    this.#line.hangUp()
    this.#link.socket.close(1000, 'hangup')
  }
}
