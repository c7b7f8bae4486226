import { Bucket, type Rate } from './bucket.ts'

/** The most buckets. Beyond it, full ones go first, then the oldest. */
const MOST_BUCKETS = 10_000
/** How many stay. The room for more saves a crowd of new keys from looking at all buckets each time. */
const KEPT_BUCKETS = 9_000

/** What is left of a bucket. */
interface Left {
  readonly limit: number
  readonly remaining: number
  readonly resetMs: number
}

/** One token bucket per key. */
export class RateLimiter {
  readonly #rate: Rate
  readonly #buckets = new Map<string, Bucket>()

  constructor(rate: Rate) {
    this.#rate = rate
  }

  /** Takes one token: 0 if there was one, else the seconds until there is. */
  take(key: string): number {
    const bucket = this.#buckets.get(key) ?? this.#add(key)
    const { left } = bucket
    if (left < 1) return (1 - left) / this.#rate.perSecond
    bucket.take(1)
    return 0
  }

  left(key: string): Left {
    const { perSecond, burst } = this.#rate
    const tokens = this.#buckets.get(key)?.left ?? burst
    return { limit: burst, remaining: Math.floor(tokens), resetMs: Math.ceil(((burst - tokens) / perSecond) * 1000) }
  }

  #add(key: string): Bucket {
    if (this.#buckets.size >= MOST_BUCKETS) this.#prune()
    const bucket = new Bucket(this.#rate)
    this.#buckets.set(key, bucket)
    return bucket
  }

  #prune(): void {
    for (const [key, bucket] of this.#buckets) if (bucket.left >= this.#rate.burst) this.#buckets.delete(key)
    for (const key of this.#buckets.keys()) {
      if (this.#buckets.size <= KEPT_BUCKETS) return
      this.#buckets.delete(key)
    }
  }
}
