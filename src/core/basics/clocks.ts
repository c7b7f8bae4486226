/** The two clocks of the server. A part that is given one of them must not be given the other by mistake. */
export interface Clocks {
  /** The wall clock, in milliseconds since 1970: for what is shown and what is stored. It steps when somebody sets it. */
  readonly now: () => number
  /** Milliseconds since some moment. It never steps, so every duration is measured with it. */
  readonly monotonic: () => number
}

/** Whoever gives only `now`, as a test does, moves both clocks with it. */
export function clocksOf({ now, monotonic }: Partial<Clocks>): Clocks {
  return { now: now ?? Date.now, monotonic: monotonic ?? now ?? (() => performance.now()) }
}

/** A wall clock that is ahead of the monotonic one by more than this has leapt. */
const LEAP_MS = 60_000
/** How long the wall clock must keep a new time before anything is deleted by it. */
const DOUBT_MS = 24 * 3_600_000

/**
 * The wall clock for the question whether something stored has expired. Only wall time outlives the process, but a clock that
 * leaps ahead would delete every conversation at the next sweep. So a leap ahead is believed after a day. A step back counts at
 * once: it only makes things live longer.
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
