import { defer } from '../basics/defer.ts'

/** Agents that go on in one turn of the event loop. */
const PER_TURN = 4

/**
 * Where agents that never wait take turns. A few at a time get a whole slice each: a thousand of them side by side would get a
 * few events each, and every write would be a small one; and all of them in one turn would leave no time for anybody else.
 */
export class Turnstile {
  #waiting: (() => void)[] = []
  /** Those who have just begun go on before others begin: a thousand half-made answers are more to remember than a few. */
  #going: (() => void)[] = []
  /** How many went through in this turn of the event loop. */
  #admitted = 0

  /** Lets a newcomer in at once while there is room in this turn of the event loop. */
  enter(): Promise<void> | undefined {
    if (this.#admitted >= PER_TURN || this.#waiting.length > 0 || this.#going.length > 0) return this.pass(false)
    if (this.#admitted++ === 0) defer(this.#turn)
    return undefined
  }

  /** Resolves in a later turn of the event loop; `first`: before those who wait. */
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
