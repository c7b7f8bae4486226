import type { IncomingMessage, ServerResponse } from 'node:http'
import { isIP } from 'node:net'
import type { Duplex } from 'node:stream'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Hono } from 'hono'
import { identityAccess, type IdentityParts } from '../auth/identity.ts'
import { issuer } from '../auth/issuer/index.ts'
import type { Signs } from '../auth/response-signer.ts'
import { revocable } from '../auth/revocations.ts'
import { accessIn, believes, needsOwnUrl, type AccessSettings } from '../auth/settings.ts'
import type { Grants } from '../auth/static-tokens.ts'
import type { AgentRegistry } from '../core/engine/agent-registry.ts'
import type { AgentGateway } from '../core/engine/gateway-options.ts'
import { CORE_LIMITS, type CoreLimits } from '../core/basics/limits.ts'
import { once } from '../core/basics/once.ts'
import { clocksOf, timeOrderedIds } from '../core/basics/time.ts'
import { agentAtRoot } from '../core/edge/asked.ts'
import type { Access } from '../core/ports/access.ts'
import type { AgentPort } from '../core/ports/agent.ts'
import type { ModelTable } from '../core/ports/models.ts'
import type { Payments } from '../core/ports/payments.ts'
import type { Logger, Transport } from '../core/ports/transport.ts'
import type { Ledger } from '../payments/ledger.ts'
import { ledgerRest } from '../payments/rest/index.ts'
import { isPayments, type PaymentSettings } from '../payments/settings.ts'
import { UampError } from '../protocol/errors.ts'
import { DEFAULT_LIMITS, type Limits } from '../server/limits.ts'
import { createNodeApp } from '../server/node/app.ts'
import type { NodeApp } from '../server/node/app.ts'
import { unpackBrotli } from '../server/node/brotli.ts'
import { checkPort, listen } from '../server/node/listen.ts'
import type { Listening } from '../server/node/listen.ts'
import { incomingOf } from '../server/node/caller.ts'
import { requestHandler } from '../server/node/handle.ts'
import { pinoLog } from '../server/node/log.ts'
import { openTelemetry } from '../server/node/otel.ts'
import { trustedProxies } from '../server/node/networks.ts'
import { readTls, type TlsFiles } from '../server/node/tls.ts'
import { hostPolicy, originPolicy } from '../server/web-pages.ts'
import { a2a, type A2aOptions } from '../transports/a2a/index.ts'
import { acp } from '../transports/acp/index.ts'
import { agUi } from '../transports/ag-ui/index.ts'
import { catalog, completions } from '../transports/completions/index.ts'
import { HostedAgents } from '../remotes/hosted/hosting.ts'
import { envelope, type EnvelopeOptions } from '../transports/envelope/index.ts'
import { events } from '../transports/events/index.ts'
import { omnia, type OmniaOptions } from '../transports/omnia/index.ts'
import { realtime } from '../transports/realtime/index.ts'
import { responses } from '../transports/responses/index.ts'
import { present } from '../wire/fields.ts'
import { connectTools } from './client-tools.ts'
import { checkData, openBlobs } from './data.ts'
import { openGateway, type OpenGateway } from './gateway.ts'
import { packageVersion } from './package-version.ts'
import { greeting, type Served } from './try-it.ts'

export { connectAgents, type ConnectAgentsOptions, type ConnectedAgents } from './connect/index.ts'
export type { ClientSettings } from '../auth/issuer/clients.ts'
export type { A2aOptions } from '../transports/a2a/index.ts'
export type { EnvelopeOptions } from '../transports/envelope/index.ts'
export type { OmniaOptions } from '../transports/omnia/index.ts'
export type { PaymentSettings } from '../payments/settings.ts'
export type { PlatformSettings } from '../payments/platform.ts'
export type { AccessSettings } from '../auth/settings.ts'
export type { CoreLimits } from '../core/basics/limits.ts'
export type { Limits } from '../server/limits.ts'
export type { TlsFiles } from '../server/node/tls.ts'

