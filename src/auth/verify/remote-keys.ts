import { Bucket } from '../../core/basics/bucket.ts'
import { RateLimiter } from '../../core/basics/rate-limiter.ts'
import { KeptDocument } from '../../core/http/kept-document.ts'
import type { HttpClient } from '../../core/ports/http.ts'
import { UampError } from '../../protocol/errors.ts'
import { fetchKeys, type KeyPlace } from './fetch-keys.ts'
import type { Found, KeySet, KeySource } from './key-set.ts'
import type { Algorithm } from './token.ts'

export interface RemoteKeysOptions {
  readonly http: Pick<HttpClient, 'request'>
  readonly monotonic: () => number
  /** Aborted when the server shuts down. */
  readonly closing: AbortSignal
  readonly onFailure: (issuer: string, error: unknown) => void
}

interface Known {
  readonly keys: KeySet
  readonly uri: string
  readonly etag: string | undefined
}

/** The keys of one issuer. */
export class RemoteKeys implements KeySource {
  readonly #document: KeptDocument<Known>

  constructor(place: KeyPlace, { http, monotonic, closing, onFailure }: RemoteKeysOptions) {
    this.#document = new KeptDocument({
      monotonic,
      onFailure: (error) => closing.aborted || onFailure(place.issuer, error),
      fetch: async (known) => {
        const { keys = known?.keys, uri, etag, maxAgeMs } = await fetchKeys(place, { http, signal: closing, known })
        if (!keys) throw new Error(`${uri} has not changed, but was never read`)
        return { value: { keys, uri, etag }, maxAgeMs }
      },
    })
  }

  async find(kid: string | undefined, alg: Algorithm): Promise<Found> {
    const known = await this.#document.get()
    if (!known) return 'unreachable'
    const found = await known.keys.find(kid, alg)
    if (found !== 'unknown') return found
    const again = await (await this.#document.renewed())?.keys.find(kid, alg)
    // It may be a new key: nobody can tell while the issuer does not answer.
    return again === undefined || (again === 'unknown' && this.#document.isFailing) ? 'unreachable' : again
  }
}

/** The most issuers whose keys are kept. */
const ISSUERS = 256
/** How often strangers may make this server read the keys of an issuer that it does not know. */
const NEW_ISSUERS = { total: { perSecond: 5, burst: 20 }, each: { perSecond: 0.2, burst: 5 } }

interface Foreign {
  readonly keys: RemoteKeys
  /** A token of this issuer has been right. */
  isProved: boolean
}

/** The keys of issuers that nobody configured, as strangers name them. */
export class ForeignKeys {
  readonly #options: RemoteKeysOptions
  /** The least recently used first. */
  readonly #issuers = new Map<string, Foreign>()
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

  #add(issuer: string, from: string): Foreign {
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
