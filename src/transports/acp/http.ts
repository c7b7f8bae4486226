/** ACP over HTTP (Streamable HTTP and WebSocket transport): requests go in by POST, everything comes out on streams. */
import type { Principal } from '../../core/ports/access.ts'
import { chooseAgent } from '../../core/choose-agent.ts'
import type { KnownCall, Streamed } from '../../core/ports/transport.ts'
import { UampError } from '../../protocol/errors.ts'
import { isRecord } from '../../protocol/json.ts'
import { asMessage, errorText, readMessage, resultText, type RpcMessage } from '../../wire/json-rpc.ts'
import { paymentFrom } from '../../wire/payment.ts'
import { SSE_HEADERS, SSE_HEARTBEAT, sseLine } from '../../wire/sse.ts'
import { AcpConnection, type ConnectionOptions, type Link } from './connection.ts'
import { refusal, told } from './errors.ts'
import { Outbound } from './outbound.ts'
import { isSeedInitialize, SEED_METHODS } from './seed.ts'

const CONNECTION_ID = 'acp-connection-id'
const SESSION_ID = 'acp-session-id'
/** Connections of one server and of one principal; beyond them, none is opened. */
const CONNECTIONS = 5_000
const PER_PRINCIPAL = 500
/** Streams of one connection: it carries no more sessions. */
const STREAMS = 257
/** A connection that nobody reads from is closed after this. */
const IDLE_MS = 5 * 60_000

type Request_ = RpcMessage & { kind: 'request' }
export type HttpOptions = Omit<ConnectionOptions, 'link' | 'caller' | 'local'>

export class HttpBinding {
  readonly #options: HttpOptions
  readonly #connections = new Map<string, HttpConnection>()

  constructor(options: HttpOptions) {
    this.#options = options
    options.host.closing.addEventListener('abort', () => {
      for (const connection of this.#connections.values()) connection.close()
    })
  }

  async post(request: Request, call: KnownCall): Promise<Response | Streamed> {
    if (!/^application\/(.+\+)?json\b/i.test(request.headers.get('content-type') ?? '')) {
      return refusal(new UampError('invalid_request', 'Send application/json'), { status: 415 })
    }
    const message = readMessage(await request.text())
    if (message.kind === 'invalid') return json(errorText(message.id, message.error), 400)
    const id = request.headers.get(CONNECTION_ID)
    if (id !== null) return this.#forward(this.#find(id, call), message, request)
    if (message.kind === 'notification') return new Response(null, { status: 202 })
    if (message.kind !== 'request') return missing(CONNECTION_ID)
    if (message.method === 'initialize' && !isSeedInitialize(message.params)) return this.#open(message, call)
    return this.#once(message, request, call)
  }

  async stream(request: Request, call: KnownCall): Promise<Response | Streamed> {
    const { headers } = request
    if (!headers.get('accept')?.includes('text/event-stream')) {
      return refusal(new UampError('invalid_request', 'This is a stream: accept text/event-stream'), { status: 406 })
    }
    const id = headers.get(CONNECTION_ID)
    if (id === null) return missing(CONNECTION_ID)
    const frames = this.#find(id, call).lease(headers.get(SESSION_ID) ?? '', call.signal)
    if (!frames) return refusal(new UampError('conflict', 'Somebody reads this stream already'), { status: 409 })
    return { status: 200, headers: SSE_HEADERS, frames, heartbeat: SSE_HEARTBEAT }
  }

  async remove(request: Request, call: KnownCall): Promise<Response> {
    const id = request.headers.get(CONNECTION_ID)
    if (id === null) return missing(CONNECTION_ID)
    this.#find(id, call).close()
    return new Response(null, { status: 202 })
  }

  async #open(message: Request_, call: KnownCall): Promise<Response> {
    const { host } = this.#options
    const mine = [...this.#connections.values()].filter(({ principal }) => same(principal, call.principal)).length
    if (this.#connections.size >= CONNECTIONS || mine >= PER_PRINCIPAL)
      throw new UampError('rate_limited', 'Too many connections: close some', { details: { retry_after: 30 } })
    const id = host.newId()
    const connection = new HttpConnection(this.#options, call, () => this.#connections.delete(id))
    const answer = await connection.initialize(message)
    if (isError(answer)) {
      connection.close()
      return json(answer, 200)
    }
    this.#connections.set(id, connection)
    return json(answer, 200, { [CONNECTION_ID]: id })
  }

  #forward(connection: HttpConnection, message: RpcMessage, { headers }: Request): Response {
    if (message.kind === 'request' && message.method === 'initialize')
      return refusal(new UampError('invalid_request', 'This connection is initialized already'))
    const params = 'params' in message ? message.params : undefined
    const named = isRecord(params) && typeof params['sessionId'] === 'string' ? params['sessionId'] : undefined
    const session = headers.get(SESSION_ID)
    if (named !== undefined && session === null) return missing(SESSION_ID)
    if (named !== undefined && session !== named)
      return refusal(new UampError('invalid_request', 'Acp-Session-Id is not the session of the message'))
    connection.receive(message)
    return new Response(null, { status: 202 })
  }

  /** The older methods need no connection: one request, one answer, with notifications before it if that is accepted. */
  async #once({ id, method, params }: Request_, request: Request, call: KnownCall): Promise<Response | Streamed> {
    const { host } = this.#options
    const known = Object.hasOwn(SEED_METHODS, method) ? SEED_METHODS[method] : undefined
    if (!known) return missing(CONNECTION_ID)
    const agent = chooseAgent(host, call)
    const answering = known(
      { host, agent, principal: call.principal, signal: call.signal, payment: paymentFrom(request.headers) },
      params,
      id,
    )
    const answer = async function* (): AsyncGenerator<string, string> {
      try {
        for (;;) {
          const step = await answering.next()
          if (step.done) return resultText(id, step.value)
          yield step.value.map((frame) => sseLine(frame)).join('')
        }
      } catch (thrown) {
        host.meter.countError('acp', UampError.from(thrown).code)
        return errorText(id, told(thrown))
      }
    }
    const texts = answer()
    if (request.headers.get('accept')?.includes('text/event-stream')) {
      const frames = async function* (): AsyncGenerator<string, string> {
        return sseLine(yield* texts)
      }
      return { status: 200, headers: SSE_HEADERS, frames: frames(), heartbeat: SSE_HEARTBEAT }
    }
    for (;;) {
      const step = await texts.next()
      if (step.done) return json(step.value, 200)
    }
  }

  /** Another's connection is not there. */
  #find(id: string, { principal, agent }: KnownCall): HttpConnection {
    const connection = this.#connections.get(id)
    if (connection && same(connection.principal, principal) && connection.agent === agent) return connection
    throw new UampError('not_found', 'There is no such connection: initialize a new one')
  }
}

