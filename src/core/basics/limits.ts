/** Bounds of a session and of a gateway. */
export interface CoreLimits {
  readonly turnTimeoutMs: number
  /** Largest output of one response, which memory holds as a whole for its end and for the conversation. */
  readonly outputBytes: number
  /** How long a response continues while nobody reads it, and how long a session that is not stored can be found again. */
  readonly resumeWindowMs: number
  /** How long a parked turn waits for the request that answers its questions. */
  readonly parkMs: number
  /** Most parked turns of one principal; beyond it the oldest is given up. */
  readonly parkedPerPrincipal: number
  readonly pendingInputs: number
  readonly pendingBytes: number
  /** Largest extension slot (`extensions`, `metadata`, `context` …), as JSON. */
  readonly slotBytes: number
  /** Most memory for all sessions and for data on its way in or out. Beyond it nothing new begins. */
  readonly heldBytes: number
  /** The same for one principal. */
  readonly heldBytesPerPrincipal: number
  /** How long a session is kept after its last response. */
  readonly sessionTtlMs: number
  /** Most bytes in the store; beyond it the oldest sessions are removed. */
  readonly storedBytes: number
  /** The same for one principal. Checked only while the whole store holds more than this. */
  readonly storedBytesPerPrincipal: number
  /** A stored session that nobody reads leaves memory after this time. It stays in the store. */
  readonly unloadMs: number
  /** How often idle sessions are taken out of memory and expired ones removed. */
  readonly sweepMs: number
  /** Largest value of an agent's own state (`turn.store`), as JSON. */
  readonly stateBytes: number
  /** Most keys of an agent's state in one session, for one principal, and for the agent itself. */
  readonly stateKeys: number
  /** How long an agent's state for a principal is kept after it was last written. */
  readonly stateTtlMs: number
  readonly sessions: number
  readonly sessionsPerPrincipal: number
  /** Most servers that may have passed a request on before it comes here: agents that call each other in a circle end by it. */
  readonly hops: number
}

/** Node treats a longer timer as one millisecond. This is 24 days. */
const LONGEST_TIMER_MS = 2 ** 31 - 1

/** Ages of what is stored, which no timer waits for. */
const UNTIMED: ReadonlySet<string> = new Set(['sessionTtlMs', 'stateTtlMs'])

/** The defaults with the given limits. Times are cut to what a timer can take, except those that need no timer. */
export function limitsFrom<T extends object>(defaults: T, given: Partial<T> = {}): T {
  const bounded = Object.entries(given).map(([name, value]: [string, unknown]): [string, unknown] => {
    const isTimed = typeof value === 'number' && name.endsWith('Ms') && !UNTIMED.has(name)
    return [name, isTimed ? Math.min(value, LONGEST_TIMER_MS) : value]
  })
  return { ...defaults, ...Object.fromEntries(bounded) }
}

export const CORE_LIMITS: CoreLimits = {
  turnTimeoutMs: 30 * 60_000,
  outputBytes: 64 * 1024 * 1024,
  resumeWindowMs: 120_000,
  parkMs: 10 * 60_000,
  parkedPerPrincipal: 100,
  pendingInputs: 512,
  pendingBytes: 16 * 1024 * 1024,
  slotBytes: 64 * 1024,
  heldBytes: 512 * 1024 * 1024,
  heldBytesPerPrincipal: 256 * 1024 * 1024,
  sessionTtlMs: 7 * 24 * 3_600_000,
  storedBytes: 64 * 1024 * 1024 * 1024,
  storedBytesPerPrincipal: 16 * 1024 * 1024 * 1024,
  unloadMs: 60_000,
  sweepMs: 10_000,
  stateBytes: 64 * 1024,
  stateKeys: 256,
  stateTtlMs: 365 * 24 * 3_600_000,
  sessions: 20_000,
  sessionsPerPrincipal: 10_000,
  hops: 8,
}
