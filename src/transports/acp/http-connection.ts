import type { Principal } from '../../core/ports/access.ts'
import type { KnownCall } from '../../core/ports/transport.ts'
import { UampError } from '../../protocol/errors.ts'
import type { RpcMessage } from '../../wire/json-rpc.ts'
import { AcpConnection, type Answer, type ConnectionOptions } from './connection.ts'
import { Outbound } from './outbound.ts'

/** Streams of one connection: it carries no more sessions. */
const STREAMS = 257
/** A connection that nobody reads from is closed after this. */
const IDLE_MS = 5 * 60_000
/** Clients wait for the stream before they say anything. */
const OPENED = ':\n\n'

export type HttpOptions = Omit<ConnectionOptions, 'send' | 'caller'>

/** One client that sends requests and reads streams: one of the connection, whose name is empty, and one of each session. */
export class HttpConnection {
  readonly agent: string | undefined
  readonly #principal: Principal
  readonly #connection: AcpConnection
  readonly #streams = new Map<string, Outbound>()
  readonly #onClose: () => void
  #idle: ReturnType<typeof setTimeout> | undefined

  constructor(options: HttpOptions, { principal, agent, root, access }: KnownCall, onClose: () => void) {
    this.agent = agent
    this.#principal = principal
    this.#onClose = onClose
    const send = (frames: readonly string[], session = ''): Promise<void> => this.#stream(session).push(frames)
    this.#connection = new AcpConnection({ ...options, caller: { principal, agent, root, access }, send })
    this.#rest()
  }

  get initialized(): boolean {
    return this.#connection.initialized
  }

  isOf({ tenant, id }: Principal): boolean {
    return this.#principal.tenant === tenant && this.#principal.id === id
  }

  receive(message: RpcMessage, answer: Answer): Promise<void> {
    this.#rest()
    return this.#connection.receive(message, answer)
  }

  /** Where nobody may be listening to a session yet, the connection is told. */
  answer(text: string, session = ''): Promise<void> {
    return this.#stream(this.#streams.get(session)?.leased ? session : '').push([text])
  }

  /** Undefined: somebody reads it already. */
  lease(session: string, signal: AbortSignal): AsyncIterable<string> | undefined {
    if (!this.#streams.has(session) && this.#streams.size >= STREAMS)
      throw new UampError('rate_limited', 'Too many streams', { details: { retry_after: 1 } })
    const stream = this.#stream(session)
    if (stream.leased) return undefined
    clearTimeout(this.#idle)
    const frames = stream.lease(() => this.#rest(), OPENED)
    signal.addEventListener('abort', () => void frames[Symbol.asyncIterator]().return?.(), { once: true })
    return frames
  }

  close(): void {
    this.#onClose()
    for (const stream of this.#streams.values()) stream.close()
    void this.#connection.close()
    clearTimeout(this.#idle)
  }

  #stream(session: string): Outbound {
    let stream = this.#streams.get(session)
    if (!stream) this.#streams.set(session, (stream = new Outbound()))
    return stream
  }

  #rest(): void {
    clearTimeout(this.#idle)
    if ([...this.#streams.values()].some(({ leased }) => leased)) return
    this.#idle = setTimeout(() => this.close(), IDLE_MS)
    // Node only: a connection that nobody uses does not keep the process up.
    ;(this.#idle as { unref?: () => void }).unref?.()
  }
}