export interface AgentAppOptions {
  /** The address to listen on. Default: 127.0.0.1. It decides whether callers need a token, and which web pages may call. */
  readonly host?: string
  /** The folder that keeps the sessions, or `memory`. Default: `UAMP_DATA` of the environment, else `./.uamp`. */
  readonly data?: string
  /** Secrets by name. Each name is a principal of its own. */
  readonly tokens?: Readonly<Record<string, string>>
  /** What a token may do beyond talking to agents, by its name. `platform`: it sends interactions under session ids of its own. */
  readonly grants?: Grants
  /**
   * Whose tokens are accepted beside `tokens` and those of this server: identity providers, and agents elsewhere. Or an `Access` of your
   * own, which decides instead of `tokens`, `grants` and `allowAnonymous`.
   */
  readonly access?: Access | AccessSettings
  /** Admits callers without a token. Default: only on the loopback address, and only if nobody else could be admitted. */
  readonly allowAnonymous?: boolean
  /** Origins of web pages that may call. On the loopback address, pages of this machine may call, too. */
  readonly origins?: readonly string[]
  /** The path that the server is mounted under, such as `/ai`. Requests may come with it, or without it if a router has removed it. */
  readonly prefix?: string
  /** The server's address in URLs that it gives to clients: `https://example.com/prefix`. Default: the address of the request. */
  readonly publicUrl?: string
  /**
   * Addresses (`10.0.0.7`) and networks (`10.0.0.0/8`) of the proxies in front of this server. The server believes their `Forwarded` and
   * `X-Forwarded-*` headers, and ignores those of others.
   */
  readonly trustProxy?: readonly string[]
  /**
   * Host names that the server answers to, beside `localhost`, the name in `publicUrl`, `host` if it is a name, and every address. It
   * refuses other names, because a web page could have pointed its own name at this machine. `*`: any name.
   */
  readonly allowedHosts?: readonly string[]
  /**
   * URLs that clients name, such as webhooks, are called over https on the public internet only. `allow` adds hosts (`localhost:9000`)
   * and networks (`10.0.0.0/8`).
   */
  readonly outbound?: { readonly allow?: readonly string[] }
  readonly limits?: Partial<Limits & CoreLimits>
  /**
   * When answers are signed: for clients that ask for it, always, or never. Default: `asked`. Only a server that knows its own address
   * signs: by `publicUrl`, or because it listens on the loopback address.
   */
  readonly sign?: Signs
  /**
   * What happens when a second process hosts an agent under a name that is hosted already. `takeover`: the first one is told to leave.
   * `share`: both answer, the less busy one first. Default: `takeover`.
   */
  readonly hosting?: 'share' | 'takeover'
  /** How callers pay agents that have a price. Or a ledger of your own, which then decides instead of this server's. */
  readonly payments?: Payments | PaymentSettings
  /** Agent cards and push notifications of A2A. */
  readonly a2a?: A2aOptions
  /** Tools of Omnia's clients, what they see, and what they may send. */
  readonly omnia?: OmniaOptions
  /** Signed messages between organisations. Default: none are taken. */
  readonly envelope?: EnvelopeOptions
  /**
   * For tests on this machine, and only on the loopback address: HTTP/2 without TLS, from clients that know it beforehand; envelopes without
   * TLS and without a token; and DID documents of `localhost` over plain HTTP.
   */
  readonly insecureDev?: boolean
  /** Mounted before the built-in ones. */
  readonly transports?: readonly Transport[]
  /** The agent at `/`. Default: the only one, else `demo`. */
  readonly defaultAgent?: string
  /** Prices and limits of models that agents do not know yet, or know otherwise, by `provider/model`. */
  readonly models?: ModelTable
  /** Default: lines on standard error, for people if it is a terminal, else as JSON. With one of your own, `serve` prints nothing. */
  readonly log?: Logger
  /** One log line for each request, but for those of probes. Default: false. */
  readonly accessLog?: boolean
}

export interface ServeOptions extends AgentAppOptions {
  /** Default: 8787. 0: any free port. */
  readonly port?: number
  /**
   * Speaks HTTPS over TLS 1.3, in HTTP/2 and HTTP/1.1, with a certificate and a key in PEM files, which are read again when they change.
   * Default: HTTP/1.1 without TLS.
   */
  readonly tls?: TlsFiles
}

export interface CloseOptions {
  /** How long running responses may go on. Default: 5,000. */
  readonly graceMs?: number
}

export interface AgentApp {
  /** Routes that are added to it win over the mounted ones. */
  readonly app: Hono
  /** For frameworks that hand over web requests. `env` is what `@hono/node-server` adds to them. */
  fetch(request: Request, env?: unknown): Response | Promise<Response>
  /** For the requests of a `node:http` server, also as a middleware of Express. */
  handleRequest(request: IncomingMessage, response: ServerResponse): Promise<void>
  /** For the `upgrade` event of a `node:http` server. */
  handleUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void
  /** Add and remove agents at any time. */
  readonly agents: AgentRegistry
  readonly gateway: AgentGateway
  /** The money of this server: accounts and tokens that pay agents with a price. */
  readonly ledger: Ledger
  close(options?: CloseOptions): Promise<void>
}

export interface RunningServer extends AgentApp {
  readonly url: string
  readonly port: number
}

