import type { Access, Principal } from '../core/ports/access.ts'
import type { Redaction } from '../core/ports/redaction.ts'
import type { Call, HttpRoute, Logger, Quota, Streamed } from '../core/ports/transport.ts'
import { UampError } from '../protocol/errors.ts'
import type { Admission } from './admission.ts'
import { SlowBody, type Bodies } from './bodies.ts'
import type { Caller } from './caller.ts'
import type { Metrics } from './metrics.ts'
import { pathOf } from './path.ts'
import type { Mounted, Routes } from './routes.ts'
import { sseStream } from './stream.ts'

export interface HttpOptions {
  readonly routes: Routes
  readonly admission: Admission
  readonly bodies: Bodies
  readonly metrics: Metrics
  readonly log: Logger
  readonly secrets: Redaction
  readonly callerOf: (request: Request, env: unknown) => Caller
  readonly deliver: (streamed: Streamed, request: Request, env: unknown) => Response
}

/** An answer costs no more than a refusal, and whoever watches the server must not take it for dead because of a stranger. */
const PROBES: ReadonlySet<string> = new Set(['/health', '/ready'])

/**
 * From a request to its answer. Never rejects: what a handler throws is logged and becomes a JSON error. One function, because
 * it stands in the path of every request and each `async` layer is felt there.
 */
export function httpDispatcher({ routes, admission, bodies, metrics, log, secrets, callerOf, deliver }: HttpOptions) {
  return async (request: Request, env: unknown): Promise<Response> => {
    const { method, url } = request
    const path = pathOf(url)
    if (method === 'OPTIONS') {
      const allow = routes.allowed(path)
      if (allow !== undefined) return new Response(null, { status: 204, headers: { allow } })
    }
    const found = routes.find((method === 'HEAD' ? 'GET' : method) as HttpRoute['method'], path)
    if (!('mounted' in found)) {
      metrics.countRequest(undefined, method, found.status)
      return found
    }
    const { mounted, agent, root, params } = found
    const { route } = mounted
    let response: Response
    try {
      const caller = callerOf(request, env)
      if (route.access === 'public' && !PROBES.has(route.path)) {
        const refused = await admission.refusePublic({ headers: request.headers }, caller)
        if (refused) return refusedAt(mounted, method, refused)
      }
      const known = { agent, root, request, params, admission, caller }
      const result =
        route.access === 'public'
          ? route.handle(request, new HttpCall(known, undefined))
          : route.handle(
              request,
              new HttpCall(known, bodies.belongTo(await admission.admit({ headers: request.headers }, { caller, agent }), request)),
            )
      const answer = Symbol.asyncIterator in result ? await sseStream(result, method === 'HEAD') : await result
      response = 'frames' in answer ? deliver(answer, request, env) : answer
    } catch (thrown) {
      response = failed(brokenOff(thrown, request) ?? thrown, mounted)
    }
    metrics.countRequest(mounted, method, response.status)
    return response
  }

  /** The connection ends with it: what else was piled up on it is not looked at. */
  function refusedAt(mounted: Mounted<HttpRoute>, method: string, error: UampError): Response {
    const response = mounted.refuse(error, { headers: { connection: 'close' } })
    metrics.countError(mounted.transport, error.code)
    metrics.countRequest(mounted, method, response.status)
    return response
  }

  function failed(thrown: unknown, { transport, route, refuse }: Mounted<HttpRoute>): Response {
    const error = secrets.told(thrown)
    metrics.countError(transport, error.code)
    if (error.code === 'internal') log('error', 'A route failed', { transport, route: route.path, error: error.cause ?? error })
    return refuse(error, thrown instanceof SlowBody ? { status: thrown.status } : {})
  }
}

/** Node's word for a body that ended before its time, when it was the client who left. */
export function brokenOff(thrown: unknown, { signal }: Request): UampError | undefined {
  const isReset = thrown instanceof Error && 'code' in thrown && thrown.code === 'ECONNRESET'
  return isReset && signal.aborted ? new UampError('cancelled', 'The request broke off', { cause: thrown }) : undefined
}

interface KnownParts {
  readonly agent: string | undefined
  readonly root: boolean
  readonly request: Request
  readonly params: Readonly<Record<string, string>>
  readonly admission: Admission
  readonly caller: Caller
}

/** `access`, `signal` and `quota` are made when they are read: most routes are done before they could need them. */
class HttpCall<P extends Principal | undefined> implements Call {
  readonly agent: string | undefined
  readonly root: boolean
  readonly request: Request
  readonly params: Readonly<Record<string, string>>
  readonly principal: P
  readonly #admission: Admission
  readonly #caller: Caller

  constructor({ agent, root, request, params, admission, caller }: KnownParts, principal: P) {
    this.agent = agent
    this.root = root
    this.request = request
    this.params = params
    this.principal = principal
    this.#admission = admission
    this.#caller = caller
  }

  get address(): string {
    return this.#caller.address
  }

  get access(): Access {
    return this.#admission.accessOf(this.#caller)
  }

  get signal(): AbortSignal {
    return this.request.signal
  }

  get quota(): Quota {
    return this.#admission.quota(this.principal)
  }
}
