export interface Rate {
  readonly perSecond: number
  readonly burst: number
  /** A clock that does not step: a wall clock that was set back would leave less than nothing, and refuse everybody. */
  readonly monotonic: () => number
}

/** So much at once, and so much a second. */
export class Bucket {
  readonly #rate: Rate
  #left: number
  #at: number

  constructor(rate: Rate) {
    this.#rate = rate
    this.#left = rate.burst
    this.#at = rate.monotonic()
  }

  /** What may be taken now. */
  get left(): number {
    const { perSecond, burst, monotonic } = this.#rate
    const at = monotonic()
    this.#left = Math.min(burst, this.#left + (Math.max(0, at - this.#at) / 1000) * perSecond)
    this.#at = at
    return this.#left
  }

  /** False, and nothing is taken, when there is not enough. */
  take(amount: number): boolean {
    const enough = this.left >= amount
    if (enough) this.#left -= amount
    return enough
  }
}
