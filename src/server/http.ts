import type { Payment } from '../protocol/payment.ts'
import { paymentFrom } from '../wire/payment.ts'
import type { Access, Principal } from '../core/ports/access.ts'
import type { Redaction } from '../core/ports/redaction.ts'
import type { Trace } from '../core/ports/trace.ts'
import type { Call, HttpRoute, Logger, Quota, Streamed } from '../core/ports/transport.ts'
import { UampError } from '../protocol/errors.ts'
import type { Admission, Caller } from './admission.ts'
import { COUNTED_BYTES, SlowBody, tooLarge, type Bodies } from './bodies.ts'
import type { Limits } from './limits.ts'
import type { Metrics } from './metrics.ts'
import type { Requests, Served } from './requests.ts'
import type { Found, Mounted, Routes } from './routes.ts'
import { sseStream } from './stream.ts'
import { corsHeaders, preflightHeaders, type HostPolicy } from './web-pages.ts'

export interface GuardOptions {
  readonly limits: Limits
  readonly checkHost: HostPolicy
  /** False if a web page sent the request that may not. */
  readonly allowsPage: (headers: Headers) => boolean
  readonly bodies: Bodies
  readonly routes: Routes
}

type Next = (request: Request) => Response | Promise<Response>

/** Checks host, page and size of every request before it is routed, also to routes that a user added. */
export type Guard = (request: Request, env: unknown, next: Next) => Response | Promise<Response>

export function guard({ limits, checkHost, allowsPage, bodies, routes }: GuardOptions): Guard {
  const refuse = ({ url }: Request, error: UampError, status?: number): Response =>
    routes.refusalAt(routes.pathOf(url))(error, status === undefined ? {} : { status })

  return (request, env, next) => {
    const { headers, method, url } = request
    const misdirected = checkHost(url, headers.get('host'))
    if (misdirected) return refuse(request, misdirected.error, misdirected.status)
    if (!allowsPage(headers)) return refuse(request, foreignPage())
    const origin = headers.get('origin')
    if (origin === null) return sized(request, env, next)
    if (method === 'OPTIONS' && headers.has('access-control-request-method')) {
      return new Response(null, { status: 204, headers: preflightHeaders(origin, headers.get('access-control-request-headers')) })
    }
    return shared(sized(request, env, next), origin)
  }

  function sized(request: Request, env: unknown, next: Next): Response | Promise<Response> {
    const { method, url, headers } = request
    if (url.length > limits.urlBytes) return refuse(request, new UampError('too_large', 'The URL is too long'), 414)
    if (method === 'GET' || method === 'HEAD') return next(request)
    const length = headers.get('content-length')
    if (length !== null && Number(length) <= Math.min(COUNTED_BYTES, limits.bodyBytes)) return next(request)
    const route = routes.bodyAt(method, routes.pathOf(url))
    const most = route?.bodyBytes ?? limits.bodyBytes
    if (Number(length) > most) return refuse(request, tooLarge(most))
    return next(
      bodies.counted(request, { most, length: length === null ? undefined : Number(length), asText: route?.body === 'text', env }),
    )
  }
}

async function shared(answer: Response | Promise<Response>, origin: string): Promise<Response> {
  const response = await answer
  const vary = response.headers.get('vary')
  // Keeps the route's own `vary`: a cache must not mix answers that the route keeps apart.
  const both = vary === null || /\borigin\b/i.test(vary) ? (vary ?? 'Origin') : `${vary}, Origin`
  const added = Object.entries({ ...corsHeaders(origin), vary: both })
  try {
    for (const [name, value] of added) response.headers.set(name, value)
    return response
  } catch {
    // The headers of an answer that a route got by `fetch` are immutable.
    const kept = [...response.headers].filter(([name]) => name !== 'vary')
    return new Response(response.body, { status: response.status, headers: [...kept, ...added] })
  }
}

export function foreignPage(): UampError {
  return new UampError('forbidden', 'Pages of this origin may not call this server: its operator can add the origin to `origins`')
}

export interface HttpOptions {
  readonly routes: Routes
  readonly admission: Admission
  readonly bodies: Bodies
  readonly metrics: Metrics
  readonly requests: Requests
  readonly log: Logger
  readonly secrets: Redaction
  readonly callerOf: (request: Request, env: unknown) => Caller
  readonly deliver: (streamed: Streamed, request: Request, by: { readonly env: unknown; readonly served: Served }) => Response
}

/** Never throttled: an answer costs no more than a refusal, and a stranger must not make the server look dead. */
const PROBES: ReadonlySet<string> = new Set(['/health', '/ready'])

/**
 * Answers a request. Never rejects: an error of a handler is logged, and becomes the answer. One function, because every `async` layer
 * in the path of a request costs time.
 */
