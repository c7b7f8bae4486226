import { isRecord, recordsIn } from '../../protocol/json.ts'
import { ALGORITHMS, type Algorithm } from './token.ts'

/** The most keys of one issuer. */
const KEYS = 64
/** RSA of at most 8,192 bits with a small exponent: a larger one would make every check expensive. */
const MODULUS_CHARS = 1366
/** RFC 7518 §3.3, §3.5: a shorter one can be broken. */
const MODULUS_BITS = 2048
const EXPONENT_CHARS = 8
const PRIVATE = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k'] as const

type Jwk = Readonly<Record<string, unknown>>

/** True if it is a public key for this algorithm, and of a size that is cheap to use. */
export function isPublicKey(jwk: Jwk, alg: Algorithm): boolean {
  if (PRIVATE.some((member) => member in jwk)) return false
  if (jwk['use'] !== undefined && jwk['use'] !== 'sig') return false
  if (jwk['alg'] !== undefined && jwk['alg'] !== alg && !(isEdwards(jwk['alg']) && isEdwards(alg))) return false
  const operations = jwk['key_ops']
  if (operations !== undefined && !(Array.isArray(operations) && operations.includes('verify'))) return false
  const { kty, crv, n, e } = jwk
  const kind = ALGORITHMS[alg]
  if (kind === 'RSA') return kty === 'RSA' && isShort(n, MODULUS_CHARS) && isShort(e, EXPONENT_CHARS)
  return kty === (kind === 'Ed25519' ? 'OKP' : 'EC') && crv === kind
}

/** Two names of one algorithm (RFC 9864). */
function isEdwards(alg: unknown): boolean {
  return alg === 'EdDSA' || alg === 'Ed25519'
}

function isShort(value: unknown, most: number): boolean {
  return typeof value === 'string' && value.length <= most
}

/** One key, made usable when it is first needed. */
class Key {
  readonly jwk: Jwk
  readonly #imported = new Map<Algorithm, Promise<CryptoKey | undefined>>()

  constructor(jwk: Jwk) {
    this.jwk = jwk
  }

  use(alg: Algorithm): Promise<CryptoKey | undefined> {
    let key = this.#imported.get(alg)
    if (!key) this.#imported.set(alg, (key = importKey(this.jwk, alg)))
    return key
  }
}

/** Undefined: the key is damaged, too short, or not of this kind. */
export async function importKey(jwk: Jwk, alg: Algorithm): Promise<CryptoKey | undefined> {
  const { importJWK } = await import('jose')
  try {
    // Only what the key consists of: members such as `key_ops` or `ext` were checked, and could make the import fail.
    const { kty, crv, n, e, x, y } = jwk
    const key = (await importJWK({ kty, crv, n, e, x, y } as Parameters<typeof importJWK>[0], alg)) as CryptoKey
    const { modulusLength = Infinity } = key.algorithm as Partial<RsaKeyAlgorithm>
    return modulusLength >= MODULUS_BITS ? key : undefined
  } catch {
    return undefined
  }
}

/** `unreachable`: nobody knows the issuer's keys now. */
export type Found = CryptoKey | 'unknown' | 'ambiguous' | 'unfit' | 'unreachable'

/** The keys of one issuer. A `kid` is only looked up in a map: it is never a path, a query or a pattern. */
export class KeySet {
  readonly #named = new Map<string, Key | 'ambiguous'>()
  readonly #all: Key[] = []

  /** Undefined: it is not a set of keys. */
  static of(value: unknown): KeySet | undefined {
    if (!isRecord(value) || !Array.isArray(value['keys']) || value['keys'].length > KEYS) return undefined
    const set = new KeySet()
    for (const jwk of recordsIn(value['keys'])) set.#add(jwk)
    return set
  }

  #add(jwk: Jwk): void {
    const key = new Key(jwk)
    this.#all.push(key)
    const { kid } = jwk
    // Two keys of one name: nobody can say which of them the issuer meant, so neither is used.
    if (typeof kid === 'string') this.#named.set(kid, this.#named.has(kid) ? 'ambiguous' : key)
  }

  /** A token without a `kid` needs an issuer with one key for its algorithm. */
  async find(kid: string | undefined, alg: Algorithm): Promise<Found> {
    if (kid === undefined) {
      const fitting = this.#all.filter(({ jwk }) => isPublicKey(jwk, alg))
      if (fitting.length !== 1) return fitting.length === 0 ? 'unknown' : 'ambiguous'
      return (await fitting[0]?.use(alg)) ?? 'unfit'
    }
    const key = this.#named.get(kid)
    if (key === undefined) return 'unknown'
    if (key === 'ambiguous') return key
    return isPublicKey(key.jwk, alg) ? ((await key.use(alg)) ?? 'unfit') : 'unfit'
  }
}

/** Where keys come from. */
export interface KeySource {
  find(kid: string | undefined, alg: Algorithm): Promise<Found>
}
