import { defer } from '../basics/defer.ts'

/** How many agents continue in one turn of the event loop. */
const PER_TURN = 4

/**
 * Lets agents that never wait take turns, a few at a time with a whole slice each. If a thousand ran side by side, each would get a
 * few events and every write would be small; if all got a slice in one turn of the event loop, nothing else would run.
 */
export class Turnstile {
  #waiting: (() => void)[] = []
  /** Agents that have begun continue before others begin: a thousand half-made responses would take more memory. */
  #going: (() => void)[] = []
  /** How many agents were let through in this turn of the event loop. */
  #admitted = 0

  /** Returns undefined if a new agent may begin at once, because this turn of the event loop has room. */
  enter(): Promise<void> | undefined {
    if (this.#admitted >= PER_TURN || this.#waiting.length > 0 || this.#going.length > 0) return this.pass(false)
    if (this.#admitted++ === 0) defer(this.#turn)
    return undefined
  }

  /** Resolves in a later turn of the event loop; `first`: before all agents that passed without it. */
  pass(first: boolean): Promise<void> {
    return new Promise((resolve) => {
      if (this.#admitted === 0 && this.#waiting.length + this.#going.length === 0) defer(this.#turn)
      ;(first ? this.#going : this.#waiting).push(resolve)
    })
  }

  readonly #turn = (): void => {
    const next = this.#going.splice(0, PER_TURN)
    if (next.length < PER_TURN) next.push(...this.#waiting.splice(0, PER_TURN - next.length))
    this.#admitted = next.length
    if (next.length > 0) defer(this.#turn)
    for (const go of next) go()
  }
}
