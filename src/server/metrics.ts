import type { Attributes, Work } from '../core/ports/trace.ts'
import type { Meter } from '../core/ports/transport.ts'
import type { Mounted } from './routes.ts'
import type { WorkMeter } from './trace.ts'

export interface Gauges {
  /** Sessions that are open now. */
  readonly openSessions: number
  /** Responses that are running now. */
  readonly openResponses: number
  /** Bytes of sessions and answers in memory, as far as limits count them. */
  readonly heldBytes: number
}

export interface FirstDelta {
  readonly transport: string
  readonly seconds: number
}

/** A piece of work that has ended. `error`: a code, if it failed. */
export interface WorkDone {
  readonly work: Work
  readonly attributes: Attributes
  readonly seconds: number
  readonly error: string | undefined
}

/** The most codes that are counted by name. */
const MOST_CODES = 64

/** The most models, tools, agents or upstreams that are counted by name, and the most characters of a name. */
const MOST_LABELS = 64
const LABEL_LENGTH = 100

/** The most observations that wait to be taken. */
const MOST_PENDING = 1_000

/**
 * The server's counts, as plain numbers: counting happens in the request path, and the library that shows the numbers (prom-client on
 * Node) is loaded only when somebody asks.
 */
export class Metrics implements Meter, WorkMeter {
  gauges: Gauges
  /** By route, then by method and status: `GET 200`. */
  readonly requests = new Map<Mounted | 'unmatched', Map<string, number>>()
  /** By transport. */
  readonly events = new Map<string, number>()
  /** By transport, then by code. */
  readonly errors = new Map<string, Map<string, number>>()
  openSockets = 0
  /** Called when too many observations wait. Without it they are dropped. */
  onPending: (() => void) | undefined
  #pending: FirstDelta[] = []
  #work: WorkDone[] = []
  readonly #labels = new Map<string, Set<string>>()

  constructor(gauges: Gauges = { openSessions: 0, openResponses: 0, heldBytes: 0 }) {
    this.gauges = gauges
  }

  countRequest(mounted: Mounted | undefined, method: string, status: number): void {
    // A stranger can invent methods, and must not choose a label.
    add(inner(this.requests, mounted ?? 'unmatched'), `${mounted ? method : 'other'} ${status}`, 1)
  }

  countEvents(transport: string, count: number): void {
    add(this.events, transport, count)
  }

  countError(transport: string, code: string): void {
    const codes = inner(this.errors, transport)
    // Agents can invent codes without end.
    add(codes, codes.has(code) || codes.size < MOST_CODES ? code : 'other', 1)
  }

  /** The time from `response.create` to the first delta. */
  observeFirstDelta(transport: string, ms: number): void {
    this.#pending.push({ transport, seconds: ms / 1000 })
    if (this.#pending.length >= MOST_PENDING) this.#overflow()
  }

  /** A piece of work that has ended. */
  observeWork(work: Work, attributes: Attributes, { ms, error }: { readonly ms: number; readonly error: string | undefined }): void {
    this.#work.push({ work, attributes, seconds: ms / 1000, error })
    if (this.#work.length >= MOST_PENDING) this.#overflow()
  }

  takeWork(): readonly WorkDone[] {
    const taken = this.#work
    this.#work = []
    return taken
  }

  /** A label of what others have named, of which there may be too many. */
  label(name: string, value: string | number | undefined): string {
    if (value === undefined) return ''
    const values = this.#labels.get(name) ?? new Set()
    this.#labels.set(name, values)
    const text = String(value).slice(0, LABEL_LENGTH)
    if (!values.has(text) && values.size >= MOST_LABELS) return 'other'
    values.add(text)
    return text
  }

  #overflow(): void {
    if (this.onPending) this.onPending()
    else {
      this.#pending = []
      this.#work = []
    }
  }

  takeFirstDeltas(): readonly FirstDelta[] {
    const taken = this.#pending
    this.#pending = []
    return taken
  }
}

function inner<K>(counts: Map<K, Map<string, number>>, key: K): Map<string, number> {
  let found = counts.get(key)
  if (found === undefined) counts.set(key, (found = new Map()))
  return found
}

function add(counts: Map<string, number>, key: string, by: number): void {
  counts.set(key, (counts.get(key) ?? 0) + by)
}
