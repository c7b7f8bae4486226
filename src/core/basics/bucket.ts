export interface Rate {
  readonly perSecond: number
  readonly burst: number
  /** A clock that never steps: setting a wall clock would change what is left. */
  readonly monotonic: () => number
}

/** A token bucket: allows `burst` at once and `perSecond` in the long run. */
export class Bucket {
  readonly #rate: Rate
  #left: number
  #at: number

  constructor(rate: Rate) {
    this.#rate = rate
    this.#left = rate.burst
    this.#at = rate.monotonic()
  }

  /** How much may be taken now. */
  get left(): number {
    const { perSecond, burst, monotonic } = this.#rate
    const at = monotonic()
    this.#left = Math.min(burst, this.#left + (Math.max(0, at - this.#at) / 1000) * perSecond)
    this.#at = at
    return this.#left
  }

  /** Takes nothing and returns false when there is not enough. */
  take(amount: number): boolean {
    const enough = this.left >= amount
    if (enough) this.#left -= amount
    return enough
  }
}
