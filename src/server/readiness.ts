import type { Store } from '../core/ports/store.ts'
import type { Logger } from '../core/ports/transport.ts'

/** Anybody may ask, so the store is asked no more often than this, whoever asks. */
const PROBE_EVERY_MS = 1_000
/** A disk that does not answer for so long counts as one that refuses. */
const PROBE_MS = 5_000

export interface ReadinessOptions {
  readonly store: Store
  readonly log: Logger
  /** A monotonic clock. */
  readonly clock?: () => number
}

/** Whether the store would keep what clients send now. A change is logged once, for operators who see only that `/ready` fails. */
export class Readiness {
  readonly #store: Store
  readonly #log: Logger
  readonly #clock: () => number
  /** The last probe: settles when the store has answered, or after the time it has for that. */
  #asked: Promise<void> = Promise.resolve()
  #askedAt = -Infinity
  #isUnderWay = false
  #isSound = true

  constructor({ store, log, clock = () => performance.now() }: ReadinessOptions) {
    this.#store = store
    this.#log = log
    this.#clock = clock
  }

  /** False: the store is full, damaged or out of reach. */
  async isSound(): Promise<boolean> {
    // One at a time: a disk that hangs is not given more.
    if (!this.#isUnderWay && this.#clock() - this.#askedAt >= PROBE_EVERY_MS) this.#asked = this.#ask()
    await this.#asked
    return this.#isSound
  }

  async #ask(): Promise<void> {
    this.#askedAt = this.#clock()
    this.#isUnderWay = true
    const answer = this.#probe().finally(() => (this.#isUnderWay = false))
    let timer: ReturnType<typeof setTimeout> | undefined
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(() => {
        this.#note(new Error('The store does not answer'))
        resolve()
      }, PROBE_MS)
    })
    await Promise.race([answer, late])
    clearTimeout(timer)
  }

  async #probe(): Promise<void> {
    try {
      await this.#store.probe?.()
      this.#note(undefined)
    } catch (thrown) {
      this.#note(thrown)
    }
  }

  #note(error: unknown): void {
    const isSound = error === undefined
    if (isSound === this.#isSound) return
    this.#isSound = isSound
    if (isSound) this.#log('info', 'The store can be written again')
    else this.#log('error', 'The store cannot be written: the server is not ready', { error })
  }
}
