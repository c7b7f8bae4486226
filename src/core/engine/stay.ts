import { UampError } from '../../protocol/errors.ts'
import type { Clocks } from '../basics/clocks.ts'

/** A caller that found a session is expected to read it, to say something in it or to leave it within this time. */
const USE_MS = 10_000

/**
 * How long a session stays in memory. Callers that have found it may not have read it yet, and it must stay for them: if the next
 * caller's came from the store again, two objects would write one log.
 */
export class Stay {
  readonly #clocks: Clocks
  #callers = 0
  #foundAt = 0
  #ending: Promise<void> | undefined
  /** The session leaves memory as soon as nobody needs it there. */
  isReleased = false
  /** Unloaded: the store has the session, and another object may act for it. */
  over: 'ended' | 'unloaded' | undefined

  constructor(clocks: Clocks) {
    this.#clocks = clocks
  }

  get isUsed(): boolean {
    return this.#callers > 0 && this.#clocks.monotonic() - this.#foundAt < USE_MS
  }

  /** Counts a caller that has found the session. */
  found(): void {
    this.#callers = this.isUsed ? this.#callers + 1 : 1
    this.#foundAt = this.#clocks.monotonic()
  }

  left(): void {
    if (this.#callers > 0) this.#callers--
  }

  release(): void {
    this.isReleased = true
    this.left()
  }

  /** Ends the session by `run`, once. Resolves when it has ended. */
  end(run: () => Promise<void>): Promise<void> {
    if (this.over === 'unloaded') return Promise.resolve()
    this.over = 'ended'
    return (this.#ending ??= run())
  }

  /** Throws `not_found` after the end, and `overloaded` for a caller that kept the session for too long without using it. */
  check(): void {
    if (this.over === 'ended') throw new UampError('not_found', 'This session has ended')
    if (this.over === 'unloaded')
      throw new UampError('overloaded', 'The session left memory before this came: send it again', { details: { retry_after: 1 } })
  }
}
