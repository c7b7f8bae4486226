import { createServer as createPlainServer } from 'node:net'
import { createServer } from 'node:http'
import type { IncomingMessage, ServerOptions } from 'node:http'
import type { Server as TlsServer } from 'node:https'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { TLSSocket } from 'node:tls'
import { getRequestListener } from '@hono/node-server'
import { clocksOf, type Clocks } from '../../core/basics/time.ts'
import { UampError } from '../../protocol/errors.ts'
import { errorResponse } from '../routes.ts'
import { PlainResponse, refuse, refuseRequest } from './answers.ts'
import type { NodeApp } from './app.ts'
import { socketOf, type Incoming } from './caller.ts'
import { isAnswering, isInAnswer } from './connections.ts'
import { byPreface } from './h2c.ts'
import { Http2Request } from './http2/request.ts'
import { Sessions } from './http2/sessions.ts'
import { Handshakes, secureServer, takeConnections } from './secure.ts'
import { ClientCertificates, TlsReload, type TlsFiles, type TlsPair } from './tls.ts'

/** Connections beyond the limit that get a 503. More are dropped. */
const ANSWERED_BEYOND = 256
/** Connections that may wait to be accepted: all clients may come back at once after a restart. */
const BACKLOG = 4_096

const IDLE_CHECK_MS = 20
const KEEP_ALIVE_MS = 60_000

export interface Address {
  readonly port: number
  readonly host: string
}

export interface ListenOptions extends Address, Partial<Clocks> {
  /** Speaks HTTPS, over TLS 1.3, in HTTP/2 and HTTP/1.1. Default: HTTP/1.1 without TLS. */
  readonly tls?: Tls | undefined
  /** Also takes HTTP/2 without TLS, from clients that know it beforehand. */
  readonly h2c?: boolean | undefined
}

interface Tls {
  readonly files: TlsFiles
  /** What was read of them. */
  readonly pair: TlsPair
  /** How often the files are looked at. Default: 5,000. */
  readonly lookMs?: number | undefined
}

export interface Listening {
  readonly port: number
  readonly url: string
  /** Takes no more connections, and closes idle ones. */
  stop(): void
  /** Resolves when no connection is left. Cuts the rest after that time. */
  close(timeoutMs: number): Promise<void>
}

export async function listen(app: NodeApp, { port, host, tls, h2c, ...given }: ListenOptions): Promise<Listening> {
  const { limits, strangers, readers, pipelines } = app
  const { now, monotonic } = clocksOf(given)
  const beyond = new WeakSet<Duplex>()
  let connections = 0
  /** Connections that never sent anything. Node does not count them as idle, and would wait for them. */
  const silent = new Set<Socket>()
  const disconnected = () => connections--
  /** Checks the connection and the raw headers, which the app cannot see. */
  const refused = (request: Incoming): Response | undefined => {
    const { rawHeaders, url = '/' } = request
    if (beyond.has(socketOf(request))) {
      const error = new UampError('overloaded', 'Too many connections', { details: { retry_after: 1 } })
      return app.refusalAt(url)(error, { headers: { connection: 'close' } })
    }
    const headers = request instanceof Http2Request ? request.fields : rawHeaders
    if (headers.length > limits.headerCount * 2) {
      const error = new UampError('too_large', `A request may have at most ${limits.headerCount} headers`)
      return app.refusalAt(url)(error, { status: 431 })
    }
    // Node bounds those of HTTP/1.1 itself.
    if (request instanceof Http2Request && request.headerBytes > limits.headerBytes) return unparsed('HPE_HEADER_OVERFLOW')
    return undefined
  }
  const listener = getRequestListener((request, env) => refused(env.incoming as Incoming) ?? app.fetch(request, env), {
    errorHandler: (error) => {
      const known = error instanceof Error && error.name === 'RequestError'
      if (!known) app.log('error', 'A request failed', { error })
      return errorResponse(known ? new UampError('invalid_request', error.message) : UampError.from(error))
    },
  })
  const options: ServerOptions<typeof IncomingMessage, typeof PlainResponse> = {
    ServerResponse: PlainResponse,
    maxHeaderSize: limits.headerBytes,
    headersTimeout: limits.headersTimeoutMs,
    requestTimeout: limits.requestTimeoutMs,
    connectionsCheckingInterval: Math.max(10, Math.min(1_000, Math.ceil(limits.headersTimeoutMs / 4))),
    // Nothing else would notice that the reader of a stream has vanished.
    keepAlive: true,
    keepAliveInitialDelay: KEEP_ALIVE_MS,
  }
  const handle = (request: IncomingMessage, response: PlainResponse): void => {
    silent.delete(request.socket)
    if (!pipelines.admit(request, response)) return
    void listener(request, response)
  }
  const sessions = new Sessions(app, {
    monotonic,
    handle(request, answer) {
      if (request.method !== 'CONNECT') return void listener(request, answer)
      const refusal = refused(request)
      if (refusal) void refuseRequest(answer, refusal)
      else app.handleConnect(request, answer)
    },
  })
  const server = tls
    ? secureServer({
        pair: tls.pair,
        handshakeTimeout: limits.headersTimeoutMs,
        http: options as ServerOptions<never, typeof PlainResponse>,
      })
    : createServer(options)
  server.on('request', handle)
  server.maxConnections = limits.connections + ANSWERED_BEYOND
  const http1 = tls ? takeConnections(server, 'secureConnection') : h2c ? takeConnections(server, 'connection') : undefined
  const http2 = (socket: Socket): void => {
    silent.delete(socket)
    readers.delete(socket)
    sessions.adopt(socket)
  }
  /** A connection on which requests may come. */
  const open = (socket: Socket, isBeyond: boolean): void => {
    if (isBeyond) beyond.add(socket)
    else strangers.add(socket)
    silent.add(socket)
    readers.add(socket)
    socket.once('close', () => forget(socket))
  }
  const forget = (socket: Socket): void => {
    silent.delete(socket)
    strangers.delete(socket)
    readers.delete(socket)
  }
  const handshakes = new Handshakes()
  server.on('connection', (socket: Socket) => {
    open(socket, ++connections > limits.connections && !strangers.evict())
    socket.once('close', disconnected)
    if (tls) handshakes.add(socket)
    else if (http1) byPreface(socket, { http1, http2, timeoutMs: limits.headersTimeoutMs })
  })
  const clients = new ClientCertificates({ log: app.log, monotonic })
  server.on('secureConnection', (socket: TLSSocket) => {
    const raw = handshakes.over(socket)
    if (!raw || !clients.admit(socket)) return void socket.destroy()
    forget(raw)
    open(socket, beyond.has(raw))
    if (socket.alpnProtocol === 'h2') http2(socket)
    else http1?.(socket)
  })
  const reload = tls && new TlsReload(tls.files, { ...tls, log: app.log, now, use: (pair) => (server as TlsServer).setSecureContext(pair) })
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    silent.delete(request.socket)
    // A WebSocket is checked by its own class.
    readers.delete(socket)
    const refusal = refused(request)
    if (refusal && !isAnswering(socket)) void refuse(socket, refusal)
    else app.handleUpgrade(request, socket, head)
  })
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) => {
    if (error.code === 'ECONNRESET' || !socket.writable || isInAnswer(socket) || isHandshake(socket)) socket.destroy()
    else void refuse(socket, unparsed(error.code))
  })

  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => reject(explained(error, { port, host })))
    try {
      server.listen({ port, host, backlog: BACKLOG }, resolve)
    } catch (error) {
      reject(explained(error as NodeJS.ErrnoException, { port, host }))
    }
  })
  server.on('error', (error) => app.log('error', 'The server failed', { error }))

  const address = server.address()
  const bound = typeof address === 'object' && address !== null ? address.port : port
  let closed: Promise<void> | undefined
  const stop = () => {
    reload?.close()
    sessions.stop()
    return (closed ??= new Promise((resolve) => server.close(() => resolve())))
  }
  return {
    port: bound,
    url: `${tls ? 'https' : 'http'}://${reachable(host)}:${bound}`,
    stop: () => void stop(),
    async close(timeoutMs) {
      // Connections become idle one by one, without an event.
      const idle = setInterval(() => server.closeIdleConnections(), IDLE_CHECK_MS)
      for (const socket of silent) socket.destroy()
      let timer: NodeJS.Timeout | undefined
      const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, timeoutMs)))
      await Promise.race([stop(), late])
      clearTimeout(timer)
      clearInterval(idle)
      server.closeAllConnections()
      sessions.cut()
    },
  }
}