export function httpDispatcher({ routes, admission, bodies, metrics, requests, log, secrets, callerOf, deliver }: HttpOptions) {
  return async (request: Request, env: unknown, served: Served): Promise<Response> => {
    const { method, url } = request
    const path = routes.pathOf(url)
    if (method === 'OPTIONS') {
      const allow = routes.allowed(path)
      if (allow !== undefined) return new Response(null, { status: 204, headers: { allow } })
    }
    const found = routes.find((method === 'HEAD' ? 'GET' : method) as HttpRoute['method'], path)
    if (!('mounted' in found)) {
      metrics.countRequest(undefined, method, found.status)
      return found
    }
    const { mounted, agent } = found
    const { route } = mounted
    requests.found(served, mounted, agent)
    let response: Response
    try {
      const caller = callerOf(request, env)
      if (route.access !== 'request' && !PROBES.has(route.path)) {
        const refused = await admission.refusePublic(admission.credentialsOf(request, caller), { caller, trace: served.trace })
        if (refused) return refusedAt(mounted, method, refused)
      }
      const known = { found, request, admission, caller, served, text: () => bodies.text(request, env) }
      const result =
        route.access === 'public'
          ? route.handle(request, new HttpCall(known, undefined))
          : route.handle(
              request,
              new HttpCall(
                known,
                bodies.belongTo(
                  route.access === 'url'
                    ? await admission.admitOwner(() => route.owner(new HttpCall(known, undefined)), caller)
                    : await admission.admit(admission.credentialsOf(request, caller), {
                        caller,
                        trace: served.trace,
                        agent,
                        action: route.action,
                      }),
                  request,
                ),
              ),
            )
      const given = Symbol.asyncIterator in result ? result : await result
      const answer = Symbol.asyncIterator in given ? await sseStream(given, method === 'HEAD') : given
      response = 'frames' in answer ? deliver(answer, request, { env: served.changes ? undefined : env, served }) : answer
    } catch (thrown) {
      response = failed(brokenOff(thrown, request) ?? thrown, mounted, served)
    }
    metrics.countRequest(mounted, method, response.status)
    return response
  }

  /** Also ends the connection, with all requests that wait on it. */
  function refusedAt(mounted: Mounted<HttpRoute>, method: string, error: UampError): Response {
    const response = mounted.refuse(error, { headers: { connection: 'close' } })
    metrics.countError(mounted.transport, error.code)
    metrics.countRequest(mounted, method, response.status)
    return response
  }

  function failed(thrown: unknown, { transport, route, refuse }: Mounted<HttpRoute>, { trace }: Served): Response {
    const error = secrets.told(thrown)
    metrics.countError(transport, error.code)
    if (error.code === 'internal')
      log('error', 'A route failed', { transport, route: route.path, error: error.cause ?? error, ...trace.fields })
    return refuse(error, thrown instanceof SlowBody ? { status: thrown.status } : {})
  }
}

/** The error for a body that the client broke off, which Node reports as a reset. */
export function brokenOff(thrown: unknown, { signal }: Request): UampError | undefined {
  const isReset = thrown instanceof Error && 'code' in thrown && thrown.code === 'ECONNRESET'
  return isReset && signal.aborted ? new UampError('cancelled', 'The request broke off', { cause: thrown }) : undefined
}

export function whenAborted(signal: AbortSignal, leave: () => void): void {
  if (signal.aborted) leave()
  else signal.addEventListener('abort', leave, { once: true })
}

interface HttpCallInit {
  readonly found: Found<HttpRoute>
  readonly request: Request
  readonly admission: Admission
  readonly caller: Caller
  readonly served: Served
  readonly text: () => Promise<string>
}

/** Makes `access`, `signal` and `quota` when they are read, because most routes do not need them. */
class HttpCall<P extends Principal | undefined> implements Call {
  readonly agent: string | undefined
  readonly root: boolean
  readonly request: Request
  readonly params: Readonly<Record<string, string>>
  readonly principal: P
  readonly trace: Trace
  readonly text: () => Promise<string>
  readonly #admission: Admission
  readonly #caller: Caller

  constructor({ found, request, admission, caller, served, text }: HttpCallInit, principal: P) {
    if (principal) served.admitted(principal)
    this.trace = served.trace
    this.agent = found.agent
    this.root = found.root
    this.params = found.params
    this.request = request
    this.text = text
    this.principal = principal
    this.#admission = admission
    this.#caller = caller
  }

  get address(): string {
    return this.#caller.address
  }

  get access(): Access {
    return this.#admission.accessOf({ caller: this.#caller, trace: this.trace })
  }

  countWrong(): void {
    this.#admission.countWrong({ caller: this.#caller, trace: this.trace })
  }

  get signal(): AbortSignal {
    return this.request.signal
  }

  whenGone(leave: () => void): void {
    if (this.#caller.whenGone) this.#caller.whenGone(leave)
    else whenAborted(this.signal, leave)
  }

  get payment(): Payment | undefined {
    return paymentFrom(this.request.headers)
  }

  get quota(): Quota {
    return this.#admission.quota(this.principal, this.address)
  }
}
