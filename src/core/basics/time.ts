/** The two clocks of the server, named so that nobody passes one for the other. */
export interface Clocks {
  /** The wall clock, in milliseconds since 1970: for times that are shown or stored. It steps when somebody sets it. */
  readonly now: () => number
  /** Milliseconds since some moment. It never steps, so use it to measure durations. */
  readonly monotonic: () => number
}

/** Fills in the real clocks. If only `now` is given, as in tests, it moves both clocks. */
export function clocksOf({ now, monotonic }: Partial<Clocks>): Clocks {
  return { now: now ?? Date.now, monotonic: monotonic ?? now ?? (() => performance.now()) }
}

/** A wall clock that gets ahead of the monotonic one by more than this has leapt. */
const LEAP_MS = 60_000
/** How long the wall clock must keep a new time before anything expires by it. */
const DOUBT_MS = 24 * 3_600_000

/**
 * The wall clock that decides whether stored data has expired. Only wall time outlives the process, but a clock that leaps ahead
 * would delete every conversation at the next sweep. So a leap ahead counts only after a day. A step back counts at once, because it
 * only makes data live longer.
 */
export function expiryClock({ now, monotonic }: Clocks): () => number {
  let wall = now()
  let at = monotonic()
  let doubtedAt: number | undefined
  return () => {
    const [seen, ticks] = [now(), monotonic()]
    const expected = wall + (ticks - at)
    if (seen > expected + LEAP_MS) {
      doubtedAt ??= ticks
      if (ticks - doubtedAt < DOUBT_MS) return expected
    }
    ;[wall, at, doubtedAt] = [seen, ticks, undefined]
    return seen
  }
}

/** The largest number that fits into the three hex digits behind the version. */
const COUNT_MAX = 0xfff

/**
 * Makes ids that nobody can guess and that sort in the order they were made (RFC 9562, UUID version 7, method 1), even within a
 * millisecond or after the clock was set back. Records of the same time then lie side by side in the store.
 */
export function timeOrderedIds(now: () => number): () => string {
  let last = 0
  let count = 0
  let head = ''
  const next = (time: number, from: number): void => {
    const hex = time.toString(16).padStart(12, '0')
    head = `${hex.slice(0, 8)}-${hex.slice(8)}-7`
    last = time
    count = from
  }
  return () => {
    const random = crypto.randomUUID()
    const time = now()
    // The count begins in the lower half, so that there is room to count up.
    if (time > last) next(time, Number.parseInt(random.slice(15, 18), 16) & (COUNT_MAX >> 1))
    else if (++count > COUNT_MAX) next(last + 1, 0)
    return head + count.toString(16).padStart(3, '0') + random.slice(18)
  }
}

/** Resolves after `ms`. Rejects with the signal's reason if that is aborted first. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason as Error)
    const aborted = (): void => {
      clearTimeout(timer)
      reject(signal.reason as Error)
    }
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', aborted)
      resolve()
    }, ms)
    signal.addEventListener('abort', aborted, { once: true })
  })
}

/** Waits for a promise. Rejects if the signal is aborted first, and then ignores what becomes of the promise. */
export async function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  let aborted: () => void = () => undefined
  const stopped = new Promise<never>((_, reject) => {
    aborted = () => reject(signal.reason as Error)
    if (signal.aborted) aborted()
    else signal.addEventListener('abort', aborted, { once: true })
  })
  try {
    return await Promise.race([promise, stopped])
  } catch (thrown) {
    promise.catch(() => undefined)
    throw thrown
  } finally {
    signal.removeEventListener('abort', aborted)
  }
}

const globals = globalThis as { setImmediate?: (run: () => void) => unknown }

/** Runs a callback after promise callbacks and events that are due now, by `setImmediate` where there is one. */
export const defer: (run: () => void) => void = globals.setImmediate
  ? (run) => void globals.setImmediate?.(run)
  : (run) => void setTimeout(run, 0)

/** Resolves in the next turn of the event loop, so that everything that is due runs before. */
export const nextTurn = (): Promise<void> => new Promise((resolve) => defer(resolve))

/** Runs callbacks together at the end of a turn of the event loop, so that a log wakes its readers once for many events. */
export class Ticker {
  #due: (() => void)[] = []

  schedule(run: () => void): void {
    if (this.#due.push(run) === 1) defer(() => this.#tick())
  }

  #tick(): void {
    const due = this.#due
    this.#due = []
    for (const run of due) run()
  }
}

/** How many agents get a whole slice in one turn of the event loop, and how many may begin. */
const PER_TURN = 4
const BEGIN_PER_TURN = 256

/**
 * Lets agents that never wait take turns, a few at a time with a whole slice each. If a thousand ran side by side, each would get a
 * few events and every write would be small; if all got a slice in one turn of the event loop, nothing else would run. An agent that
 * begins gets a few events at once: most then wait for something, and need no turn.
 */
export class Turnstile {
  #beginning: (() => void)[] = []
  #waiting: (() => void)[] = []
  /** Agents that have begun continue before others begin: a thousand half-made responses would take more memory. */
  #going: (() => void)[] = []
  /** How many agents have begun in this turn of the event loop. */
  #begun = 0
  #isScheduled = false

  /** True if this turn of the event loop has room for one more whole slice. */
  get hasRoom(): boolean {
    return this.#begun < PER_TURN
  }

  /**
   * Returns undefined if a new agent may begin at once, because this turn of the event loop has room. `silent`: nobody hears it before
   * its end. Such agents begin a few at a time, as if they had begun: while the first clients ask again, the next ones are served.
   */
  enter(silent: boolean): Promise<void> | undefined {
    this.#schedule()
    if (this.#begun++ < (silent ? PER_TURN : BEGIN_PER_TURN)) return undefined
    return new Promise((resolve) => (silent ? this.#waiting : this.#beginning).push(resolve))
  }

  /** Resolves in a later turn of the event loop; `first`: before all agents that passed without it. */
  pass(first: boolean): Promise<void> {
    this.#schedule()
    return new Promise((resolve) => (first ? this.#going : this.#waiting).push(resolve))
  }

  #schedule(): void {
    if (!this.#isScheduled) defer(this.#turn)
    this.#isScheduled = true
  }

  readonly #turn = (): void => {
    const next = this.#going.splice(0, PER_TURN)
    if (next.length < PER_TURN) next.push(...this.#waiting.splice(0, PER_TURN - next.length))
    const begin = this.#beginning.splice(0, BEGIN_PER_TURN)
    this.#begun = next.length + begin.length
    this.#isScheduled = false
    if (next.length + begin.length > 0) this.#schedule()
    for (const go of next) go()
    for (const go of begin) go()
  }
}
