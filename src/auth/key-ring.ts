import { storeKey } from '../core/basics/store-key.ts'
import type { Keys, PublicJwk, Purpose, SignKey } from '../core/ports/keys.ts'
import type { Store } from '../core/ports/store.ts'
import { UampError } from '../protocol/errors.ts'
import type { Json } from '../protocol/json.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

export type Alg = SignKey['alg']

/** What each algorithm is called by WebCrypto. */
const ALGORITHMS = {
  RS256: { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256', modulusLength: 2048, publicExponent: new Uint8Array([1, 0, 1]) },
  ES256: { name: 'ECDSA', hash: 'SHA-256', namedCurve: 'P-256' },
  EdDSA: { name: 'Ed25519' },
} satisfies Record<Alg, object>

/** How long the public half of a key is kept when it no longer signs. Answers and cards are evidence, tokens end after minutes. */
const KEPT_MS = {
  tokens: DAY_MS,
  responses: 400 * DAY_MS,
  cards: 30 * DAY_MS,
  envelopes: 400 * DAY_MS,
  payments: 400 * DAY_MS,
} satisfies Record<Purpose, number>
/** The age at which a key is replaced by itself. */
const ROTATED_MS = 90 * DAY_MS
/** How long a replacement that failed, on a full disk for example, is put off. The old key signs on. */
const POSTPONED_MS = HOUR_MS
/** The most public halves of one purpose. Beyond it the oldest go: somebody rotates in a loop. */
const MOST_RETIRED = 256
/** How often a write is tried again that another process was faster with. */
const TRIES = 5

/** A key in the store. */
interface StoredKey {
  readonly kid: string
  readonly alg: Alg
  readonly createdAt: number
  readonly jwk: PublicJwk
  /** The private half, sealed. */
  readonly sealed: string
}

/** A key that no longer signs has no private half any more. */
type RetiredKey = Omit<StoredKey, 'sealed'> & {
  /** When its public half goes, too. */
  readonly until: number
}

/** All keys of one purpose, which are one record, so that two processes cannot both replace them. */
interface Ring {
  readonly current: StoredKey
  /** When the current one began to sign. */
  readonly since: number
  /** Signs next. It is public long before, so that verifiers that keep keys for a while know it when it signs. */
  readonly next: StoredKey
  /** The youngest first. */
  readonly retired: readonly RetiredKey[]
}

/** What an operator may know of a key. */
export interface KeyFacts {
  readonly purpose: Purpose
  readonly kid: string
  readonly alg: Alg
  readonly state: 'signs' | 'next' | 'retired'
  readonly createdAt: number
  /** Until when the public half of a retired key is published. */
  readonly until?: number | undefined
}

export interface KeyRingOptions {
  readonly purpose: Purpose
  readonly alg: Alg
  readonly store: Pick<Store, 'get' | 'set'>
  readonly keys: Keys
  readonly now: () => number
  readonly onError: (error: unknown) => void
}

type Change = (ring: Ring | undefined) => Promise<Ring | undefined>

/** The keys of one purpose. */
export class KeyRing {
  readonly #options: KeyRingOptions
  readonly #key: string
  #known: Promise<{ readonly ring: Ring | undefined; readonly version: number }> | undefined
  #signing: { readonly key: SignKey; readonly since: number } | undefined
  #postponedTo = -Infinity
  /** Changes are made one after the other, because making a key takes time. */
  #last: Promise<unknown> = Promise.resolve()

  constructor(options: KeyRingOptions) {
    this.#options = options
    this.#key = storeKey('', 'signing-keys', options.purpose)
  }

  /** The key that signs now. It is made when it is first asked for. */
  async key(): Promise<SignKey> {
    const signing = this.#signing
    if (signing && !this.#isDue(signing.since)) return signing.key
    return this.#alone(async () => {
      const { ring } = await this.#load()
      if (ring?.current.alg !== this.#options.alg) return this.#use(await this.#change((found) => this.#promoted(found)))
      return this.#use(this.#isDue(ring.since) ? await this.#replacedIfPossible(ring) : ring)
    })
  }

  /** Makes the next key sign, and a new one the next. */
  rotate(): Promise<SignKey> {
    return this.#alone(async () => this.#use(await this.#change((ring) => this.#promoted(ring))))
  }

  /** Takes a key out of use at once: it neither signs nor is public any more. False: there is none of this id. */
  withdraw(kid: string): Promise<boolean> {
    return this.#alone(async () => {
      let found = false
      const ring = await this.#change(async (before) => {
        found = before !== undefined && all(before).some((each) => each.kid === kid)
        return before && found ? this.#without(before, kid) : before
      })
      if (ring?.current.kid !== this.#signing?.key.kid) this.#signing = undefined
      return found
    })
  }

  async publicKeys(): Promise<readonly PublicJwk[]> {
    const { ring } = await this.#load()
    return ring ? [ring.current, ring.next, ...this.#kept(ring)].map(({ jwk }) => jwk) : []
  }

  async list(): Promise<readonly KeyFacts[]> {
    const { ring } = await this.#load()
    if (!ring) return []
    const { purpose } = this.#options
    const facts = ({ kid, alg, createdAt }: Omit<StoredKey, 'sealed'>, state: KeyFacts['state']): KeyFacts => ({
      purpose,
      kid,
      alg,
      state,
      createdAt,
    })
    const retired = this.#kept(ring).map((each): KeyFacts => ({ ...facts(each, 'retired'), until: each.until }))
    return [facts(ring.current, 'signs'), facts(ring.next, 'next'), ...retired]
  }

  /** A clock that was far ahead must not keep a key for years, so a time in the far future is as old as one in the past. */
  #isDue(since: number): boolean {
    const now = this.#options.now()
    return Math.abs(now - since) > ROTATED_MS && now >= this.#postponedTo
  }

  async #replacedIfPossible(ring: Ring): Promise<Ring> {
    try {
      return await this.#change((found) => this.#promoted(found))
    } catch (thrown) {
      this.#postponedTo = this.#options.now() + POSTPONED_MS
      this.#options.onError(thrown)
      return ring
    }
  }

  #kept({ retired }: Ring): readonly RetiredKey[] {
    return retired.filter(({ until }) => until > this.#options.now())
  }

  #alone<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#last.then(work, work)
    this.#last = done.catch(() => undefined)
    return done
  }

  #load() {
    return (this.#known ??= this.#read().catch((thrown: unknown) => {
      this.#known = undefined
      throw thrown
    }))
  }

  async #read() {
    const stored = await this.#options.store.get(this.#key)
    return { ring: stored?.value as unknown as Ring | undefined, version: stored?.version ?? 0 }
  }

  /** Writes the ring that `change` makes of the one before, of which another process may have made a new one meanwhile. */
  async #change(change: (ring: Ring | undefined) => Promise<Ring>): Promise<Ring>
  async #change(change: Change): Promise<Ring | undefined>
  async #change(change: Change): Promise<Ring | undefined> {
    for (let left = TRIES; ; left--) {
      const { ring, version } = await this.#load()
      const after = await change(ring)
      if (after === undefined || after === ring) return ring
      try {
        const written = await this.#options.store.set(this.#key, after as unknown as Json, { ifVersion: version, sync: true })
        this.#known = Promise.resolve({ ring: after, version: written })
        return after
      } catch (thrown) {
        this.#known = undefined
        if (!(thrown instanceof UampError) || thrown.code !== 'conflict' || left <= 1) throw thrown
      }
    }
  }

  async #promoted(ring: Ring | undefined): Promise<Ring> {
    const since = this.#options.now()
    const isNextRight = ring?.next.alg === this.#options.alg
    const [current, next] = await Promise.all([ring && isNextRight ? ring.next : this.#made(), this.#made()])
    return { current, since, next, retired: ring ? [this.#retired(ring.current), ...this.#kept(ring)].slice(0, MOST_RETIRED) : [] }
  }

  /** Whoever has got hold of the current key may have the next one, too: they lie in one place. */
  async #without(ring: Ring, kid: string): Promise<Ring> {
    const retired = ring.retired.filter((each) => each.kid !== kid)
    if (retired.length < ring.retired.length) return { ...ring, retired }
    if (ring.next.kid === kid) return { ...ring, next: await this.#made() }
    const [current, next] = await Promise.all([this.#made(), this.#made()])
    return { current, since: this.#options.now(), next, retired }
  }

  #retired({ sealed: _, ...key }: StoredKey): RetiredKey {
    return { ...key, until: this.#options.now() + KEPT_MS[this.#options.purpose] }
  }

  async #made(): Promise<StoredKey> {
    const { keys, now, alg } = this.#options
    const pair = (await crypto.subtle.generateKey(ALGORITHMS[alg], true, ['sign', 'verify'])) as CryptoKeyPair
    const kid = crypto.randomUUID()
    const { key_ops: _, ext: _e, ...shown } = await crypto.subtle.exportKey('jwk', pair.publicKey)
    const secret = JSON.stringify(await crypto.subtle.exportKey('jwk', pair.privateKey))
    const jwk = { ...shown, kid, alg, use: 'sig' } as PublicJwk
    return { kid, alg, createdAt: now(), jwk, sealed: keys.seal(secret, this.#about(kid)) }
  }

  async #use({ current: { kid, alg, sealed }, since }: Ring): Promise<SignKey> {
    if (this.#signing?.key.kid === kid) return this.#signing.key
    const jwk = JSON.parse(this.#options.keys.open(sealed, this.#about(kid))) as JsonWebKey
    const algorithm = ALGORITHMS[alg]
    const secret = await crypto.subtle.importKey('jwk', jwk, algorithm, false, ['sign'])
    const key = {
      kid,
      alg,
      sign: async (bytes: Uint8Array) => new Uint8Array(await crypto.subtle.sign(algorithm, secret, bytes as BufferSource)),
    }
    this.#signing = { key, since }
    return key
  }

  #about(kid: string): string {
    return storeKey(this.#key, kid)
  }
}

function all({ current, next, retired }: Ring): readonly Pick<StoredKey, 'kid'>[] {
  return [current, next, ...retired]
}
