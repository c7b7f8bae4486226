import { HOPS_HEADER, hopsIn } from '../core/basics/hops.ts'
import type { Attributes, Span, Trace, Work } from '../core/ports/trace.ts'

/** What a request says about itself. */
export interface Incoming {
  readonly requestId: string | null | undefined
  readonly traceparent: string | null | undefined
  readonly tracestate: string | null | undefined
  readonly hops: string | null | undefined
}

/** A span of a library that records them. */
export interface RecordedSpan {
  readonly traceId: string
  /** The headers by which other servers continue this span. */
  readonly headers: Readonly<Record<string, string>>
  begin(name: string, options: RecordOptions): RecordedSpan
  set(attributes: Attributes): void
  run<T>(code: () => T): T
  end(error: string | undefined): void
}

export interface RecordOptions {
  readonly kind: 'server' | 'client' | 'internal'
  readonly attributes: Attributes
}

/** A library that records spans. Undefined: nobody records this request. */
export interface Recorder {
  /** False as long as nobody would get the spans. */
  readonly active: boolean
  begin(name: string, options: RecordOptions & { readonly from: Readonly<Record<string, string>> }): RecordedSpan | undefined
}

/** A piece of work that has ended. `error`: a code, if it failed. */
export interface WorkDone {
  readonly work: Work
  /** Those that it began with. */
  readonly attributes: Attributes
  /** Those that were added. Apart, because joining them costs more than all else that is done with them. */
  readonly added?: Attributes | undefined
  readonly ms: number
  readonly error: string | undefined
}

/** Told when a piece of work has ended, for metrics. */
export interface WorkMeter {
  observeWork(done: WorkDone): void
}

/** Letters that are safe in a header, a log and a terminal. */
const SANE = /^[A-Za-z0-9][A-Za-z0-9._:/+=@-]{0,127}$/
/**
 * Trace Context §3.2: the version, the trace, the parent and the flags. Zeros alone are no id, and ff is no version. Later versions may
 * say more after another dash.
 */
const TRACEPARENT = /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-|$)/
const SAMPLED = 1
/** Trace Context §3.3.1.5 asks to pass on 512 characters. A header has no others than these. */
const TRACESTATE = /^[\x20-\x7e]{1,512}$/

/** The client's own id for a request if it can stand in logs, else a new one. */
export function requestIdFrom(given: string | null | undefined, newId = () => crypto.randomUUID() as string): string {
  return given && SANE.test(given) ? given : `req_${newId()}`
}

/** Ids of one process: counted, which costs a quarter of a random one. Nobody can do anything with an id. */
export function requestIds(): () => string {
  const prefix = crypto.randomUUID().replaceAll('-', '').slice(0, 16)
  // Not from zero: how many requests there were is nobody's business.
  let next = crypto.getRandomValues(new Uint16Array(1))[0] ?? 0
  return () => `${prefix}-${next++}`
}

interface Passed {
  readonly traceId: string | undefined
  readonly headers: Readonly<Record<string, string>>
}

const NOTHING: Passed = { traceId: undefined, headers: {} }

/** The trace of the client, as far as it is one. */
function passedOn(traceparent: string, tracestate: string | null | undefined): Passed {
  const [, version, traceId = '', parent, flags = '', more] = TRACEPARENT.exec(traceparent) ?? []
  if (version === undefined || (version === '00' && more !== '')) return NOTHING
  // Trace Context §4.3: what a later version says is told in the words of this one.
  const known = version === '00' ? flags : `0${Number.parseInt(flags, 16) & SAMPLED}`
  const state = tracestate && TRACESTATE.test(tracestate) ? { tracestate } : {}
  return { traceId, headers: { traceparent: `00-${traceId}-${parent}-${known}`, ...state } }
}

export interface TraceOptions {
  readonly newId: () => string
  readonly meter: WorkMeter
}

/** The request that work is done for. Without a library that records spans, the trace of the client is passed on as it came. */
export class RequestTrace implements Trace {
  readonly requestId: string
  readonly hops: number
  readonly #meter: WorkMeter
  readonly #passed: Passed
  #recorded: RecordedSpan | undefined
  #fields: Readonly<Record<string, string>> | undefined

  constructor({ requestId, traceparent, tracestate, hops }: Incoming, { newId, meter }: TraceOptions) {
    this.requestId = requestIdFrom(requestId, newId)
    this.hops = hops == null ? 0 : hopsIn(hops)
    this.#meter = meter
    this.#passed = traceparent ? passedOn(traceparent, tracestate) : NOTHING
  }

  /** From now on the library records what is done for the request. */
  record(recorder: Recorder, name: string, attributes: Attributes): void {
    this.#recorded = recorder.begin(name, { kind: 'server', attributes, from: this.#passed.headers })
    this.#fields = undefined
  }

  get recorded(): RecordedSpan | undefined {
    return this.#recorded
  }

  get fields(): Readonly<Record<string, string>> {
    const trace = this.#recorded?.traceId ?? this.#passed.traceId
    return (this.#fields ??= { request_id: this.requestId, ...(trace !== undefined && { trace_id: trace }) })
  }

  get headers(): Readonly<Record<string, string>> {
    return outgoing(this, this.#recorded?.headers ?? this.#passed.headers)
  }

  begin(work: Work, name: string, attributes: Attributes = {}): Span {
    return new WorkSpan(this, { work, name, attributes, within: this.#recorded, meter: this.#meter })
  }
}

function outgoing({ requestId, hops }: Pick<Trace, 'requestId' | 'hops'>, trace: Passed['headers']): Passed['headers'] {
  return { 'x-request-id': requestId, [HOPS_HEADER]: String(hops + 1), ...trace }
}

interface WorkInit {
  readonly work: Work
  readonly name: string
  readonly attributes: Attributes
  readonly within: RecordedSpan | undefined
  readonly meter: WorkMeter
}

class WorkSpan implements Span {
  readonly #request: Trace
  readonly #work: WorkInit
  readonly #recorded: RecordedSpan | undefined
  readonly #begun = performance.now()
  #added: Attributes | undefined
  #ended = false

  constructor(request: Trace, work: WorkInit) {
    const { work: kind, name, attributes, within } = work
    this.#request = request
    this.#work = work
    this.#recorded = within?.begin(name, { kind: kind === 'chat' || kind === 'upstream' ? 'client' : 'internal', attributes })
  }

  get requestId(): string {
    return this.#request.requestId
  }

  get hops(): number {
    return this.#request.hops
  }

  get fields(): Readonly<Record<string, string>> {
    return this.#request.fields
  }

  get headers(): Readonly<Record<string, string>> {
    return this.#recorded ? outgoing(this, this.#recorded.headers) : this.#request.headers
  }

  begin(work: Work, name: string, attributes: Attributes = {}): Span {
    return new WorkSpan(this.#request, { work, name, attributes, within: this.#recorded, meter: this.#work.meter })
  }

  set(attributes: Attributes): void {
    this.#added = this.#added ? { ...this.#added, ...attributes } : attributes
    this.#recorded?.set(attributes)
  }

  run<T>(code: () => T): T {
    return this.#recorded ? this.#recorded.run(code) : code()
  }

  end(error?: string): void {
    if (this.#ended) return
    this.#ended = true
    const { work, attributes, meter } = this.#work
    meter.observeWork({ work, attributes, added: this.#added, ms: performance.now() - this.#begun, error })
    this.#recorded?.end(error)
  }
}
