import type { Store } from '../core/ports/store.ts'
import type { Logger } from '../core/ports/transport.ts'

/** The store is probed no more often than this, because anybody may ask. */
const PROBE_EVERY_MS = 1_000
/** A disk that does not answer for so long counts as broken. */
const PROBE_MS = 5_000

export interface ReadinessOptions {
  readonly store: Store
  readonly log: Logger
  readonly monotonic: () => number
}

/** Tells whether the store takes writes. Logs each change once, for operators who see only that `/ready` fails. */
export class Readiness {
  readonly #options: ReadinessOptions
  /** The last probe: settles when the store has answered, or when its time is over. */
  #asked: Promise<void> = Promise.resolve()
  #askedAt = -Infinity
  #isUnderWay = false
  #isSound = true

  constructor(options: ReadinessOptions) {
    this.#options = options
  }

  /** False if the store is full, damaged or out of reach. */
  async isSound(): Promise<boolean> {
    // One probe at a time: a disk that hangs must not get more.
    if (!this.#isUnderWay && this.#options.monotonic() - this.#askedAt >= PROBE_EVERY_MS) this.#asked = this.#ask()
    await this.#asked
    return this.#isSound
  }

  async #ask(): Promise<void> {
    this.#askedAt = this.#options.monotonic()
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
      await this.#options.store.probe?.()
      this.#note(undefined)
    } catch (thrown) {
      this.#note(thrown)
    }
  }

  #note(error: unknown): void {
    const isSound = error === undefined
    if (isSound === this.#isSound) return
    this.#isSound = isSound
    const { log } = this.#options
    if (isSound) log('info', 'The store can be written again')
    else log('error', 'The store cannot be written: the server is not ready', { error })
  }
}
