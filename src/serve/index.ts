import type { IncomingMessage, ServerResponse } from 'node:http'
import { isIP } from 'node:net'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { getRequestListener } from '@hono/node-server'
import type { Hono } from 'hono'
import { staticTokens } from '../auth/static-tokens.ts'
import { AgentRegistry } from '../core/engine/agent-registry.ts'
import { checkKey } from '../core/durable/check-key.ts'
import { createGateway } from '../core/engine/gateway.ts'
import type { AgentGateway } from '../core/engine/gateway-options.ts'
import type { CoreLimits } from '../core/basics/limits.ts'
import type { AgentPort } from '../core/ports/agent.ts'
import type { Blobs } from '../core/ports/blobs.ts'
import type { HttpClient } from '../core/ports/http.ts'
import type { Keys } from '../core/ports/keys.ts'
import type { Store } from '../core/ports/store.ts'
import type { Logger, Transport } from '../core/ports/transport.ts'
import { redactedLog } from '../core/secrets/redaction.ts'
import { Secrets, secretsOf } from '../core/secrets/secrets.ts'
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
import { trustedProxies } from '../server/node/trusted-proxies.ts'
import { fileBlobs } from '../stores/file-blobs.ts'
import { fileKeys, passingKeys } from '../stores/file-keys.ts'
import { memoryBlobs } from '../stores/memory-blobs.ts'
import { memoryStore } from '../stores/memory.ts'
import { checkFolder } from '../stores/sqlite-folder.ts'
import { errorCode, explain } from '../stores/sqlite-schema.ts'
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
import { serveControl } from './storage/control.ts'
import { storageOf } from './storage/index.ts'
import { makeFolder } from './make-folder.ts'

export type { A2aOptions } from '../transports/a2a/index.ts'
export type { OmniaOptions } from '../transports/omnia/index.ts'
export type { CoreLimits } from '../core/basics/limits.ts'
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
  /**
   * Addresses (`10.0.0.7`) and networks (`10.0.0.0/8`) of the proxies before this server. What they say of a request (`Forwarded`,
   * `X-Forwarded-*`) is believed; what others say is not.
   */
  readonly trustProxy?: readonly string[]
  /**
   * Names by which clients call this server, beside `localhost`, the name in `publicUrl`, and `host` if that is a name; addresses
   * always pass. A request for any other name is refused, as a web page could have pointed its own at this machine. `*`: any name.
   */
  readonly allowedHosts?: readonly string[]
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
  readonly log?: Logger
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

/** What is kept without a folder, unless `storedBytes` says otherwise: beyond it the oldest sessions go. */
const MEMORY_BYTES = 512 * 1024 * 1024

/** How long clients have to take leave before they are cut. */
const LEAVE_MS = 2_000
const LAST_TURNS = 10
/** Connections to one host that agents and tools may have: the answers of an agent elsewhere are long, and each holds one. */
const AGENT_CONNECTIONS = 256

/** Puts agents on a server: `await serve(agent, { port: 8787 })`. */
export async function serve(agents: AgentPort | readonly AgentPort[], options: ServeOptions = {}): Promise<RunningServer> {
  const { port = 8787, host = '127.0.0.1' } = options
  const path = databasePath(dataOf(options))
  if (path !== undefined) await checkFolder(path)
  const parts = assemble(agents, options)
  try {
    await parts.started.catch((thrown: unknown) => Promise.reject(path === undefined ? thrown : unstarted(thrown, path)))
    const listening = await listen(parts.node, { port, host })
    let closing: Promise<void> | undefined
    const close = (how: CloseOptions = {}) => (closing ??= shutDown(parts, how, listening))
    return { ...agentApp(parts), url: listening.url, port: listening.port, close }
  } catch (error) {
    parts.closing.abort()
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
  const handleRequest = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    if (!node.pipelines.admit(request, response)) return
    withoutSniffing(response)
    await listener(request, response)
  }
  return { app: node.app, handleRequest, handleUpgrade: node.handleUpgrade, agents, gateway }
}