/** Throws if nobody can listen there now. A server asks before it makes its data folder, which would be left behind. */
export async function checkPort({ port, host }: Address): Promise<void> {
  const server = createPlainServer()
  await new Promise<void>((resolve, reject) => {
    const fail = (error: unknown): void => reject(explained(error as NodeJS.ErrnoException, { port, host }))
    server.once('error', fail)
    try {
      server.listen({ port, host }, () => server.close(() => resolve()))
    } catch (error) {
      fail(error)
    }
  })
}

/** A handshake of TLS has failed, so nobody could read an answer. */
function isHandshake(socket: Duplex): boolean {
  return 'encrypted' in socket && (socket as TLSSocket).getProtocol() === null
}

const NO_H2C = 'This server speaks HTTP/2 only over TLS: start it with a certificate, or for tests on this machine with --insecure-dev'

function unparsed(code: string | undefined): Response {
  if (code === 'HPE_HEADER_OVERFLOW') return errorResponse(new UampError('too_large', 'The headers are too large'), { status: 431 })
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return errorResponse(new UampError('timeout', 'The request took too long'), { status: 408 })
  if (code === 'HPE_PAUSED_H2_UPGRADE') return errorResponse(new UampError('invalid_request', NO_H2C))
  return errorResponse(new UampError('invalid_request', 'This server does not understand this as HTTP'))
}

function explained(cause: NodeJS.ErrnoException, { port, host }: Address): UampError {
  switch (cause.code) {
    case 'EADDRINUSE':
      return new UampError('conflict', `Port ${port} is in use: stop the program that has it, or choose another port`, { cause })
    case 'EACCES':
      return new UampError('forbidden', `Port ${port} needs more rights than this process has: choose one above 1023`, { cause })
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
    case 'EINVAL':
      return new UampError('invalid_request', `This machine has no address "${host}": try 127.0.0.1, or 0.0.0.0 for all of them`, { cause })
    case 'ERR_SOCKET_BAD_PORT':
      return new UampError('invalid_request', `${port} is not a port: choose one from 1 to 65535, or 0 for any that is free`, { cause })
    default:
      return new UampError('internal', `The server cannot listen on ${host}:${port}: ${cause.message}`, { cause })
  }
}

/** An address that a client on this machine can use. */
function reachable(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1'
  if (host === '::') return '[::1]'
  return host.includes(':') ? `[${host}]` : host
}
