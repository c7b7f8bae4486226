/** A server for runtimes that have `fetch` and no `node:http`: Bun, Deno, Workers. Imports nothing of Node. */
import type { Hono } from 'hono'
import { staticTokens, type Grants } from '../auth/static-tokens.ts'
import type { CoreLimits } from '../core/basics/limits.ts'
import { AgentRegistry } from '../core/engine/agent-registry.ts'
import type { AgentGateway } from '../core/engine/gateway-options.ts'
import { createGateway } from '../core/engine/gateway.ts'
import type { Access } from '../core/ports/access.ts'
import type { AgentPort } from '../core/ports/agent.ts'
import type { Store } from '../core/ports/store.ts'
import type { Logger, Transport } from '../core/ports/transport.ts'
import { redactedLog } from '../core/secrets/redaction.ts'
import { Secrets } from '../core/secrets/secrets.ts'
import { UampError } from '../protocol/errors.ts'
import { createApp } from '../server/app.ts'
import type { Limits } from '../server/limits.ts'
import { Metrics } from '../server/metrics.ts'
import { memoryStore } from '../stores/memory.ts'
import { a2a, type A2aOptions } from '../transports/a2a/index.ts'
import { agUi } from '../transports/ag-ui/index.ts'
import { catalog, completions } from '../transports/completions/index.ts'
import { events } from '../transports/events/index.ts'
import { responses } from '../transports/responses/index.ts'
import { present } from '../wire/fields.ts'

/** The most that the default store keeps. */
const STORED_BYTES = 64 * 1024 * 1024

export interface WebAppOptions {
  /** Secrets by name. Each name is a principal of its own. */
  readonly tokens?: Readonly<Record<string, string>>
  readonly grants?: Grants
  /** Decides who may call, instead of `tokens`, `grants` and `allowAnonymous`. */
  readonly access?: Access
  /** Admits callers without a token. Default: none. */
  readonly allowAnonymous?: boolean
  /** Origins of web pages that may call. */
  readonly origins?: readonly string[]
  /** The path that the server is mounted under, such as `/ai`. */
  readonly prefix?: string
  /** The server's address for clients. Default: the address of the request. */
  readonly publicUrl?: string
  /** Host names that the server answers to, beside `localhost`, addresses and the name in `publicUrl`. `*`: any name. */
  readonly allowedHosts?: readonly string[]
  readonly limits?: Partial<Limits & CoreLimits>
  readonly a2a?: A2aOptions
  /** Mounted before the built-in ones. */
  readonly transports?: readonly Transport[]
  readonly defaultAgent?: string
  /** Default: in memory, which ends with the process. */
  readonly store?: Store
  /** Default: JSON lines, by `console.error`. */
  readonly log?: Logger
  /** One log line for each request, but for those of probes. Default: false. */
  readonly accessLog?: boolean
}

export interface WebApp {
  /** Routes that are added to it win over the mounted ones. */
  readonly app: Hono
  fetch(request: Request): Response | Promise<Response>
  /** Add and remove agents at any time. */
  readonly agents: AgentRegistry
  readonly gateway: AgentGateway
  close(options?: { readonly graceMs?: number }): Promise<void>
}

/** Offers agents by all that needs no WebSocket: UAMP events over HTTP and SSE, Chat Completions and Responses, A2A, AG-UI. */
export function createWebApp(given: AgentPort | readonly AgentPort[], options: WebAppOptions = {}): WebApp {
  const {
    tokens = {},
    grants,
    allowAnonymous = false,
    limits = {},
    origins,
    prefix,
    publicUrl,
    allowedHosts,
    defaultAgent,
    accessLog,
  } = options
  if (Object.keys(tokens).length === 0 && !allowAnonymous && !options.access) {
    throw new UampError('invalid_request', 'This server cannot know who reaches it: give a token, or allow anonymous callers')
  }
  const access = options.access ?? staticTokens({ tokens, grants, anonymous: allowAnonymous })
  const secrets = new Secrets(Object.values(tokens))
  const log = redactedLog(options.log ?? printed, secrets)
  const transports = [...(options.transports ?? []), events(), completions(), ...catalog(), responses(), a2a(options.a2a ?? {}), agUi()]
  const agents = new AgentRegistry({ protocols: transports.filter(({ serves }) => serves === undefined).map(({ name }) => name) })
  agents.onChange((name) => secrets.add(agents.get(name)?.secrets ?? []))
  for (const agent of 'run' in given ? [given] : given) agents.add(agent)
  const coreLimits = { ...(options.store === undefined && { storedBytes: STORED_BYTES }), ...limits }
  const store = options.store ?? memoryStore({ mostBytes: 2 * (coreLimits.storedBytes ?? STORED_BYTES) })
  const metrics = new Metrics()
  const gateway = createGateway({ agents, store, access, log, meter: metrics, secrets, limits: coreLimits })
  metrics.gauges = gateway
  const closing = new AbortController()
  const server = createApp({
    gateway,
    metrics,
    store,
    agents,
    transports,
    log,
    secrets,
    limits,
    access,
    started: gateway.start(),
    closing: closing.signal,
    loopback: false,
    ...present({ origins, prefix, publicUrl, allowedHosts, defaultAgent, accessLog }),
  })
  const shutDown = async (graceMs: number): Promise<void> => {
    server.drain()
    await gateway.drain(graceMs)
    await gateway.close()
    agents.close()
    closing.abort()
    await store.close()
  }
  let closed: Promise<void> | undefined
  return {
    app: server.app,
    fetch: (request) => server.fetch(request),
    agents,
    gateway,
    close: ({ graceMs = 5_000 } = {}) => (closed ??= shutDown(graceMs)),
  }
}

const printed: Logger = (level, message, fields) => {
  const told = (_: string, value: unknown): unknown => (value instanceof Error ? { message: value.message, stack: value.stack } : value)
  // oxlint-disable-next-line no-console
  console.error(JSON.stringify({ level, ...fields, msg: message }, told))
}
