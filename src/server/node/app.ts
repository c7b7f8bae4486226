import type { IncomingMessage } from 'node:http'
import { ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import { HOPS_HEADER } from '../../core/basics/hops.ts'
import { clocksOf } from '../../core/basics/time.ts'
import type { Streamed } from '../../core/ports/transport.ts'
import { createApp } from '../app.ts'
import type { AppOptions, ServerApp, StreamedBy } from '../app.ts'
import { UNKNOWN_CALLER } from '../admission.ts'
import type { BodySource } from '../bodies.ts'
import type { Served } from '../requests.ts'
import { StreamWriter, tellId, type Answer } from './answers.ts'
import { bodyText } from './body.ts'
import { incomingOf, NodeCaller, peerOf, socketOf, withoutForwarded } from './caller.ts'
import { isAnswering, Pipelines, Readers, Strangers } from './connections.ts'
import { Http2Answer } from './http2/answer.ts'
import type { Http2Request } from './http2/request.ts'
import { Lingering } from './lingering.ts'
import { prometheus } from './prometheus.ts'
import { Sockets } from './sockets.ts'
import { Sweeper } from './sweeper.ts'

export interface NodeApp extends ServerApp {
  /** Connections without valid credentials. The listener adds them. */
  readonly strangers: Strangers
  /** Connections that may leave their answers unread. The listener adds them. */
  readonly readers: Readers
  /** Answers that wait behind others on their connection. */
  readonly pipelines: Pipelines
  /** Looks regularly at what has to be bounded in time. */
  readonly sweeper: Sweeper
  /** For a WebSocket over HTTP/2 (RFC 8441). */
  handleConnect(request: Http2Request, answer: Http2Answer): void
  /** For the `upgrade` event of a `node:http` server. */
  handleUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void
  /** Closes all sockets with 1001, and ends all streams. Cuts the rest after that time. */
  closeConnections(timeoutMs: number): Promise<void>
}

export interface NodeAppOptions extends Omit<AppOptions, 'stream' | 'exposition' | 'caller' | 'bodies'> {
  /** How long a WebSocket's peer has to answer a close. Default: 10,000. */
  readonly closeTimeoutMs?: number
  /** `clientCertHeader` of the callers. */
  readonly clientCertHeader?: boolean
}

export function createNodeApp(options: NodeAppOptions): NodeApp {
  const { log, trusts, gateway } = options
  const { monotonic } = clocksOf(options)
  const strangers = new Strangers()
  const pipelines = new Pipelines(strangers)
  const callers = { trusts, strangers, clientCertHeader: options.clientCertHeader }
  const streams = new Set<StreamWriter>()
  const stream = (env: unknown, streamed: Streamed, { trace, watch }: StreamedBy): Response | undefined => {
    const response = outgoing(env)
    if (response === undefined) return undefined
    const writer = new StreamWriter(response, streamed, { limits, sweeper, lingering, log, trace })
    streams.add(writer)
    const unwatch = watch((error) => writer.fail(error))
    const giveBack = readers.leave(response, writer)
    void writer.run().then(() => {
      streams.delete(writer)
      unwatch()
      if (!writer.lingers) giveBack()
    })
    return RESPONSE_ALREADY_SENT
  }
  const caller = ({ headers }: Request, env: unknown) => {
    const incoming = incomingOf(env)
    if (!incoming?.socket) return UNKNOWN_CALLER
    return new NodeCaller({ socket: socketOf(incoming), headers: () => headers, answer: outgoing(env) }, callers)
  }
  const bodies: BodySource = {
    text: (env, count) => bodyText(incomingOf(env), count),
    whenOver: (env, then) => void (outgoing(env) ?? incomingOf(env))?.once('close', then),
  }
  const server = createApp({ ...options, stream, caller, exposition: prometheus, bodies })
  const { limits } = server
  const shortest = Math.min(limits.pingIntervalMs, limits.pongTimeoutMs, limits.stallMs, limits.heartbeatMs)
  const sweeper = new Sweeper(Math.max(10, Math.min(1_000, shortest / 5)))
  const readers = new Readers({ sweeper, stallMs: limits.stallMs, gateway, strangers, pipelines })
  const lingering = new Lingering()
  const sockets = new Sockets({ server, sweeper, lingering, monotonic, callers, closeTimeoutMs: options.closeTimeoutMs })

  const { requests } = server
  /** Its end is that of the answer, which may be a long stream. Undefined: nobody says when that is sent. */
  const begin = ({ method, url }: Request, env: unknown): Served | undefined => {
    const response = outgoing(env)
    if (!response) return undefined
    const headers = response.req.headers as Readonly<Record<string, string | undefined>>
    const { 'x-request-id': requestId, traceparent, tracestate, [HOPS_HEADER]: hops } = headers
    const served = requests.begin({ method, url, requestId, traceparent, tracestate, hops })
    tellId(response, served.trace.requestId)
    if (requests.needsEnd) response.once('close', () => requests.over(served, response.statusCode))
    return served
  }

  return {
    ...server,
    strangers,
    readers,
    pipelines,
    sweeper,
    fetch: (request, env) => {
      const incoming = incomingOf(env)
      if (trusts && !(incoming?.socket && trusts(peerOf(socketOf(incoming))))) withoutForwarded(request.headers)
      return server.fetch(request, env, begin(request, env))
    },
    handleUpgrade: (request, socket, head) => {
      // An answer is still being written on this connection.
      if (isAnswering(socket)) {
        socket.destroy()
        return
      }
      sockets.upgrade(request, socket, head).catch((error: unknown) => {
        log('error', 'An upgrade failed', { error })
        socket.destroy()
      })
    },
    handleConnect: (request, answer) => {
      sockets.connect(request, answer).catch((error: unknown) => {
        log('error', 'An upgrade failed', { error })
        answer.destroy()
      })
    },
    async closeConnections(timeoutMs) {
      for (const writer of streams) writer.end()
      await sockets.close(timeoutMs)
    },
  }
}

/** The answer that `@hono/node-server` passes to the app. Those of a user's own HTTP/2 server use the web stream. */
function outgoing(env: unknown): Answer | undefined {
  const { outgoing: response } = (env ?? {}) as { outgoing?: unknown }
  return response instanceof ServerResponse || response instanceof Http2Answer ? response : undefined
}
