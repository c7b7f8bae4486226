import type { Meter } from '../core/ports/transport.ts'
import { Labelled, Sizes } from './labelled.ts'
import type { Mounted } from './routes.ts'
import { WorkCounts } from './work-counts.ts'

export interface Gauges {
  /** Sessions that are open now. */
  readonly openSessions: number
  /** Responses that are running now. */
  readonly openResponses: number
  /** Bytes of sessions and answers in memory, as far as limits count them. */
  readonly heldBytes: number
}

/** The money of this server, for those who watch it. */
export interface PaymentGauges {
  readonly counts: {
    /** Payments by what became of them. */
    readonly outcomes: ReadonlyMap<string, number>
    /** What the last check of the ledger has found. */
    readonly problems: number
  }
  /** How many payments wait to be settled elsewhere. */
  unsettled(): Promise<number>
}

/** The most codes that are counted by name. */
const MOST_CODES = 64

const FIRST_DELTA_SECONDS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]

/**
 * The server's counts, as plain numbers: counting happens in the request path, and the library that shows the numbers (prom-client on
 * Node) is loaded only when somebody asks.
 */
export class Metrics implements Meter {
  gauges: Gauges
  /** Undefined: the ledger is somebody else's. */
  payments: PaymentGauges | undefined
  /** By route, then by method and status: `GET 200`. */
  readonly requests = new Map<Mounted | 'unmatched', Map<string, number>>()
  /** By transport. */
  readonly events = new Map<string, number>()
  /** By transport, then by code. */
  readonly errors = new Map<string, Map<string, number>>()
  openSockets = 0
  /** By transport. */
  readonly firstDeltas = new Labelled(['transport'], () => new Sizes(FIRST_DELTA_SECONDS))
  readonly work = new WorkCounts()

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
    this.firstDeltas.at(transport).observe(ms / 1000)
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