/** How long clients have to say goodbye before they are cut. */
const LEAVE_MS = 2_000
const LAST_TURNS = 10

/** Puts agents on a server: `await serve(agent, { port: 8787 })`. */
export async function serve(agents: AgentPort | readonly AgentPort[], options: ServeOptions = {}): Promise<RunningServer> {
  const { port = 8787, host = '127.0.0.1', trustProxy = [], tls: files, insecureDev: h2c } = options
  await checkData(dataOf(options))
  const tls = files && { files, pair: await readTls(files) }
  await checkPort({ port, host })
  const parts = assemble(agents, options)
  try {
    await parts.open.started
    const listening = await listen(parts.node, { port, host, tls, h2c })
    const url = listening.url + parts.node.prefix
    // Behind a proxy it has another address, which only its operator can tell.
    if (isLoopback(host) && trustProxy.length === 0) parts.node.listensAt(url)
    const unsure = parts.node.ownUrl() === undefined && needsOwnUrl(accessIn(options.access).settings)
    if (unsure)
      parts.open.log('warn', 'This server does not know its own URL, so no token can be for it, and it issues none: set publicUrl')
    if (options.log === undefined) process.stdout.write(greeting(served(url, parts, options)))
    return { ...agentApp(parts, listening), url, port: listening.port }
  } catch (error) {
    await parts.open.close(0)
    throw error
  }
}

/** The same for users who have a `node:http` server of their own: mount `app`, and hand it the upgrades. */
export function createAgentApp(agents: AgentPort | readonly AgentPort[], options: AgentAppOptions = {}): AgentApp {
  return agentApp(assemble(agents, options))
}

function served(url: string, { open }: Parts, { tokens = {}, access, allowAnonymous, defaultAgent }: ServeOptions): Served {
  const [names, callers] = [open.agents.names(), Object.keys(tokens)]
  const agents = names.flatMap((name) => open.agents.get(name) ?? [])
  const { own, settings } = accessIn(access)
  const anonymous = allowAnonymous ?? (callers.length === 0 && !own && !believes(settings))
  return { url, agents, root: agentAtRoot(names, defaultAgent), tokens: callers, anonymous }
}

interface Parts {
  readonly node: NodeApp
  readonly open: OpenGateway
}

function agentApp({ node, open }: Parts, listening?: Listening): AgentApp {
  /** The readers of ended logs have a few turns of the event loop to write the rest. */
  const leave = async (): Promise<void> => {
    for (let turn = 0; turn < LAST_TURNS; turn++) await nextTurn()
    await node.closeConnections(LEAVE_MS)
    await listening?.close(LEAVE_MS)
  }
  const shutDown = (graceMs: number): Promise<void> => {
    node.drain()
    listening?.stop()
    return open.close(graceMs, leave)
  }
  let closing: Promise<void> | undefined
  return {
    app: node.app,
    // Without `outgoing`: the framework, or a middleware of its, may change the answer.
    fetch: (request, env) => node.fetch(request, { incoming: incomingOf(env) }),
    handleRequest: requestHandler(node),
    handleUpgrade: node.handleUpgrade,
    agents: open.agents,
    gateway: open.gateway,
    ledger: open.ledger,
    close: ({ graceMs = 5_000 } = {}) => (closing ??= shutDown(graceMs)),
  }
}

