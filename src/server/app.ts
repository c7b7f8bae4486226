import { Hono } from 'hono'
import type { Context } from 'hono'
import { getPath } from 'hono/utils/url'
import { clocksOf, timeOrderedIds, type Clocks } from '../core/basics/time.ts'
import { fetchHttp } from '../core/http/fetch-http.ts'
import type { Access } from '../core/ports/access.ts'
import type { GuardedHttp, HttpClient } from '../core/ports/http.ts'
import type { Hosting } from '../core/ports/hosting.ts'
import type { Keys, Signer } from '../core/ports/keys.ts'
import type { Redaction } from '../core/ports/redaction.ts'
import type { Revocations } from '../core/ports/revocations.ts'
import type { Gateway } from '../core/ports/session.ts'
import type { Store } from '../core/ports/store.ts'
import type { Trace } from '../core/ports/trace.ts'
import type { LiveUses } from '../core/ports/live.ts'
import type { Agents, Host, Logger, Streamed, Transport } from '../core/ports/transport.ts'
import { Secrets } from '../core/secrets/secrets.ts'
import { Admission, UNKNOWN_CALLER, type Caller } from './admission.ts'
import { Bodies, SlowBody, type BodySource } from './bodies.ts'
import { brokenOff, guard, httpDispatcher } from './http.ts'
import { Live } from './live.ts'
import { limitsFrom } from '../core/basics/limits.ts'
import { DEFAULT_LIMITS } from './limits.ts'
import type { Limits } from './limits.ts'
import { Metrics, type Gauges } from './metrics.ts'
import { operation } from './operation.ts'
import { below, prefixFrom } from './prefix.ts'
import { Requests, withId, type Served } from './requests.ts'
import type { Recorder } from './trace.ts'
import { calledAt, normalized, publicUrl, type PublicUrlOptions } from './public-url.ts'
import { Readiness } from './readiness.ts'
import { errorResponse, Routes, type Refusal } from './routes.ts'
import { headResponse, readableResponse, watchStream, type WatchStream } from './stream.ts'
import { Upgrades } from './upgrade.ts'
import type { Accepted, UpgradeRequest } from './upgrade.ts'
import { corsHeaders, hostPolicy, pagePolicy, type HostOptions, type OriginOptions } from './web-pages.ts'

export interface AppOptions extends OriginOptions, PublicUrlOptions, HostOptions, Partial<Clocks> {
  readonly gateway: Gateway & Gauges
  /** The metrics that the gateway counts in, if any. */
  readonly metrics?: Metrics
  readonly store: Store
  readonly agents: Agents
  readonly transports: readonly Transport[]
  readonly access: Access
  readonly log: Logger
  /** One log line for each request, but for those of probes. Default: false. */
  readonly accessLog?: boolean
  /** Records spans. Default: nobody does. */
  readonly recorder?: Recorder | undefined
  /** Removes secrets from errors. Default: none are known. */
  readonly secrets?: Redaction
  /** Seals secrets of clients before they are stored. Default: none are stored, so there are no webhooks. */
  readonly keys?: Keys
  readonly signer?: Signer
  /** Whom and what this server no longer believes. Default: nothing can be revoked. */
  readonly revocations?: Revocations
  /** What goes on by whose credentials. Default: a list of its own. */
  readonly live?: LiveUses
  /** Offers agents of clients. Default: the server hosts none. */
  readonly hosting?: Hosting
  readonly limits?: Partial<Limits>
  readonly defaultAgent?: string
  readonly newId?: () => string
  /** Requests that need access wait for it. Until then the server is not ready. */
  readonly started?: Promise<unknown>
  /** Makes calls to other servers. Default: `fetch`. */
  readonly http?: HttpClient
  /** Makes calls to addresses that clients name. */
  readonly outbound?: GuardedHttp
  /** Aborted when the server shuts down. */
  readonly closing?: AbortSignal
  /** Writes a streamed answer on this runtime. `env` is what it passes to `app.fetch`. Undefined: it cannot write this one. */
  readonly stream?: (env: unknown, streamed: Streamed, by: StreamedBy) => Response | undefined
  /** The sender of a request on this runtime. `env` is what it passes to `app.fetch`. */
  readonly caller?: (request: Request, env: unknown) => Caller
  /** How this runtime reads bodies. Default: as web streams. */
  readonly bodies?: BodySource
  /** Answers `/metrics` on this runtime. */
  readonly exposition?: (metrics: Metrics) => () => Promise<Response>
}

