import { HOPS_HEADER } from '../core/basics/hops.ts'
import type { Principal } from '../core/ports/access.ts'
import type { Logger, Route } from '../core/ports/transport.ts'
import { pathOf, type Mounted } from './routes.ts'
import { requestIds, RequestTrace, type Incoming, type Recorder, type TraceOptions, type WorkMeter } from './trace.ts'

export interface RequestsOptions {
  readonly log: Logger
  readonly meter: WorkMeter
  /** One log line for each request, but for those of probes. */
  readonly accessLog: boolean
  readonly recorder: Recorder | undefined
}

interface Asked extends Incoming {
  readonly method: string
  /** Absolute. */
  readonly url: string
}

/** Asked for all the time by machines, so that their lines would hide the others. */
const QUIET: ReadonlySet<string> = new Set(['/health', '/ready', '/metrics'])
/** Most characters of a path in a log line: a stranger may send 16 KiB of it. */
const PATH_LENGTH = 256

/** One request, or one connection, from its beginning to its end. */
export class Served {
  readonly trace: RequestTrace
  readonly method: string
  /** Somebody may change the answer on its way out, so that it has to be a whole `Response`. */
  changes = false
  /** The answer is a stream, which says itself when it is over. */
  streams = false
  isOver = false
  readonly #url: string
  readonly #begun = performance.now()
  #mounted: Mounted | undefined
  #agent: string | undefined
  #principal: Principal | undefined

  constructor(asked: Asked, options: TraceOptions) {
    this.trace = new RequestTrace(asked, options)
    this.method = asked.method
    this.#url = asked.url
  }

  /** The route that answers. */
  found(mounted: Mounted, agent: string | undefined): void {
    this.#mounted = mounted
    this.#agent = agent
  }

  admitted(principal: Principal): void {
    this.#principal = principal
  }

  get principal(): Principal | undefined {
    return this.#principal
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

  /** Without the query, which may hold a token. A URL that is itself a credential is shown as its pattern. */
  get #shownPath(): string {
    const route: Route | undefined = this.#mounted?.route
    const path = route?.access === 'url' ? route.path : pathOf(this.#url)
    return path.length > PATH_LENGTH ? `${path.slice(0, PATH_LENGTH)}…` : path
  }
}

/** Gives every request its id and its trace, and writes the access log. */
export class Requests {
  readonly #options: RequestsOptions
  readonly #traces: TraceOptions

  constructor(options: RequestsOptions) {
    this.#options = options
    this.#traces = { newId: requestIds(), meter: options.meter }
  }

  /** False if nothing is done at the end of a request that begins now. */
  get needsEnd(): boolean {
    const { accessLog, recorder } = this.#options
    return accessLog || recorder?.active === true
  }

  begin(asked: Asked): Served {
    return new Served(asked, this.#traces)
  }

  /** Begins a request of a runtime that only has web standards. */
  beginWeb({ method, url, headers }: Pick<Request, 'method' | 'url' | 'headers'>): Served {
    const names = ['x-request-id', 'traceparent', 'tracestate', HOPS_HEADER]
    const [requestId, traceparent, tracestate, hops] = names.map((name) => headers.get(name))
    return this.begin({ method, url, requestId, traceparent, tracestate, hops })
  }

  /** The route is known, so the span of the request can have a name. */
  found(served: Served, mounted: Mounted, agent: string | undefined): void {
    served.found(mounted, agent)
    const { recorder } = this.#options
    const { path } = mounted.route
    if (!recorder?.active || QUIET.has(path)) return
    served.trace.record(recorder, `${served.method} ${path}`, {
      'http.request.method': served.method,
      'http.route': path,
      'uamp.transport': mounted.transport,
      'uamp.agent': agent,
      'uamp.request_id': served.trace.requestId,
    })
  }

  /** Only the first call counts. */
  over(served: Served, status: number): void {
    if (served.isOver) return
    served.isOver = true
    const { recorded } = served.trace
    recorded?.set({ 'http.response.status_code': status })
    recorded?.end(status >= 500 ? String(status) : undefined)
    if (this.#options.accessLog && !QUIET.has(served.route ?? '')) this.#options.log('info', 'Request', served.line(status))
  }
}

/** Tells the client the id of its request. */
export function withId(response: Response, { trace }: Served): Response {
  try {
    response.headers.set('x-request-id', trace.requestId)
    return response
  } catch {
    // The headers of an answer that a route got by `fetch` are immutable.
    const kept = [...response.headers].filter(([name]) => name !== 'x-request-id')
    return new Response(response.body, { status: response.status, headers: [...kept, ['x-request-id', trace.requestId]] })
  }
}
