/** ACP over HTTP (Streamable HTTP and WebSocket transport): requests go in by POST, everything comes out on streams. */
import { chooseAgent } from '../../core/edge/choose-agent.ts'
import type { KnownCall, Streamed } from '../../core/ports/transport.ts'
import { UampError } from '../../protocol/errors.ts'
import { errorText, readMessage, type RpcMessage } from '../../wire/json-rpc.ts'
import { paymentFrom } from '../../wire/payment.ts'
import { SSE_HEADERS, SSE_HEARTBEAT, sseLine } from '../../wire/sse.ts'
import { AcpConnection } from './connection.ts'
import { refusal, told } from './errors.ts'
import { HttpConnection, type HttpOptions } from './http-connection.ts'
import { HttpConnections } from './http-connections.ts'
import { Outbound } from './outbound.ts'
import { sessionIn } from './schema.ts'
import { isSeedInitialize, SEED_METHODS } from './seed.ts'

const CONNECTION_ID = 'acp-connection-id'
const SESSION_ID = 'acp-session-id'

export class HttpBinding {
  readonly #options: HttpOptions
  readonly #connections = new HttpConnections()

  constructor(options: HttpOptions, closing: AbortSignal) {
    this.#options = options
    closing.addEventListener('abort', () => this.#connections.closeAll())
  }

  async post(request: Request, call: KnownCall): Promise<Response | Streamed> {
    const { headers } = request
    if (!/^application\/(.+\+)?json\b/i.test(headers.get('content-type') ?? '')) {
      return refusal(new UampError('invalid_request', 'Send application/json'), { status: 415 })
    }
    const message = readMessage(await request.text())
    if (message.kind === 'invalid') return json(errorText(message.id, message.error), { status: 400 })
    const id = headers.get(CONNECTION_ID)
    if (id !== null) return this.#forward(this.#connections.find(id, call), message, headers.get(SESSION_ID))
    if (message.kind === 'notification') return new Response(null, { status: 202 })
    if (message.kind !== 'request') return missing(CONNECTION_ID)
    if (message.method === 'initialize' && !isSeedInitialize(message.params)) return this.#open(message, call)
    return this.#once(message, call)
  }

  async stream({ headers }: Request, call: KnownCall): Promise<Response | Streamed> {
    if (!isStreamed(headers)) {
      return refusal(new UampError('invalid_request', 'This is a stream: accept text/event-stream'), { status: 406 })
    }
    const id = headers.get(CONNECTION_ID)
    if (id === null) return missing(CONNECTION_ID)
    const frames = this.#connections.find(id, call).lease(headers.get(SESSION_ID) ?? '', call.signal)
    return frames ? streamed(frames) : refusal(new UampError('conflict', 'Somebody reads this stream already'))
  }

  async remove({ headers }: Request, call: KnownCall): Promise<Response> {
    const id = headers.get(CONNECTION_ID)
    if (id === null) return missing(CONNECTION_ID)
    this.#connections.find(id, call).close()
    return new Response(null, { status: 202 })
  }

  async #open(message: RpcMessage, call: KnownCall): Promise<Response> {
    this.#connections.reserve(call)
    const id = this.#options.host.newId()
    const connection = new HttpConnection(this.#options, call, () => this.#connections.delete(id))
    this.#connections.add(id, connection)
    const answer = await connection.answerTo(message)
    if (!connection.initialized) {
      connection.close()
      return json(answer)
    }
    return json(answer, { headers: { [CONNECTION_ID]: id } })
  }

  #forward(connection: HttpConnection, message: RpcMessage, session: string | null): Response {
    if (message.kind === 'request' && message.method === 'initialize')
      return refusal(new UampError('invalid_request', 'This connection is initialized already'))
    const named = sessionIn('params' in message ? message.params : undefined)
    if (named !== undefined && session === null) return missing(SESSION_ID)
    if (named !== undefined && session !== named)
      return refusal(new UampError('invalid_request', 'Acp-Session-Id is not the session of the message'))
    void connection.receive(message, named)
    return new Response(null, { status: 202 })
  }

  /** The older methods need no connection: one request, one answer, with notifications before it if that is accepted. */
  async #once(message: RpcMessage & { kind: 'request' }, call: KnownCall): Promise<Response | Streamed> {
    const { request, root, principal, access, signal } = call
    const { headers } = request
    const agent = chooseAgent(this.#options.host, call)
    const stream = isStreamed(headers) ? new Outbound() : undefined
    const connection = new AcpConnection({
      ...this.#options,
      caller: { agent, root, principal, access, payment: paymentFrom(headers) },
      send: async (frames) => stream?.push(frames),
    })
    if (!SEED_METHODS.has(message.method) && connection.knows(message.method)) return missing(CONNECTION_ID)
    const leave = (): void => {
      stream?.close()
      void connection.close()
    }
    signal.addEventListener('abort', leave, { once: true })
    if (!stream) return json(await connection.answerTo(message))
    void connection.receive(message, (text) => stream.push([text])).then(() => stream.close())
    // Nobody can come back for the rest.
    return { ...streamed(stream.lease(leave)), failure: (error) => sseLine(errorText(message.id, told(error))) }
  }
}

function isStreamed(headers: Headers): boolean {
  return headers.get('accept')?.includes('text/event-stream') ?? false
}

function streamed(frames: AsyncIterable<string>): Streamed {
  return { status: 200, headers: SSE_HEADERS, frames, heartbeat: SSE_HEARTBEAT }
}

function json(
  text: string,
  { status = 200, headers = {} }: { status?: number; headers?: Readonly<Record<string, string>> } = {},
): Response {
  return new Response(text, { status, headers: { 'content-type': 'application/json', ...headers } })
}

function missing(header: string): Response {
  return refusal(new UampError('invalid_request', `The header ${header} is missing`))
}
