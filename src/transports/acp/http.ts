/** ACP over HTTP (Streamable HTTP and WebSocket transport): requests go in by POST, everything comes out on streams. */
import { chooseAgent } from '../../core/edge/asked.ts'
import type { KnownCall, Streamed } from '../../core/ports/transport.ts'
import { UampError } from '../../protocol/errors.ts'
import { errorText, readMessage, type RpcMessage } from '../../wire/json-rpc.ts'
import { paymentFrom } from '../../wire/payment.ts'
import { SSE_HEADERS, SSE_HEARTBEAT, sseLine } from '../../wire/sse.ts'
import { AcpConnection } from './connection.ts'
import { refusal, told } from './errors.ts'
import { HttpConnection, type HttpOptions } from './http-connection.ts'
import { Outbound } from './outbound.ts'
import { sessionIn } from './schema.ts'
import { isOlderInitialize, OLDER_METHODS } from './older-methods.ts'

const CONNECTION_ID = 'acp-connection-id'
const SESSION_ID = 'acp-session-id'
/** Connections of one server and of one principal. Beyond them a connection that nobody reads makes room, or no more are opened. */
const CONNECTIONS = 5_000
const PER_PRINCIPAL = 500

/**
 * A connection lasts for minutes after its last request, and all callers without a token are one principal: a caller that opens
 * connections and leaves them must not keep the others out.
 */
export class HttpBinding {
  readonly #options: HttpOptions
  /** The connection that was used longest ago is first. */
  readonly #connections = new Map<string, HttpConnection>()

  constructor(options: HttpOptions, closing: AbortSignal) {
    this.#options = options
    closing.addEventListener('abort', () => {
      for (const connection of this.#connections.values()) connection.close()
    })
  }

  async post(request: Request, call: KnownCall): Promise<Response | Streamed> {
    const { headers } = request
    if (!/^application\/(.+\+)?json\b/i.test(headers.get('content-type') ?? '')) {
      return refusal(new UampError('invalid_request', 'Send application/json'), { status: 415 })
    }
    const message = readMessage(await call.text())
    if (message.kind === 'invalid') return json(errorText(message.id, message.error), { status: 400 })
    const id = headers.get(CONNECTION_ID)
    if (id !== null) {
      const connection = this.#find(id, call)
      // An answer to a question of the agent's says no method that would be checked.
      if (message.kind === 'response') this.#options.host.gateway.authorize(call.principal, 'call', call.agent)
      return this.#forward(connection, message, headers.get(SESSION_ID))
    }
    if (message.kind === 'notification') return new Response(null, { status: 202 })
    if (message.kind !== 'request') return missing(CONNECTION_ID)
    if (message.method === 'initialize' && !isOlderInitialize(message.params)) return this.#open(message, call)
    return this.#once(message, call)
  }

  async stream({ headers }: Request, call: KnownCall): Promise<Response | Streamed> {
    if (!isStreamed(headers)) {
      return refusal(new UampError('invalid_request', 'This is a stream: accept text/event-stream'), { status: 406 })
    }
    const id = headers.get(CONNECTION_ID)
    if (id === null) return missing(CONNECTION_ID)
    const frames = this.#find(id, call).lease(headers.get(SESSION_ID) ?? '', call.signal)
    return frames ? streamed(frames) : refusal(new UampError('conflict', 'This stream has a reader already'))
  }

  async remove({ headers }: Request, call: KnownCall): Promise<Response> {
    const id = headers.get(CONNECTION_ID)
    if (id === null) return missing(CONNECTION_ID)
    this.#find(id, call).close()
    return new Response(null, { status: 202 })
  }

  async #open(message: RpcMessage, call: KnownCall): Promise<Response> {
    this.#makeRoom(call)
    const id = this.#options.host.newId()
    const connection = new HttpConnection(this.#options, call, () => this.#connections.delete(id))
    this.#connections.set(id, connection)
    const answer = await connection.answerTo(message)
    if (!connection.initialized) {
      connection.close()
      return json(answer)
    }
    return json(answer, { headers: { [CONNECTION_ID]: id } })
  }

  #makeRoom({ principal }: KnownCall): void {
    const all = [...this.#connections.values()]
    const mine = all.filter((connection) => connection.isOf(principal))
    if (mine.length >= PER_PRINCIPAL) evict(mine)
    else if (all.length >= CONNECTIONS) evict(all)
  }

  /** Another caller's connection is not found. */
  #find(id: string, { principal, agent }: KnownCall): HttpConnection {
    const connection = this.#connections.get(id)
    if (!connection?.isOf(principal) || connection.agent !== agent) {
      throw new UampError('not_found', 'There is no such connection. Unread connections are closed: initialize a new one')
    }
    this.#connections.delete(id)
    this.#connections.set(id, connection)
    connection.recognize(principal)
    return connection
  }

  #forward(connection: HttpConnection, message: RpcMessage, session: string | null): Response {
    if (message.kind === 'request' && message.method === 'initialize')
      return refusal(new UampError('invalid_request', 'This connection is initialized already'))
    const named = sessionIn('params' in message ? message.params : undefined)
    if (named !== undefined && session === null) return missing(SESSION_ID)
    if (named !== undefined && session !== named)
      return refusal(new UampError('invalid_request', 'Acp-Session-Id names another session than the message'))
    void connection.receive(message, named)
    return new Response(null, { status: 202 })
  }

  /** The older methods need no connection: one request and one answer, with notifications before it if the client accepts a stream. */
  async #once(message: RpcMessage & { kind: 'request' }, call: KnownCall): Promise<Response | Streamed> {
    const { request, root, principal, access, trace, signal } = call
    const { headers } = request
    const agent = chooseAgent(this.#options.host, call)
    const stream = isStreamed(headers) ? new Outbound() : undefined
    const connection = new AcpConnection({
      ...this.#options,
      caller: { agent, root, principal, access, trace, payment: paymentFrom(headers) },
      send: async (frames) => stream?.push(frames),
    })
    if (!OLDER_METHODS.has(message.method) && connection.methods.has(message.method)) return missing(CONNECTION_ID)
    const leave = (): void => {
      stream?.close()
      void connection.close()
    }
    signal.addEventListener('abort', leave, { once: true })
    if (!stream) return json(await connection.answerTo(message))
    void connection.receive(message, (text) => stream.push([text])).then(() => stream.close())
    // The client cannot come back for the rest.
    return { ...streamed(stream.lease(leave)), failure: (error) => sseLine(errorText(message.id, told(error))) }
  }
}

/**
 * Closes a connection that nobody reads. It prefers those on which nothing was said since `initialize`, and among them the address
 * that has most: a flood then replaces its own connections, and not one that somebody else is about to use.
 */
function evict(connections: readonly HttpConnection[]): void {
  const unread = connections.filter(({ isRead }) => !isRead)
  const unused = unread.filter(({ isUsed }) => !isUsed)
  const counts = new Map<string, number>()
  for (const { address } of unused) counts.set(address, (counts.get(address) ?? 0) + 1)
  const most = Math.max(...counts.values())
  const chosen = unused.find(({ address }) => counts.get(address) === most) ?? unread[0]
  if (!chosen) throw new UampError('rate_limited', 'Too many connections: close some', { details: { retry_after: 30 } })
  chosen.close()
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
