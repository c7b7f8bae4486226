/** Numbers that bound a session and a gateway. */
export interface CoreLimits {
  readonly turnTimeoutMs: number
  /** What one response may hold: it is gathered whole, for its end and for the conversation. */
  readonly outputBytes: number
  /** How long an answer goes on while nobody reads it, and a session that is not stored can be found again. */
  readonly resumeWindowMs: number
  /** How long a turn waits for the request that answers its questions. */
  readonly parkMs: number
  /** Turns of one principal that wait for the next request; beyond it the oldest is given up. */
  readonly parkedPerPrincipal: number
  readonly pendingInputs: number
  readonly pendingBytes: number
  /** What an extension slot (`extensions`, `metadata`, `context` …) may hold, as JSON. */
  readonly slotBytes: number
  /** What everybody holds in memory: what sessions are made of, and what comes in or goes out. Beyond it nothing new begins. */
  readonly heldBytes: number
  /** The same of one principal. */
  readonly heldBytesPerPrincipal: number
  /** How long a session is kept after its last turn. */
  readonly sessionTtlMs: number
  /** Bytes that may be stored: beyond it the oldest sessions are removed. */
  readonly storedBytes: number
  /** The same of one principal. Only looked at while the store holds more than this. */
  readonly storedBytesPerPrincipal: number
  /** A stored session that nobody reads leaves memory after this; it is found again in the store. */
  readonly unloadMs: number
  /** How often idle sessions are let go and expired ones removed. */
  readonly sweepMs: number
  readonly sessions: number
  readonly sessionsPerPrincipal: number
}

/** Node takes a longer time for a millisecond. It is 24 days. */
const LONGEST_TIMER_MS = 2 ** 31 - 1

/** Limits as they count. Those that are timed last as long as a timer can; how long a session is kept is no timer. */
export function limitsFrom<T extends object>(defaults: T, given: Partial<T> = {}): T {
  const bounded = Object.entries(given).map(([name, value]: [string, unknown]): [string, unknown] => {
    const isTimed = typeof value === 'number' && name.endsWith('Ms') && name !== 'sessionTtlMs'
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
  sessions: 20_000,
  sessionsPerPrincipal: 10_000,
}