function assemble(given: AgentPort | readonly AgentPort[], options: AgentAppOptions): Parts {
  const {
    host = '127.0.0.1',
    tokens = {},
    origins,
    limits,
    defaultAgent,
    publicUrl,
    prefix,
    trustProxy,
    allowedHosts = [],
    outbound,
  } = options
  const loopback = isLoopback(host)
  if (options.insecureDev && !loopback)
    throw new UampError(
      'invalid_request',
      `${host} can be reached from other machines, and insecureDev is for this one alone: leave it out`,
    )
  const hasTokens = Object.keys(tokens).length > 0
  const { own, settings } = accessIn(options.access)
  if (own && (hasTokens || options.grants || options.allowAnonymous !== undefined)) {
    throw new UampError('invalid_request', 'Your own `access` decides who may call: leave out `tokens`, `grants` and `allowAnonymous`')
  }
  const believesSomebody = hasTokens || own !== undefined || believes(settings)
  if (!loopback && !believesSomebody && options.allowAnonymous !== true) {
    throw new UampError('invalid_request', `${host} can be reached from other machines: give a token, or allow anonymous callers`)
  }
  const { grants, allowAnonymous: anonymous = !believesSomebody } = options
  // The parts are there by the time that somebody calls.
  const parts = (): IdentityParts => ({
    ...open,
    ...clocksOf({}),
    ownUrl: () => node.ownUrl(),
    once: (key, ttlMs) => once(open.store, key, ttlMs),
  })
  const access = own ?? identityAccess({ tokens, grants, anonymous, settings, parts })
  const trusts = trustProxy && trustedProxies(trustProxy)
  // What nobody could use is refused before the data is opened, which would leave a folder behind.
  hostPolicy(present({ allowedHosts, publicUrl }))
  originPolicy({ loopback, ...present({ origins }) })
  const data = dataOf(options)
  const blobs = openBlobs(data)
  // Transports check their options, so they are made before the data is opened. An explicit `blobs: undefined` turns uploads off.
  const transports = [
    ...(options.transports ?? []),
    ...builtIn({ ...options, omnia: { blobs, ...options.omnia } }),
    issuer({ tokens, grants: options.grants, ...settings }),
    ...(options.payments && isPayments(options.payments) ? [] : [ledgerRest({ ledger: () => open.ledger, isOpen: () => isOperators() })]),
  ]
  // Where nobody can show a token, and nobody comes from elsewhere, whoever calls has started the server. It knows its own URL without
  // being told only if it listens on the loopback address itself, and no proxy is in front of it.
  const isOperators = (): boolean => !believesSomebody && publicUrl === undefined && node.ownUrl() !== undefined
  const open = openGateway({
    agents: 'run' in given ? [given] : given,
    protocols: transports.filter(({ serves }) => serves === undefined).map(({ name }) => name),
    data,
    blobs: options.omnia?.blobs ?? blobs,
    log: options.log ?? pinoLog(),
    secrets: [...Object.values(tokens), ...clientSecrets(settings), ...privateKeys(options.a2a)],
    access,
    limits,
    outbound,
    models: options.models,
    tokenAlgorithm: settings.algorithm,
    sign: options.sign ?? 'asked',
    payments: options.payments,
    ownUrl: () => node.ownUrl(),
  })
  const clocks = clocksOf({})
  const hosting = new HostedAgents({
    ...open,
    ...clocks,
    newId: timeOrderedIds(clocks.now),
    mode: options.hosting,
    resumeWindowMs: limits?.resumeWindowMs ?? CORE_LIMITS.resumeWindowMs,
    messageBytes: limits?.messageBytes ?? DEFAULT_LIMITS.messageBytes,
    knownMs: limits?.hostedNameMs ?? DEFAULT_LIMITS.hostedNameMs,
    silenceMs: limits?.hostedSilenceMs ?? DEFAULT_LIMITS.hostedSilenceMs,
  })
  const node = createNodeApp({
    ...open,
    hosting,
    transports,
    access: revocable(access, open.revocations),
    loopback,
    allowedHosts: isIP(host) === 0 ? [...allowedHosts, host] : allowedHosts,
    recorder: openTelemetry(),
    ...present({ origins, limits, defaultAgent, publicUrl, prefix, trusts, accessLog: options.accessLog }),
    ...present({ clientCertHeader: settings.clientCertHeader }),
  })
  return { node, open }
}

function builtIn({
  limits,
  a2a: a2aOptions,
  omnia: omniaOptions,
  envelope: envelopes,
  insecureDev = false,
  sign,
  payments = {},
}: AgentAppOptions): Transport[] {
  const { sessionTtlMs: ttlMs, messageBytes } = limits ?? {}
  return [
    events(),
    completions(),
    ...catalog(),
    responses(),
    realtime(),
    a2a({
      sign: sign === 'always',
      x402: !isPayments(payments) && payments.x402 !== undefined,
      ...(ttlMs !== undefined && { taskTtlMs: ttlMs }),
      ...a2aOptions,
    }),
    agUi(ttlMs === undefined ? {} : { runTtlMs: ttlMs }),
    acp({ connectTools, version: packageVersion() }),
    omnia({ ...omniaOptions, limits: { ...(messageBytes !== undefined && { messageBytes }), ...omniaOptions?.limits } }),
    ...(envelopes ? [envelope({ ...envelopes, brotli: unpackBrotli, insecureDev })] : []),
  ]
}

function dataOf({ data }: AgentAppOptions): string {
  return data || process.env['UAMP_DATA'] || '.uamp'
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127\.\d+\.\d+\.\d+$/.test(host)
}

function clientSecrets({ clients = {} }: AccessSettings): string[] {
  return Object.values(clients).flatMap(({ secret }) => secret ?? [])
}

/** The private parts of the JWKs that sign agent cards. */
function privateKeys({ signingKeys = [] }: A2aOptions = {}): string[] {
  return signingKeys.flatMap(({ key }) => ('kty' in key ? [key.d, key.p, key.q, key.k] : [])).flatMap((part) => part ?? [])
}
