import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { WebSocket, WebSocketServer } from 'ws'
import type { ServerOptions } from 'ws'
import { UampError } from '../../protocol/errors.ts'
import type { ServerApp } from '../app.ts'
import { errorResponse } from '../routes.ts'
import type { Accepted, UpgradeRequest } from '../upgrade.ts'
import { NodeCaller, peerOf, socketOf, withoutForwarded, type CallerOptions, type Incoming } from './caller.ts'
import { refuse, refuseRequest } from './answers.ts'
import type { Http2Answer } from './http2/answer.ts'
import type { Http2Request } from './http2/request.ts'
import type { Lingering } from './lingering.ts'
import { NodeSocket } from './socket.ts'
import type { NodeSocketOptions } from './socket.ts'
import type { Sweeper } from './sweeper.ts'

/** A socket of the library without its handshake, which HTTP/2 does not have. The types lack the method. */
interface ServerSocket extends WebSocket {
  setSocket(line: Duplex, head: Buffer, options: ServerOptions): void
}

type ServerSocketClass = new (address: null, protocols: undefined, options: ServerOptions) => ServerSocket

const NOTHING = Buffer.alloc(0)
/** What the access log says of a client that left before its answer. */
const CLOSED = 499

/** How long the peer has to answer a close. */
const CLOSE_TIMEOUT_MS = 10_000

export interface SocketsOptions {
  readonly server: ServerApp
  readonly sweeper: Sweeper
  readonly lingering: Lingering
  readonly monotonic: () => number
  readonly callers: CallerOptions
  readonly closeTimeoutMs?: number | undefined
}

/** The open WebSockets of a server. The library does the handshake. */
export class Sockets {
  readonly #options: SocketsOptions
  readonly #handshakes = new Map<number, WebSocketServer>()
  /** Those whose handshake is not over. */
  readonly #accepted = new WeakMap<IncomingMessage, Accepted>()
  readonly #open = new Set<NodeSocket>()
  readonly #socketOptions: NodeSocketOptions
  readonly #watched = new WeakMap<object, NodeSocketOptions>()
  #emptied: (() => void) | undefined

  constructor(options: SocketsOptions) {
    const { server, monotonic, lingering } = options
    this.#options = options
    this.#socketOptions = { limits: server.limits, monotonic, lingering, onClose: (socket) => this.#forget(socket) }
  }

  async upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const { server, callers } = this.#options
    const cut = () => socket.destroy()
    socket.on('error', cut)
    if (!isWebSocket(request)) {
      return refuse(socket, errorResponse(new UampError('invalid_request', 'This is not a request for a WebSocket')))
    }
    const accepted = await server.upgrade(new NodeUpgradeRequest(request, { hostName: request.headers.host, ...callers }))
    if (!('run' in accepted)) return refuse(socket, accepted)
    this.#accepted.set(request, accepted)
    socket.off('error', cut)
    const handshake = this.#handshake(accepted.messageBytes ?? server.limits.messageBytes)
    handshake.handleUpgrade(request, socket, head, (ws) => this.#adopt(ws, socket, accepted))
  }

  /** RFC 8441: a stream of HTTP/2 that both sides use as the connection of a WebSocket. */
  async connect(request: Http2Request, answer: Http2Answer): Promise<void> {
    const { server, callers } = this.#options
    const { stream, line } = answer
    if (request.headers[':protocol'] !== 'websocket' || !URL.canParse(`http://${request.authority}`)) {
      const refusal = errorResponse(new UampError('invalid_request', 'This is not a request for a WebSocket'))
      return refuseRequest(answer, refusal)
    }
    if (request.headers['sec-websocket-version'] !== '13') {
      const headers = { 'sec-websocket-version': '13' }
      return refuseRequest(answer, errorResponse(new UampError('invalid_request', 'WebSockets have version 13'), { headers }))
    }
    const accepted = await server.upgrade(new NodeUpgradeRequest(request, { hostName: request.authority, ...callers }))
    if (!('run' in accepted)) return refuseRequest(answer, accepted)
    if (line.destroyed || stream.closed) return accepted.failed(CLOSED)
    const { requestId, protocol } = accepted
    stream.respond({ ':status': 200, 'x-request-id': requestId, ...(protocol !== undefined && { 'sec-websocket-protocol': protocol }) })
    const { options } = this.#handshake(accepted.messageBytes ?? server.limits.messageBytes)
    const ws = new (WebSocket as unknown as ServerSocketClass)(null, undefined, options)
    line.open()
    ws.setSocket(line, NOTHING, options)
    this.#adopt(ws, line, accepted)
  }

