import { defer } from './defer.ts'

/** Agents that go on in one turn of the event loop. */
const PER_TURN = 4

/**
 * Where agents that never wait take turns. A few at a time get a whole slice each: a thousand of them side by side would get a
 * few events each, and every write would be a small one; and all of them in one turn would leave no time for anybody else.
 */
export class Turnstile {
  #waiting: (() => void)[] = []

  /** Resolves in a later turn of the event loop. */
  pass(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#waiting.push(resolve) === 1) defer(this.#release)
    })
  }

  readonly #release = (): void => {
    const next = this.#waiting.splice(0, PER_TURN)
    if (this.#waiting.length > 0) defer(this.#release)
    for (const go of next) go()
  }
}
