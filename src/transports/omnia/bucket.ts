/** So much at once, and so much a second. */
export class Bucket {
  readonly #perSecond: number
  readonly #burst: number
  readonly #now: () => number
  #left: number
  #at: number

  constructor(perSecond: number, burst: number, now: () => number) {
    this.#perSecond = perSecond
    this.#burst = burst
    this.#now = now
    this.#left = burst
    this.#at = now()
  }

  /** False, and nothing is taken, when there is not enough. */
  take(amount: number): boolean {
    const now = this.#now()
    this.#left = Math.min(this.#burst, this.#left + ((now - this.#at) / 1000) * this.#perSecond)
    this.#at = now
    if (this.#left < amount) return false
    this.#left -= amount
    return true
  }
}
