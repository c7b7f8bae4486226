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
