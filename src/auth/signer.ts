import type { Keys, PublicJwk, Purpose, SignKey, Signer } from '../core/ports/keys.ts'
import type { Store } from '../core/ports/store.ts'
import { KeyRing, type Alg, type KeyFacts } from './key-ring.ts'

export type { KeyFacts } from './key-ring.ts'

/** RS256 is what every verifier of JWTs has; A2A recommends ES256 for cards. */
const DEFAULTS = { tokens: 'RS256', responses: 'RS256', cards: 'ES256', envelopes: 'ES256', payments: 'RS256' } satisfies Record<
  Purpose,
  Alg
>

export const PURPOSES = Object.keys(DEFAULTS) as readonly Purpose[]

export interface SignerOptions {
  readonly store: Pick<Store, 'get' | 'set'>
  /** Seals the private keys in the store. */
  readonly keys: Keys
  readonly now: () => number
  readonly algorithms?: Partial<Record<Purpose, Alg>> | undefined
  /** Gets the reason why a key that is old enough was not replaced. It signs on. */
  readonly onError?: (error: unknown) => void
}

/** A signer, and what an operator does with its keys. */
export interface KeyedSigner extends Signer {
  /** All keys that there are, by purpose. */
  list(): Promise<readonly KeyFacts[]>
  /** Takes a key out of use at once: it neither signs nor is public any more. False: there is none of this id. */
  withdraw(kid: string): Promise<boolean>
}

/** Keys that are kept in the store, sealed, and made when they are first needed. */
export function storedSigner({ algorithms, onError = () => undefined, ...options }: SignerOptions): KeyedSigner {
  const rings = new Map(
    PURPOSES.map((purpose) => [purpose, new KeyRing({ ...options, onError, purpose, alg: algorithms?.[purpose] ?? DEFAULTS[purpose] })]),
  )
  const ring = (purpose: Purpose): KeyRing => rings.get(purpose) as KeyRing
  const inAll = async <T>(ask: (each: KeyRing) => Promise<readonly T[]>): Promise<readonly T[]> =>
    (await Promise.all([...rings.values()].map(ask))).flat()
  return {
    key: (purpose): Promise<SignKey> => ring(purpose).key(),
    rotate: (purpose): Promise<SignKey> => ring(purpose).rotate(),
    publicJwks: async (purpose): Promise<{ readonly keys: readonly PublicJwk[] }> => ({
      keys: purpose === undefined ? await inAll((each) => each.publicKeys()) : await ring(purpose).publicKeys(),
    }),
    list: () => inAll((each) => each.list()),
    withdraw: async (kid) => (await inAll(async (each) => [await each.withdraw(kid)])).includes(true),
  }
}
