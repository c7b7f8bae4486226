import type { Principal } from '../core/ports/access.ts'
import type { Logger, Route } from '../core/ports/transport.ts'
import type { Mounted } from './routes.ts'
import { RequestTrace, requestIdFrom, type Recorder, type WorkMeter } from './trace.ts'

export interface RequestsOptions {
  readonly log: Logger
  readonly meter: WorkMeter
  /** One log line for each request, but for those of probes. */
  readonly accessLog: boolean
  readonly recorder: Recorder | undefined
}

interface Asked {
  readonly method: string
  /** Without the query, which may hold a token. */
  readonly path: string
  readonly headers: Headers
}

/** Asked for all the time by machines, so that their lines would hide the others. */
const QUIET: ReadonlySet<string> = new Set(['/health', '/ready', '/metrics'])
/** Most characters of a path in a log line: a stranger may send 16 KiB of it. */
const PATH_LENGTH = 256

/** One request, or one connection, from its beginning to its end. */
export class Served {
  readonly trace: RequestTrace
  readonly method: string
  readonly #path: string
  readonly #begun = performance.now()
  #mounted: Mounted | undefined
  #agent: string | undefined
  #principal: Principal | undefined

  constructor(trace: RequestTrace, { method, path }: Asked) {
    this.trace = trace
    this.method = method
    this.#path = path
  }

  /** The route that answers. */
  found(mounted: Mounted, agent: string | undefined): void {
    this.#mounted = mounted
    this.#agent = agent
  }

  admitted(principal: Principal): void {
    this.#principal = principal
  }

  get route(): string | undefined {
    return this.#mounted?.route.path
  }

  /** What the access log says of it. */
  line(status: number): Readonly<Record<string, unknown>> {
    return {
      method: this.method,
      path: this.#shownPath,
      status,
      ms: Math.round((performance.now() - this.#begun) * 10) / 10,
      ...(this.#mounted && { transport: this.#mounted.transport }),
      ...(this.#agent !== undefined && this.#mounted?.transport !== 'server' && { agent: this.#agent }),
      ...(this.#principal && { principal: this.#principal.id }),
      ...this.trace.fields,
    }
  }

  /** A URL that is itself a credential is shown as its pattern. */
  get #shownPath(): string {
    const route: Route | undefined = this.#mounted?.route
    const path = route?.access === 'url' ? route.path : this.#path
    return path.length > PATH_LENGTH ? `${path.slice(0, PATH_LENGTH)}…` : path
  }
}

/** Gives every request its id and its trace, and writes the access log. */
export class Requests {
  readonly #options: RequestsOptions

  constructor(options: RequestsOptions) {
    this.#options = options
  }

  begin(asked: Asked): Served {
    const { headers } = asked
    const traceparent = headers.get('traceparent')
    const tracestate = traceparent === null ? null : headers.get('tracestate')
    const requestId = requestIdFrom(headers.get('x-request-id'))
    return new Served(new RequestTrace({ requestId, traceparent, tracestate }, this.#options.meter), asked)
  }

  /** The route is known, so the span of the request can have a name. */
  found(served: Served, mounted: Mounted, agent: string | undefined): void {
    served.found(mounted, agent)
    const { recorder } = this.#options
    const { path } = mounted.route
    if (!recorder || QUIET.has(path)) return
    served.trace.record(recorder, `${served.method} ${path}`, {
      'http.request.method': served.method,
      'http.route': path,
      'uamp.transport': mounted.transport,
      'uamp.agent': agent,
      'uamp.request_id': served.trace.requestId,
    })
  }

  over(served: Served, status: number): void {
    const { recorded } = served.trace
    recorded?.set({ 'http.response.status_code': status })
    recorded?.end(status >= 500 ? String(status) : undefined)
    if (this.#options.accessLog && !QUIET.has(served.route ?? '')) this.#options.log('info', 'Request', served.line(status))
  }
}

/** The request that a runtime has begun, if it has. `env` is what it passes to `app.fetch`. */
export function servedIn(env: unknown): Served | undefined {
  return ((env ?? {}) as { served?: Served }).served
}
