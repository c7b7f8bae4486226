import type { Principal } from '../../core/ports/access.ts'
import type { Hold } from '../../core/ports/session.ts'
import type { Trace } from '../../core/ports/trace.ts'
import type { KnownCall } from '../../core/ports/transport.ts'
import { UampError } from '../../protocol/errors.ts'
import { errorText, type RpcMessage } from '../../wire/json-rpc.ts'
import { AcpConnection, type ConnectionOptions } from './connection.ts'
import { told } from './errors.ts'
import { Outbound } from './outbound.ts'

/** Streams of one connection that may have readers: one of each session, and its own. */
const STREAMS = 257
/** Characters that may wait on all streams of a connection. Beyond them it is closed, and its client loads its sessions again. */
const UNREAD = 16 * 1024 * 1024
/** A connection with less than this waiting stays open when its principal holds too much memory: others are closed. */
const LITTLE = 64 * 1024
/** A connection without readers is closed after this. */
const IDLE_MS = 5 * 60_000
/** Clients wait for the stream before they say anything. */
const OPENED = ':\n\n'

export type HttpOptions = Omit<ConnectionOptions, 'send' | 'caller'>

/**
 * A client that sends requests and reads streams: one of the connection, whose name is empty, and one of each session. A stream exists
 * while somebody reads it or its session is open here.
 */
export class HttpConnection {
  readonly agent: string | undefined
  /** Where it was opened from. */
  readonly address: string
  /** The client has sent a message, or read a stream, since `initialize`. */
  isUsed = false
  #principal: Principal
  readonly #trace: Trace
  readonly #options: HttpOptions
  readonly #connection: AcpConnection
  readonly #streams = new Map<string, Outbound>()
  readonly #onClose: () => void
  /** Counts what waits to be read. */
  readonly #hold: Hold
  #closed = false
  #idle: ReturnType<typeof setTimeout> | undefined

  constructor(options: HttpOptions, { principal, agent, root, access, trace, address }: KnownCall, onClose: () => void) {
    this.agent = agent
    this.address = address
    this.#principal = principal
    this.#trace = trace
    this.#onClose = onClose
    this.#options = options
    this.#hold = options.host.gateway.hold(principal, 0)
    const send = (frames: readonly string[], session?: string): Promise<void> => this.#send(frames, session)
    this.#connection = new AcpConnection({ ...options, caller: { principal, agent, root, access, trace }, send })
    this.#rest()
  }

  get initialized(): boolean {
    return this.#connection.initialized
  }

  get isRead(): boolean {
    return [...this.#streams.values()].some(({ leased }) => leased)
  }

  recognize(principal: Principal): void {
    if (principal === this.#principal) return
    this.#principal = principal
    this.#connection.recognize(principal)
  }

  isOf({ tenant, id }: Principal): boolean {
    return this.#principal.tenant === tenant && this.#principal.id === id
  }

  async receive(message: RpcMessage, session = ''): Promise<void> {
    this.isUsed = true
    this.#rest()
    await this.#connection.receive(message, (text) => this.#send([text], this.#streams.get(session)?.leased ? session : ''))
    this.#tidy(session)
  }

  /** For the request that opens the connection: nobody reads a stream yet. */
  answerTo(message: RpcMessage): Promise<string> {
    return this.#connection.answerTo(message)
  }

  /** `undefined`: the stream has a reader already. */
  lease(session: string, signal: AbortSignal): AsyncIterable<string> | undefined {
    let stream = this.#streams.get(session)
    if (stream?.leased) return undefined
    if ([...this.#streams.values()].filter(({ leased }) => leased).length >= STREAMS)
      throw new UampError('rate_limited', 'Too many streams', { details: { retry_after: 1 } })
    if (!stream) this.#streams.set(session, (stream = this.#outbound()))
    this.isUsed = true
    clearTimeout(this.#idle)
    const left = (): void => {
      this.#tidy(session)
      this.#rest()
    }
    const frames = stream.lease(left, OPENED)
    signal.addEventListener('abort', () => void frames[Symbol.asyncIterator]().return?.(), { once: true })
    return frames
  }

  /** `reason`: why, for whoever reads the connection. Absent when the client itself closes it. */
  close(reason?: UampError): void {
    this.#closed = true
    this.#onClose()
    if (reason) void this.#streams.get('')?.push([errorText(null, told(reason))])
    for (const stream of this.#streams.values()) stream.close()
    void this.#connection.close()
    this.#hold.close()
    clearTimeout(this.#idle)
  }

  /** Messages about a session that was closed go to the reader of its stream, or else to the stream of the connection. */
  async #send(frames: readonly string[], session = ''): Promise<void> {
    if (this.#closed) return
    const name = this.#connection.has(session) || this.#streams.get(session)?.leased ? session : ''
    const stream = this.#streams.get(name) ?? this.#outbound()
    this.#streams.set(name, stream)
    const reason = stream.leased && stream.size === 0 ? undefined : this.#full()
    if (!reason) return stream.push(frames)
    const fields = { transport: 'acp', principal: this.#principal.id, ...this.#trace.fields }
    this.#options.host.log('warn', 'Closed a connection that nobody reads', fields)
    this.close(reason)
  }

  #outbound(): Outbound {
    return new Outbound(() => this.#hold.set(this.#unread))
  }

  /** Why nothing more may wait; undefined while more may. */
  #full(): UampError | undefined {
    const unread = this.#unread
    if (unread > UNREAD)
      return new UampError('rate_limited', `More than ${UNREAD} characters wait to be read: read the streams of all sessions`)
    try {
      // One more than now: only what comes beyond it is refused.
      this.#hold.grow(unread + 1)
      return undefined
    } catch (error) {
      return unread > LITTLE ? UampError.from(error) : undefined
    } finally {
      this.#hold.set(unread)
    }
  }

  get #unread(): number {
    return [...this.#streams.values()].reduce((sum, { size }) => sum + size, 0)
  }

  /** Drops the stream of a session if nobody reads it and nobody will write to it. */
  #tidy(session: string): void {
    if (session !== '' && !this.#streams.get(session)?.leased && !this.#connection.has(session)) {
      this.#streams.delete(session)
      if (!this.#closed) this.#hold.set(this.#unread)
    }
  }

  #rest(): void {
    clearTimeout(this.#idle)
    if (this.#closed || this.isRead) return
    this.#idle = setTimeout(() => this.close(), IDLE_MS)
    // Node only: a connection that nobody uses does not keep the process up.
    ;(this.#idle as { unref?: () => void }).unref?.()
  }
}