  async close(timeoutMs: number): Promise<void> {
    for (const socket of this.#open) socket.close(1001, 'The server is going away')
    if (this.#open.size === 0) return
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, timeoutMs)
      this.#emptied = () => {
        clearTimeout(timer)
        resolve()
      }
    })
    for (const socket of this.#open) socket.terminate()
  }

  /** The library has one message size per server, so there is one server for each size that routes name. */
  #handshake(maxPayload: number): WebSocketServer {
    const known = this.#handshakes.get(maxPayload)
    if (known) return known
    // The library's types lack `closeTimeout`.
    const options: ServerOptions & { closeTimeout: number } = {
      noServer: true,
      clientTracking: false,
      perMessageDeflate: false,
      autoPong: false,
      maxPayload,
      closeTimeout: this.#options.closeTimeoutMs ?? CLOSE_TIMEOUT_MS,
      handleProtocols: (_, request) => this.#accepted.get(request)?.protocol ?? false,
    }
    const handshake = new WebSocketServer(options)
    handshake.on('headers', (headers, request) => headers.push(`x-request-id: ${this.#accepted.get(request)?.requestId ?? ''}`))
    handshake.on('wsClientError', (error, socket, request) => {
      const accepted = this.#accepted.get(request)
      const headers = { 'x-request-id': accepted?.requestId ?? '' }
      const refusal = errorResponse(new UampError('invalid_request', error.message), { headers })
      accepted?.failed(refusal.status)
      void refuse(socket, refusal)
    })
    this.#handshakes.set(maxPayload, handshake)
    return handshake
  }

  /** Not in `upgrade`: closures made there would keep the whole request for as long as the socket lives. */
  #adopt(ws: WebSocket, socket: Duplex, accepted: Accepted): void {
    const connection = new NodeSocket(ws, socket, this.#optionsFor(accepted.watch))
    this.#open.add(connection)
    this.#options.sweeper.add(connection)
    this.#options.callers.strangers.onEvict(socket, () => connection.cut(1013, 'Too many connections'))
    void accepted.run(connection)
  }

  /** Routes are few, and each has one object for all of its sockets. */
  #optionsFor(watch: Accepted['watch']): NodeSocketOptions {
    if (!watch) return this.#socketOptions
    const known = this.#watched.get(watch)
    if (known) return known
    const { pingIntervalMs, pongTimeoutMs } = watch
    const options = { ...this.#socketOptions, limits: { ...this.#socketOptions.limits, pingIntervalMs, pongTimeoutMs } }
    this.#watched.set(watch, options)
    return options
  }

  #forget(socket: NodeSocket): void {
    this.#open.delete(socket)
    this.#options.sweeper.delete(socket)
    if (this.#open.size === 0) this.#emptied?.()
  }
}

function isWebSocket({ headers, url }: IncomingMessage): boolean {
  return headers.upgrade?.toLowerCase() === 'websocket' && url?.startsWith('/') === true && URL.canParse(`http://${headers.host}`)
}

/** Keeps Node's raw headers: a `Headers` object would be most of the cost of an idle socket. */
class NodeUpgradeRequest extends NodeCaller implements UpgradeRequest {
  readonly url: string
  readonly #rawHeaders: readonly string[]
  /** True if the sender is a trusted proxy, or nothing reads the proxy headers. */
  readonly #asSent: boolean

  constructor(incoming: Incoming, options: CallerOptions & { readonly hostName: string | undefined }) {
    const socket = socketOf(incoming)
    super({ socket, headers: () => this.headers }, options)
    this.url = `${'encrypted' in socket ? 'https' : 'http'}://${options.hostName}${incoming.url}`
    this.#rawHeaders = incoming.rawHeaders
    this.#asSent = options.trusts?.(peerOf(socket)) ?? true
  }

  get headers(): Headers {
    const headers = new Headers()
    for (let i = 0; i + 1 < this.#rawHeaders.length; i += 2) {
      const name = this.#rawHeaders[i] ?? ''
      // What HTTP/1.1 has in its first line, HTTP/2 has in such headers.
      if (!name.startsWith(':')) headers.append(name, this.#rawHeaders[i + 1] ?? '')
    }
    return this.#asSent ? headers : withoutForwarded(headers)
  }
}
