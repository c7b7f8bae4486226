import type { IncomingMessage, ServerResponse } from 'node:http'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { getRequestListener } from '@hono/node-server'
import type { Hono } from 'hono'
import { staticTokens } from '../auth/static-tokens.ts'
import { AgentRegistry } from '../core/agent-registry.ts'
import { createGateway } from '../core/gateway.ts'
import type { AgentGateway } from '../core/gateway.ts'
import type { CoreLimits } from '../core/limits.ts'
import type { AgentPort } from '../core/ports/agent.ts'
import type { Blobs } from '../core/ports/blobs.ts'
import type { HttpClient } from '../core/ports/http.ts'
import type { Store } from '../core/ports/store.ts'
import type { Log, Transport } from '../core/ports/transport.ts'
import { UampError } from '../protocol/errors.ts'
import type { Limits } from '../server/limits.ts'
import { Metrics } from '../server/metrics.ts'
import { createNodeApp } from '../server/node/app.ts'
import type { NodeApp } from '../server/node/app.ts'
import { guardedHttp } from '../server/node/guarded-http.ts'
import { nodeHttp } from '../server/node/http-client.ts'
import { listen } from '../server/node/listen.ts'
import type { Listening } from '../server/node/listen.ts'
import { withoutSniffing } from '../server/node/nosniff.ts'
import { pinoLog } from '../server/node/log.ts'
import { fileBlobs } from '../stores/file-blobs.ts'
import { memoryBlobs } from '../stores/memory-blobs.ts'
import { memoryStore } from '../stores/memory.ts'
import { sqliteStore } from '../stores/sqlite.ts'
import { a2a, type A2aOptions } from '../transports/a2a/index.ts'
import { acp } from '../transports/acp/index.ts'
import { agUi } from '../transports/ag-ui/index.ts'
import { completions } from '../transports/completions/index.ts'
import { events } from '../transports/events/index.ts'
import { omnia, type OmniaOptions } from '../transports/omnia/index.ts'
import { realtime } from '../transports/realtime/index.ts'
import { responses } from '../transports/responses/index.ts'
import { connectTools } from './client-tools.ts'
import { packageVersion } from './package-version.ts'

export type { A2aOptions } from '../transports/a2a/index.ts'
export type { OmniaOptions } from '../transports/omnia/index.ts'
export type { CoreLimits } from '../core/limits.ts'
export type { Limits } from '../server/limits.ts'

export interface AgentAppOptions {
  /** The address that is listened on. Default: 127.0.0.1. It decides whether a token is needed, and which web pages may call. */
  readonly host?: string
  /** The folder that sessions are kept in, or `memory`. Default: the environment's `UAMP_DATA`, else `./.uamp`. */
  readonly data?: string
  /** Name to secret; each name is a principal of its own. */
  readonly tokens?: Readonly<Record<string, string>>
  /** Whether callers without a token are let in. Default: only on the loopback address, and only if there are no tokens. */
  readonly allowAnonymous?: boolean
  /** Origins of web pages that may call, besides those of this machine when it alone is listened to. */
  readonly origins?: readonly string[]
  /** Where clients find this server, for what is told them as a URL: `https://example.com/prefix`. Default: as the request says. */
  readonly publicUrl?: string
  /** Whether what a proxy says of a request (`Forwarded`, `X-Forwarded-*`) is believed. Only where nobody can get past the proxy. */
  readonly trustProxy?: boolean
  /**
   * Calls to URLs that clients name, such as webhooks, go to the public internet only, by https. `allow`: hosts (`localhost:9000`) and
   * networks (`10.0.0.0/8`) that may be called all the same.
   */
  readonly outbound?: { readonly allow?: readonly string[] }
  readonly limits?: Partial<Limits & CoreLimits>
  /** Agent cards and push notifications of A2A. */
  readonly a2a?: A2aOptions
  /** Tools that Omnia's clients have, and what they are shown and may send. */
  readonly omnia?: OmniaOptions
  /** Mounted before the built-in ones. */
  readonly transports?: readonly Transport[]
  /** The agent at `/`. Default: the only one, else `demo`. */
  readonly defaultAgent?: string
  /** Default: JSON lines on standard error. */
  readonly log?: Log
}

export interface ServeOptions extends AgentAppOptions {
  /** Default: 8787. 0: any that is free. */
  readonly port?: number
}

export interface CloseOptions {
  /** How long running responses may go on. Default: 5,000. */
  readonly graceMs?: number
}

export interface AgentApp {
  /** Routes that are added to it win over the mounted ones. */
  readonly app: Hono
  /** For the requests of a `node:http` server. */
  handleRequest(request: IncomingMessage, response: ServerResponse): Promise<void>
  /** For the `upgrade` event of a `node:http` server. */
  handleUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void
  /** Add and remove agents at any time. */
  readonly agents: AgentRegistry
  readonly gateway: AgentGateway
  close(options?: CloseOptions): Promise<void>
}

export interface RunningServer extends AgentApp {
  readonly url: string
  readonly port: number
}

/** How long clients have to take leave before they are cut. */
const LEAVE_MS = 2_000
const LAST_TURNS = 10
/** Connections to one host that agents and tools may have: the answers of an agent elsewhere are long, and each holds one. */
const AGENT_CONNECTIONS = 256