class HttpConnection implements Link {
  readonly principal: Principal
  readonly agent: string | undefined
  readonly #connection: AcpConnection
  readonly #streams = new Map<string, Outbound>()
  readonly #onClose: () => void
  #initialized: ((answer: string) => void) | undefined
  #idle: ReturnType<typeof setTimeout> | undefined

  constructor(options: HttpOptions, { principal, agent, root, access }: KnownCall, onClose: () => void) {
    this.principal = principal
    this.agent = agent
    this.#onClose = onClose
    this.#connection = new AcpConnection({ ...options, link: this, local: false, caller: { principal, agent, root, access } })
    this.#rest()
  }

  initialize(message: RpcMessage): Promise<string> {
    const answered = new Promise<string>((resolve) => (this.#initialized = resolve))
    this.#connection.receive(message)
    return answered
  }

  receive(message: RpcMessage): void {
    this.#rest()
    this.#connection.receive(message)
  }

  send(frames: readonly string[], session = ''): Promise<void> {
    const [first = ''] = frames
    if (this.#initialized) this.#initialized(first)
    else return this.#stream(session).push(frames)
    this.#initialized = undefined
    return Promise.resolve()
  }

  listens(session: string): boolean {
    return this.#streams.get(session)?.leased ?? false
  }

  /** Undefined: somebody reads it already. */
  lease(session: string, signal: AbortSignal): AsyncIterable<string> | undefined {
    if (!this.#streams.has(session) && this.#streams.size >= STREAMS)
      throw new UampError('rate_limited', 'Too many streams', { details: { retry_after: 1 } })
    const stream = this.#stream(session)
    if (stream.leased) return undefined
    clearTimeout(this.#idle)
    const frames = stream.lease(() => this.#rest())
    signal.addEventListener('abort', () => void frames[Symbol.asyncIterator]().return?.(), { once: true })
    return frames
  }

  close(): void {
    clearTimeout(this.#idle)
    this.#onClose()
    for (const stream of this.#streams.values()) stream.close()
    void this.#connection.close()
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

function json(text: string, status: number, headers: Readonly<Record<string, string>> = {}): Response {
  return new Response(text, { status, headers: { 'content-type': 'application/json', ...headers } })
}

function missing(header: string): Response {
  return refusal(new UampError('invalid_request', `The header ${header} is missing`))
}

function isError(text: string): boolean {
  const message = asMessage(JSON.parse(text))
  return message.kind === 'response' && message.error !== undefined
}

function same(a: Principal, b: Principal): boolean {
  return a.tenant === b.tenant && a.id === b.id
}