/** For whom an answer is streamed. */
export interface StreamedBy {
  readonly trace: Trace
  /** Ends the stream with the caller's credentials, until the returned function is called. */
  readonly watch: WatchStream
}

export interface ServerApp {
  /** Routes that a user adds win over all routes of the server. */
  readonly app: Hono
  readonly limits: Limits
  readonly metrics: Metrics
  readonly log: Logger
  readonly requests: Requests
  /**
   * Does what `app.fetch` does, and is faster if nothing was added to `app`. `served`: the runtime has begun the request, tells the client
   * its id, and ends it.
   */
  fetch(request: Request, env?: unknown, served?: Served): Response | Promise<Response>
  upgrade(request: UpgradeRequest): Promise<Accepted | Response>
  /** The path that all of it is mounted under; empty if none. */
  readonly prefix: string
  /** Words a refusal in the protocol at a target, `/path?query`, for requests that are refused before they get there. */
  refusalAt(target: string): Refusal
  /** Where the server listens, for one that is reached only from this machine: its own address if it has no `publicUrl`. */
  listensAt(url: string): void
  /** The server's own URL: see `Host.ownUrl`. */
  ownUrl(): string | undefined
  /** Makes `/ready` fail from now on. */
  drain(): void
}

/** All of the server that is the same on every runtime. It gets its parts as options, and knows no transport by name. */
export function createApp(options: AppOptions): ServerApp {
  const { gateway, store, agents, transports, access, log, stream } = options
  const { now, monotonic } = clocksOf(options)
  const { newId = timeOrderedIds(now), started = Promise.resolve(), secrets = new Secrets() } = options
  const limits = limitsFrom(DEFAULT_LIMITS, options.limits)
  const prefix = prefixFrom(options.prefix)
  const metrics = options.metrics ?? new Metrics(gateway)
  const { http = fetchHttp(), outbound, keys, signer, revocations, closing = new AbortController().signal } = options
  const live = options.live ?? new Live({ now, graceSeconds: access.graceSeconds })
  let ownUrl = options.publicUrl === undefined ? undefined : normalized(options.publicUrl)
  const seenAt = publicUrl({ ...options, prefix })
  const host: Host = {
    gateway,
    store,
    agents,
    log,
    meter: metrics,
    secrets,
    keys,
    signer,
    revocations,
    live,
    hosting: options.hosting,
    now,
    monotonic,
    newId,
    publicUrl: seenAt,
    ownUrl: () => ownUrl,
    http,
    outbound,
    started,
    closing,
  }
  const checkHost = hostPolicy(options)
  const allowsPage = pagePolicy(options)
  let waiting: Promise<void> | undefined = started.then(() => {
    waiting = undefined
  })
  waiting.catch((thrown: unknown) => log('error', 'The server could not start', { error: thrown }))
  let draining = false
  const readiness = new Readiness({ store, log, monotonic })
  const root = operation({
    agents,
    showMetrics: options.exposition?.(metrics),
    isReady: async () => !draining && waiting === undefined && (await readiness.isSound()),
    shared: () => routes.shared,
  })
  const routes = new Routes({ agents, host, transports, root: [root], defaultAgent: options.defaultAgent, prefix })
  const admission = new Admission({
    access,
    limits,
    log,
    monotonic,
    calledUrl: (sent) => calledAt(seenAt(sent), options.trusts ? undefined : ownUrl) + below(prefix, new URL(sent.url).pathname),
    starting: () => waiting,
  })
  const bodies = new Bodies({ gateway, limits, monotonic, source: options.bodies })
  const requests = new Requests({ log, meter: metrics.work, accessLog: options.accessLog ?? false, recorder: options.recorder })
  const upgrades = new Upgrades({ gateway, routes, admission, live, metrics, requests, limits, log, secrets, checkHost, allowsPage })
  const callerOf = options.caller ?? (() => UNKNOWN_CALLER)
  const dispatch = httpDispatcher({ routes, admission, bodies, metrics, requests, log, secrets, callerOf, deliver })

  function deliver(result: Streamed, { method, headers }: Request, { env, served }: { readonly env: unknown; served: Served }): Response {
    const origin = headers.get('origin')
    const streamed = origin === null ? result : { ...result, headers: { ...result.headers, ...corsHeaders(origin) } }
    if (method === 'HEAD') return headResponse(streamed)
    const watch = watchStream(live, streamed.principal ?? served.principal, streamed.expired)
    const written = stream?.(env, streamed, { trace: served.trace, watch })
    if (written) return written
    served.streams = true
    return readableResponse(streamed, { heartbeatMs: limits.heartbeatMs, watch, onEnd: () => requests.over(served, streamed.status) })
  }

  /** For a runtime that does not say when an answer has been sent: then it is over when it is there, or when its stream is. */
  async function whole(served: Served, answer: Response | Promise<Response>): Promise<Response> {
    const response = withId(await answer, served)
    if (!served.streams) requests.over(served, response.status)
    return response
  }

  const pass = guard({ limits, checkHost, allowsPage, bodies, routes })
  const app = new Hono({ getPath: (request) => below(prefix, getPath(request)) })
  /** The requests that Hono has. Not in `env`, which on some runtimes all requests share. */
  const begun = new WeakMap<Request, Served>()
  app.use(async (c, next) => {
    const known = begun.get(c.req.raw)
    const served = known ?? requests.beginWeb(c.req.raw)
    const answer = pass(c.req.raw, c.env, async (request) => {
      // What runs before this may change the answer, which must then not be written past it.
      if (c.req.routeIndex > 0) served.changes = true
      if (!hasOtherRoute(c)) return dispatch(request, c.env, served)
      begun.set(request, served)
      c.req.raw = request
      await next()
      return c.res
    })
    // An app of a user's has mounted this one.
    const response = await (known ? answer : whole(served, answer))
    if (!c.finalized) return response
    if (response !== c.res) c.res = response
    return undefined
  })
  const ownRoutes = app.routes.length
  // Not a route, so that routes which a user adds later still come first. An app that mounts this one does not take it over.
  app.notFound((c) => {
    const served = begun.get(c.req.raw) ?? requests.beginWeb(c.req.raw)
    served.changes = true
    return dispatch(c.req.raw, c.env, served)
  })
  app.onError((thrown, c) => {
    if ('getResponse' in thrown && typeof thrown.getResponse === 'function') return thrown.getResponse() as Response
    const error = brokenOff(thrown, c.req.raw) ?? secrets.told(thrown)
    if (error.code === 'internal') log('error', 'A route failed', { error: error.cause ?? error, ...begun.get(c.req.raw)?.trace.fields })
    return errorResponse(error, thrown instanceof SlowBody ? { status: thrown.status } : {})
  })

  return {
    app,
    limits,
    metrics,
    log,
    requests,
    // Hono only serves the routes of users. Without any, requests go around it.
    fetch(request, env, given) {
      const served = given ?? requests.beginWeb(request)
      const byHono = app.routes.length > ownRoutes
      if (byHono) begun.set(request, served)
      const answer = byHono ? app.fetch(request, env as object) : pass(request, env, (passed) => dispatch(passed, env, served))
      return given ? answer : whole(served, answer)
    },
    upgrade: (request) => upgrades.decide(request),
    prefix,
    refusalAt: (target) => routes.refusalAt(routes.pathOf(`http://x${target}`)),
    ownUrl: () => ownUrl,
    listensAt(url) {
      ownUrl ??= url
    },
    drain() {
      draining = true
    },
  }
}

/**
 * True if a user added a route for this request. Routes of an app that mounts this one have another base path. Not `matchedRoutes` of
 * `hono/route`: that only knows requests of the copy of Hono which it belongs to, and a user's app has another.
 */
function hasOtherRoute(c: Context): boolean {
  const { matchedRoutes, routeIndex } = c.req
  const own = matchedRoutes[routeIndex]
  return matchedRoutes.slice(routeIndex + 1).some(({ basePath }) => basePath === own?.basePath)
}
