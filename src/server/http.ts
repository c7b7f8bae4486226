import type { Access, Principal } from '../core/ports/access.ts'
import type { Call, HttpRoute, Log, Streamed } from '../core/ports/transport.ts'
import { UampError } from '../protocol/errors.ts'
import type { Admission } from './admission.ts'
import { errorResponse } from './errors.ts'
import type { Metrics } from './metrics.ts'
import { pathOf } from './path.ts'
import type { Mounted, Routes } from './routes.ts'
import { sseStream } from './stream.ts'

export interface HttpOptions {
  readonly routes: Routes
  readonly admission: Admission
  readonly metrics: Metrics
  readonly log: Log
  readonly deliver: (streamed: Streamed, request: Request, env: unknown) => Response
}

/**
 * From a request to its answer. Never rejects: what a handler throws is logged and becomes a JSON error. One function, because
 * it stands in the path of every request and each `async` layer is felt there.
 */
export function httpDispatcher({ routes, admission, metrics, log, deliver }: HttpOptions) {
  const { access } = admission

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
    const { mounted, agent, params } = found
    const { route } = mounted
    let response: Response
    try {
      const known = { agent, request, params, access }
      const result =
        route.access === 'public'
          ? route.handle(request, new HttpCall({ ...known, principal: undefined }))
          : route.handle(request, new HttpCall({ ...known, principal: await admission.admit({ headers: request.headers }, agent) }))
      const answer = Symbol.asyncIterator in result ? await sseStream(result, method === 'HEAD') : await result
      response = 'frames' in answer ? deliver(answer, request, env) : answer
    } catch (thrown) {
      response = failed(thrown, mounted)
    }
    metrics.countRequest(mounted, method, response.status)
    return response
  }

  function failed(thrown: unknown, { transport, route }: Mounted<HttpRoute>): Response {
    const error = UampError.from(thrown)
    metrics.countError(transport, error.code)
    if (error.code === 'internal') log('error', 'A route failed', { transport, route: route.path, error: error.cause ?? error })
    return errorResponse(error)
  }
}

/** `signal` is made when it is first read: most routes are done before they could need one. */
class HttpCall<P extends Principal | undefined> implements Call {
  readonly agent: string | undefined
  readonly request: Request
  readonly params: Readonly<Record<string, string>>
  readonly principal: P
  readonly access: Access

  constructor({ agent, request, params, principal, access }: Omit<Call, 'signal' | 'principal'> & { readonly principal: P }) {
    this.agent = agent
    this.request = request
    this.params = params
    this.principal = principal
    this.access = access
  }

  get signal(): AbortSignal {
    return this.request.signal
  }
}
