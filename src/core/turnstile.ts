import { defer } from './defer.ts'

/** Agents that go on in one turn of the event loop. */
const PER_TURN = 4

/**
 * Where agents that never wait take turns. A few at a time get a whole slice each: a thousand of them side by side would get a
 * few events each, and every write would be a small one; and all of them in one turn would leave no time for anybody else.
 */
export class Turnstile {
  #waiting: (() => void)[] = []
  /** How many went through in this turn of the event loop. */
  #admitted = 0

  /** Lets a newcomer in at once while there is room in this turn of the event loop. */
  enter(): Promise<void> | undefined {
    if (this.#admitted >= PER_TURN || this.#waiting.length > 0) return this.pass()
    if (this.#admitted++ === 0) defer(this.#turn)
    return undefined
  }

  /** Resolves in a later turn of the event loop. */
  pass(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#waiting.push(resolve) === 1 && this.#admitted === 0) defer(this.#turn)
    })
  }

  readonly #turn = (): void => {
    const next = this.#waiting.splice(0, PER_TURN)
    this.#admitted = next.length
    if (next.length > 0) defer(this.#turn)
    for (const go of next) go()
  }
}
