export interface Rate {
  readonly perSecond: number
  readonly burst: number
  readonly now: () => number
}

/** So much at once, and so much a second. */
export class Bucket {
  readonly #rate: Rate
  #left: number
  #at: number

  constructor(rate: Rate) {
    this.#rate = rate
    this.#left = rate.burst
    this.#at = rate.now()
  }

  /** What may be taken now. */
  get left(): number {
    const { perSecond, burst, now } = this.#rate
    const at = now()
    this.#left = Math.min(burst, this.#left + ((at - this.#at) / 1000) * perSecond)
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