function assemble(given: AgentPort | readonly AgentPort[], options: AgentAppOptions): Parts {
  const { host = '127.0.0.1', tokens = {}, origins, limits, transports = [], defaultAgent, allowedHosts = [] } = options
  const loopback = isLoopback(host)
  const hasTokens = Object.keys(tokens).length > 0
  const anonymous = options.allowAnonymous ?? !hasTokens
  if (!loopback && !hasTokens && options.allowAnonymous !== true) {
    throw new UampError('invalid_request', `${host} can be reached from other machines: give a token, or allow anonymous callers`)
  }
  const access = staticTokens({ tokens, anonymous })
  const secrets = new Secrets([...Object.values(tokens), ...privateKeys(options.a2a), ...secretsOf({ program: { env: process.env } })])
  const agents = new AgentRegistry()
  // Also those that come later: a config is read again, a key is changed.
  agents.onChange((name) => secrets.add(agents.get(name)?.secrets ?? []))
  for (const agent of 'run' in given ? [given] : given) agents.add(agent)
  const log = redactedLog(options.log ?? pinoLog(), secrets)
  const a2aOptions = { ...(limits?.sessionTtlMs !== undefined && { taskTtlMs: limits.sessionTtlMs }), ...options.a2a }
  const omniaLimits = { ...(limits?.messageBytes !== undefined && { messageBytes: limits.messageBytes }), ...options.omnia?.limits }
  // Before anything is opened: it looks at its options.
  const data = dataOf(options)
  const blobs = openBlobs(data)
  const omniaTransport = omnia({ blobs, ...options.omnia, limits: omniaLimits })
  const keys = openKeys(data)
  const coreLimits = { ...(data === 'memory' && { storedBytes: MEMORY_BYTES }), ...limits }
  const store = openStore(data, { log, mostBytes: 2 * (coreLimits.storedBytes ?? MEMORY_BYTES) })
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
  const gateway = createGateway({ agents, store, log, meter: metrics, http, secrets, keys, limits: coreLimits })
  metrics.gauges = gateway
  if (data !== 'memory') {
    const storage = storageOf({
      store,
      blobs: options.omnia?.blobs ?? blobs,
      release: (tenant, session) => gateway.unload(tenant, session),
    })
    const stop = serveControl(data, storage, (error) => log('warn', '`uamp store` cannot ask this server', { error }))
    closing.signal.addEventListener('abort', stop, { once: true })
  }
  const started = checkKey(store, keys).then(() => gateway.start())
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
      agUi(limits?.sessionTtlMs === undefined ? {} : { runTtlMs: limits.sessionTtlMs }),
      acp({ connectTools, version: packageVersion() }),
      omniaTransport,
    ],
    access,
    log,
    secrets,
    keys,
    loopback,
    started,
    ...(origins && { origins }),
    ...(limits && { limits }),
    http,
    outbound,
    closing: closing.signal,
    ...(defaultAgent !== undefined && { defaultAgent }),
    ...(options.publicUrl !== undefined && { publicUrl: options.publicUrl }),
    ...(options.trustProxy !== undefined && { trusts: trustedProxies(options.trustProxy) }),
    allowedHosts: isIP(host) === 0 ? [...allowedHosts, host] : allowedHosts,
  })
  return { node, agents, gateway, store, http, outbound, closing, started }
}

/** What SQLite says of a page that it cannot read names neither the file nor what to do. */
function unstarted(thrown: unknown, path: string): unknown {
  const cause = thrown instanceof UampError ? thrown.cause : thrown
  return errorCode(cause)?.startsWith('SQLITE') ? explain(cause, path) : thrown
}

function dataOf({ data }: AgentAppOptions): string {
  return data || process.env['UAMP_DATA'] || '.uamp'
}

/** Undefined: everything is kept in memory. */
function databasePath(data: string): string | undefined {
  return data === 'memory' ? undefined : join(data, 'uamp.db')
}

/** `mostBytes`: of one in memory, which is swept once in a while. */
function openStore(data: string, { log, mostBytes }: { readonly log: Logger; readonly mostBytes: number }): Store {
  const path = databasePath(data)
  if (path === undefined) return memoryStore({ mostBytes })
  return sqliteStore({
    path,
    onError: (error) => log('error', 'The store could not tidy up', { error }),
    onLoss: (loss) => log('error', `Data is missing: ${loss}`),
  })
}

function openKeys(data: string): Keys {
  if (data === 'memory') return passingKeys()
  makeFolder(data)
  return fileKeys({ path: join(data, 'uamp.key'), key: process.env['UAMP_KEY'] })
}

function openBlobs(data: string): Blobs {
  return data === 'memory' ? memoryBlobs() : fileBlobs({ path: join(data, 'blobs') })
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127\.\d+\.\d+\.\d+$/.test(host)
}

/** The private part of JWKs that sign agent cards. */
function privateKeys({ signingKeys = [] }: A2aOptions = {}): string[] {
  return signingKeys.flatMap(({ key }) => ('kty' in key ? [key.d, key.p, key.q, key.k] : [])).flatMap((part) => part ?? [])
}
