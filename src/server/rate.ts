import type { Quota } from '../core/ports/transport.ts'

export interface RateOptions {
  readonly perSecond: number
  readonly burst: number
  readonly now: () => number
}

interface Bucket {
  tokens: number
  at: number
}

/** Buckets kept at once. Beyond it those that are full again go, then the oldest. */
const MOST_BUCKETS = 10_000

/** One token bucket per key. */
export class RateLimiter {
  readonly #options: RateOptions
  readonly #buckets = new Map<string, Bucket>()

  constructor(options: RateOptions) {
    this.#options = options
  }

  /** Takes one token: 0 if there was one, else the seconds until there is. The clock is asked only when they have run out. */
  take(key: string): number {
    const bucket = this.#buckets.get(key) ?? this.#add(key)
    if (bucket.tokens >= 1 || this.#refill(bucket) >= 1) {
      bucket.tokens -= 1
      return 0
    }
    return (1 - bucket.tokens) / this.#options.perSecond
  }

  left(key: string): Quota {
    const { perSecond, burst } = this.#options
    const bucket = this.#buckets.get(key)
    const tokens = bucket ? this.#refill(bucket) : burst
    return { limit: burst, remaining: Math.floor(tokens), resetMs: Math.ceil(((burst - tokens) / perSecond) * 1000) }
  }

  #add(key: string): Bucket {
    const { burst, now } = this.#options
    const at = now()
    if (this.#buckets.size >= MOST_BUCKETS) this.#prune(at)
    const bucket = { tokens: burst, at }
    this.#buckets.set(key, bucket)
    return bucket
  }

  #refill(bucket: Bucket): number {
    const { perSecond, burst, now } = this.#options
    const at = now()
    bucket.tokens = Math.min(burst, bucket.tokens + ((at - bucket.at) / 1000) * perSecond)
    bucket.at = at
    return bucket.tokens
  }

  #prune(at: number): void {
    const { perSecond, burst } = this.#options
    for (const [key, bucket] of this.#buckets) {
      if (bucket.tokens + ((at - bucket.at) / 1000) * perSecond >= burst) this.#buckets.delete(key)
    }
    for (const key of this.#buckets.keys()) {
      if (this.#buckets.size < MOST_BUCKETS) return
      this.#buckets.delete(key)
    }
  }
}
