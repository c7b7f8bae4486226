import { Bucket } from '../../core/basics/bucket.ts'
import { RateLimiter } from '../../core/basics/rate-limiter.ts'
import type { HttpClient } from '../../core/ports/http.ts'
import { UampError } from '../../protocol/errors.ts'
import { fetchKeys, type KeyPlace } from './fetch-keys.ts'
import type { Found, KeySet, KeySource } from './key-set.ts'
import type { Algorithm } from './token.ts'

const MINUTE_MS = 60_000
/** How long keys are used, whatever their server says. */
const AGE = { least: MINUTE_MS, usual: 5 * MINUTE_MS, most: 24 * 60 * MINUTE_MS }
/** How long keys are used beyond that while newer ones cannot be read: an issuer that is down does not lock everybody out at once. */
const STALE_MS = 10 * MINUTE_MS
/** How long an issuer is left alone after its keys could not be read. */
const FAILED_MS = MINUTE_MS
/** Keys are read again for a `kid` that is not among them: a few times at once, for an issuer that replaces keys, then seldom. */
const UNKNOWN_KEYS = { perSecond: 1 / 15, burst: 4 }

export interface RemoteKeysOptions {
  readonly http: Pick<HttpClient, 'request'>
  readonly monotonic: () => number
  /** Aborted when the server shuts down. */
  readonly closing: AbortSignal
  readonly onFailure: (issuer: string, error: unknown) => void
}

/** The keys of one issuer, read when they are first needed and again when they are due. */
export class RemoteKeys implements KeySource {
  readonly #place: KeyPlace
  readonly #options: RemoteKeysOptions
  readonly #unknownKeys: Bucket
  #keys: KeySet | undefined
  #known: { readonly uri: string; readonly etag: string | undefined } | undefined
  #dueAt = 0
  #retryAt = -Infinity
  #reading: Promise<void> | undefined

  constructor(place: KeyPlace, options: RemoteKeysOptions) {
    this.#place = place
    this.#options = options
    this.#unknownKeys = new Bucket({ ...UNKNOWN_KEYS, monotonic: options.monotonic })
  }

  async find(kid: string | undefined, alg: Algorithm): Promise<Found> {
    const now = this.#options.monotonic()
    if (!this.#keys || now >= this.#dueAt + STALE_MS) {
      await this.#read(now)
      // Keys that are too old are no longer used, even if nothing newer can be read.
      if (!this.#keys || this.#options.monotonic() >= this.#dueAt + STALE_MS) return 'unreachable'
    } else if (now >= this.#dueAt) {
      void this.#read(now)
    }
    const found = await this.#keys.find(kid, alg)
    if (found !== 'unknown') return found
    if (!this.#isFailing) {
      if (!(this.#reading || this.#unknownKeys.take(1))) return found
      await this.#read(now)
    }
    const again = await this.#keys.find(kid, alg)
    // It may be a new key: nobody can tell while the issuer does not answer.
    return again === 'unknown' && this.#isFailing ? 'unreachable' : again
  }

  get #isFailing(): boolean {
    return this.#options.monotonic() < this.#retryAt
  }

  /** Reads the keys, once for all who wait for them. Never rejects. */
  #read(now: number): Promise<void> {
    if (this.#reading) return this.#reading
    if (now < this.#retryAt) return Promise.resolve()
    this.#reading = this.#fetch().finally(() => {
      this.#reading = undefined
    })
    return this.#reading
  }

  async #fetch(): Promise<void> {
    const { http, closing, monotonic, onFailure } = this.#options
    try {
      const { keys, uri, etag, maxAgeMs = AGE.usual } = await fetchKeys(this.#place, { http, signal: closing, known: this.#known })
      this.#keys = keys ?? this.#keys
      this.#known = { uri, etag }
      this.#dueAt = monotonic() + Math.min(AGE.most, Math.max(AGE.least, maxAgeMs))
    } catch (error) {
      this.#retryAt = monotonic() + FAILED_MS
      if (!closing.aborted) onFailure(this.#place.issuer, error)
    }
  }
}

/** The most issuers whose keys are kept. */
const ISSUERS = 256
/** How often strangers may make this server read the keys of an issuer that it does not know. */
const NEW_ISSUERS = { total: { perSecond: 5, burst: 20 }, each: { perSecond: 0.2, burst: 5 } }

interface Known {
  readonly keys: RemoteKeys
  /** A token of this issuer has been right. */
  isProved: boolean
}

/** The keys of issuers that nobody configured, as strangers name them. */
export class ForeignKeys {
  readonly #options: RemoteKeysOptions
  /** The least recently used first. */
  readonly #issuers = new Map<string, Known>()
  readonly #total: Bucket
  readonly #each: RateLimiter

  constructor(options: RemoteKeysOptions) {
    const { monotonic } = options
    this.#options = options
    this.#total = new Bucket({ ...NEW_ISSUERS.total, monotonic })
    this.#each = new RateLimiter({ ...NEW_ISSUERS.each, monotonic })
  }

  /** `from`: tells callers apart. Throws `rate_limited` if they name too many issuers. */
  of(issuer: string, from: string): KeySource {
    let known = this.#issuers.get(issuer)
    if (known) this.#issuers.delete(issuer)
    else known = this.#add(issuer, from)
    this.#issuers.set(issuer, known)
    return known.keys
  }

  /** A token of this issuer was right: it is not forgotten for issuers that strangers make up. */
  prove(issuer: string): void {
    const known = this.#issuers.get(issuer)
    if (known) known.isProved = true
  }

  #add(issuer: string, from: string): Known {
    const wait = this.#each.take(from)
    if (wait > 0 || !this.#total.take(1)) {
      const details = { retry_after: Math.max(1, Math.ceil(wait)) }
      throw new UampError('rate_limited', 'Too many tokens come from issuers that this server does not know', { details })
    }
    if (this.#issuers.size >= ISSUERS) this.#forgetOne()
    return { keys: new RemoteKeys({ issuer, isStranger: true }, this.#options), isProved: false }
  }

  #forgetOne(): void {
    let oldest: string | undefined
    for (const [issuer, { isProved }] of this.#issuers) {
      oldest ??= issuer
      if (isProved) continue
      oldest = issuer
      break
    }
    if (oldest !== undefined) this.#issuers.delete(oldest)
  }
}