/** Puts agents on a server: `await serve(agent, { port: 8787 })`. */
export async function serve(agents: AgentPort | readonly AgentPort[], options: ServeOptions = {}): Promise<RunningServer> {
  const { port = 8787, host = '127.0.0.1' } = options
  const parts = assemble(agents, options)
  try {
    await parts.started
    const listening = await listen(parts.node, { port, host })
    let closing: Promise<void> | undefined
    const close = (how: CloseOptions = {}) => (closing ??= shutDown(parts, how, listening))
    return { ...agentApp(parts), url: listening.url, port: listening.port, close }
  } catch (error) {
    await parts.gateway.close()
    await parts.store.close()
    throw error
  }
}

/** The same for those who have a `node:http` server of their own: mount `app`, and hand it the upgrades. */
export function createAgentApp(agents: AgentPort | readonly AgentPort[], options: AgentAppOptions = {}): AgentApp {
  const parts = assemble(agents, options)
  let closing: Promise<void> | undefined
  return { ...agentApp(parts), close: (how = {}) => (closing ??= shutDown(parts, how)) }
}

interface Parts {
  readonly node: NodeApp
  readonly agents: AgentRegistry
  readonly gateway: AgentGateway
  readonly store: Store
  readonly http: HttpClient & { close(): void }
  readonly outbound: ReturnType<typeof guardedHttp>
  readonly closing: AbortController
  readonly started: Promise<void>
}

async function shutDown(parts: Parts, { graceMs = 5_000 }: CloseOptions, listening?: Listening): Promise<void> {
  const { node, gateway, store, http, outbound, closing } = parts
  node.drain()
  listening?.stop()
  await gateway.drain(graceMs)
  // Ends the logs; their readers then have a few turns of the event loop to write what is left of them.
  await gateway.close()
  for (let turn = 0; turn < LAST_TURNS; turn++) await nextTurn()
  await node.closeConnections(LEAVE_MS)
  await listening?.close(LEAVE_MS)
  closing.abort()
  outbound.close()
  http.close()
  await store.close()
}

function agentApp({ node, agents, gateway }: Parts): Omit<AgentApp, 'close'> {
  const listener = getRequestListener(node.fetch)
  const handleRequest = (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    withoutSniffing(response)
    return listener(request, response)
  }
  return { app: node.app, handleRequest, handleUpgrade: node.handleUpgrade, agents, gateway }
}

function assemble(given: AgentPort | readonly AgentPort[], options: AgentAppOptions): Parts {
  const { host = '127.0.0.1', tokens = {}, origins, limits, transports = [], defaultAgent } = options
  const loopback = isLoopback(host)
  const hasTokens = Object.keys(tokens).length > 0
  const anonymous = options.allowAnonymous ?? !hasTokens
  if (!loopback && !hasTokens && options.allowAnonymous !== true) {
    throw new UampError('invalid_request', `${host} can be reached from other machines: give a token, or allow anonymous callers`)
  }
  const access = staticTokens({ tokens, anonymous })
  const agents = new AgentRegistry()
  for (const agent of 'run' in given ? [given] : given) agents.add(agent)
  const log = options.log ?? pinoLog()
  const a2aOptions = { ...(limits?.sessionTtlMs !== undefined && { taskTtlMs: limits.sessionTtlMs }), ...options.a2a }
  const omniaLimits = { ...(limits?.messageBytes !== undefined && { messageBytes: limits.messageBytes }), ...options.omnia?.limits }
  // Before anything is opened: it looks at its options.
  const omniaTransport = omnia({ blobs: openBlobs(options.data), ...options.omnia, limits: omniaLimits })
  const store = openStore(options.data, log)
  const metrics = new Metrics()
  const own = nodeHttp()
  const outbound = guardedHttp(options.outbound)
  const guarded = guardedHttp({ ...options.outbound, perHost: AGENT_CONNECTIONS })
  const http = {
    request: own.request,
    guarded,
    close: () => {
      own.close()
      guarded.close()
    },
  }
  const closing = new AbortController()
  const gateway = createGateway({ agents, store, log, meter: metrics, http, ...(limits && { limits }) })
  metrics.gauges = gateway
  const started = gateway.start()
  const node = createNodeApp({
    gateway,
    metrics,
    store,
    agents,
    transports: [
      ...transports,
      events(),
      completions(),
      responses(),
      realtime(),
      a2a(a2aOptions),
      agUi(),
      acp({ connectTools, version: packageVersion() }),
      omniaTransport,
    ],
    access,
    log,
    loopback,
    started,
    ...(origins && { origins }),
    ...(limits && { limits }),
    http,
    outbound,
    closing: closing.signal,
    ...(defaultAgent !== undefined && { defaultAgent }),
    ...(options.publicUrl !== undefined && { publicUrl: options.publicUrl }),
    ...(options.trustProxy !== undefined && { trustProxy: options.trustProxy }),
  })
  return { node, agents, gateway, store, http, outbound, closing, started }
}

function openStore(data = process.env['UAMP_DATA'] ?? '.uamp', log: Log): Store {
  if (data === 'memory') return memoryStore()
  return sqliteStore({ path: join(data, 'uamp.db'), onError: (error) => log('error', 'The store could not tidy up', { error }) })
}

function openBlobs(data = process.env['UAMP_DATA'] ?? '.uamp'): Blobs {
  return data === 'memory' ? memoryBlobs() : fileBlobs({ path: join(data, 'blobs') })
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127\.\d+\.\d+\.\d+$/.test(host)
}
