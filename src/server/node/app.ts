import type { IncomingMessage } from 'node:http'
import { ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import { clocksOf } from '../../core/clocks.ts'
import type { Streamed } from '../../core/ports/transport.ts'
import { createApp } from '../app.ts'
import type { AppOptions, ServerApp } from '../app.ts'
import { prometheus } from './prometheus.ts'
import { Sockets } from './sockets.ts'
import { StreamWriter } from './streamed.ts'
import { Sweeper } from './sweeper.ts'

export interface NodeApp extends ServerApp {
  /** For the `upgrade` event of a `node:http` server. */
  handleUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void
  /** Closes all sockets with 1001 and ends all streams; what is still there after the time is cut. */
  closeConnections(timeoutMs: number): Promise<void>
}

export function createNodeApp(options: Omit<AppOptions, 'stream' | 'exposition'>): NodeApp {
  const { log } = options
  const { monotonic } = clocksOf(options)
  const streams = new Set<StreamWriter>()
  const stream = (env: unknown, streamed: Streamed): Response | undefined => {
    const response = outgoing(env)
    if (response === undefined) return undefined
    const writer = new StreamWriter(response, streamed, { limits, sweeper, log })
    streams.add(writer)
    void writer.run().then(() => streams.delete(writer))
    return RESPONSE_ALREADY_SENT
  }
  const server = createApp({ ...options, stream, exposition: prometheus })
  const { limits } = server
  const shortest = Math.min(limits.pingIntervalMs, limits.pongTimeoutMs, limits.stallMs, limits.heartbeatMs)
  const sweeper = new Sweeper(Math.max(10, Math.min(1_000, shortest / 5)))
  const sockets = new Sockets({ server, sweeper, monotonic })

  return {
    ...server,
    handleUpgrade: (request, socket, head) => {
      sockets.upgrade(request, socket, head).catch((error: unknown) => {
        log('error', 'An upgrade failed', { error })
        socket.destroy()
      })
    },
    async closeConnections(timeoutMs) {
      for (const writer of streams) writer.end()
      await sockets.close(timeoutMs)
    },
  }
}

/** The `ServerResponse` that `@hono/node-server` hands to the app; an HTTP/2 response is left to the web stream. */
function outgoing(env: unknown): ServerResponse | undefined {
  const { outgoing: response } = (env ?? {}) as { outgoing?: unknown }
  return response instanceof ServerResponse ? response : undefined
}
