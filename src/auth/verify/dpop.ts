import { storeKey } from '../../core/basics/store-key.ts'
import type { Credentials, Denial } from '../../core/ports/access.ts'
import { base64 } from '../../protocol/base64.ts'
import { isRecord } from '../../protocol/json.ts'
import { nameIn } from './claims.ts'
import { importKey, isPublicKey } from './key-set.ts'
import { ALGORITHMS, hasSignature, parseToken, refused } from './token.ts'

/** The longest proof: it carries a key, and no more than that. */
const PROOF_CHARS = 4096
/** How old a proof may be, beside the leeway of clocks. */
const AGE_MS = 60_000
/** How long a nonce is good: it is the newest for half of this time. */
const NONCE_MS = 10 * 60_000
/** Proofs that are remembered in memory, so that a replay costs no write. */
const REMEMBERED = 10_000

const ALGS = Object.keys(ALGORITHMS).join(' ')

export interface ProofRules {
  readonly now: () => number
  readonly leewayMs: number
  /** Uses up a name; false if it was used before. */
  readonly once: (key: string, ttlMs: number) => Promise<boolean>
  /** A proof must carry a nonce of this server. */
  readonly needsNonce: boolean
}

/** Proofs of possession (RFC 9449). */
export class Proofs {
  readonly #rules: ProofRules
  readonly #seen = new Set<string>()
  #nonces: { readonly newest: string; readonly before: string; readonly madeAt: number } | undefined

  constructor(rules: ProofRules) {
    this.#rules = rules
  }

  /** Undefined: the sender holds the key of this thumbprint. */
  async check(token: string, jkt: string, { headers, request }: Credentials): Promise<Denial | undefined> {
    const proof = headers?.get('dpop')
    if (proof == null || !request) return denied('This token needs a DPoP proof')
    const parsed = parseToken(proof, PROOF_CHARS)
    if ('denied' in parsed) return denied('The DPoP proof cannot be read')
    const { header, claims, alg, typ } = parsed
    const jwk = header['jwk']
    if (typ !== 'dpop+jwt') return denied('The DPoP proof must be of the type dpop+jwt')
    if (!isRecord(jwk) || !isPublicKey(jwk, alg)) return denied('The DPoP proof has no public key of its own')
    if ((await thumbprint(jwk)) !== jkt) return denied('The DPoP proof is made with another key than the token is for')
    if (claims['htm'] !== request.method) return denied('The DPoP proof is for another request: htm must be its method')
    if (!isSameUrl(claims['htu'], request.url)) return denied('The DPoP proof is for another request: htu must be its URL')
    if (claims['ath'] === undefined) return denied('The DPoP proof does not say for which token it is: it needs ath')
    if (claims['ath'] !== (await digest(token))) return denied('The DPoP proof is for another token')
    const jti = nameIn(claims['jti'])
    if (jti === undefined) return denied('The DPoP proof needs a jti, which is new each time')
    if (typeof claims['iat'] !== 'number') return denied('The DPoP proof does not say when it was made: it needs iat')
    if (!this.#isNew(claims['iat'])) return denied('The DPoP proof is too old, or not valid yet')
    const key = await importKey(jwk, alg)
    if (!key || !(await hasSignature(parsed, key))) return denied('The DPoP proof has a wrong signature')
    const nonce = this.#rules.needsNonce ? this.#nonce() : undefined
    if (nonce !== undefined && !this.#isNonce(claims['nonce'])) return challenge(nonce)
    return (await this.#isFirst(storeKey('', 'dpop', jkt, jti))) ? undefined : denied('The DPoP proof was used before')
  }

  #isNew(iat: number): boolean {
    const { now, leewayMs } = this.#rules
    const age = now() - iat * 1000
    return age <= AGE_MS + leewayMs && age >= -leewayMs
  }

  /** In memory, and in the store, which outlives this process. A proof is good from `leeway` before its time until its age is over. */
  async #isFirst(key: string): Promise<boolean> {
    const { once, leewayMs } = this.#rules
    if (this.#seen.has(key)) return false
    const [oldest] = this.#seen
    if (oldest !== undefined && this.#seen.size >= REMEMBERED) this.#seen.delete(oldest)
    this.#seen.add(key)
    return once(key, AGE_MS + 2 * leewayMs)
  }

  #nonce(): string {
    const at = this.#rules.now()
    if (!this.#nonces || Math.abs(at - this.#nonces.madeAt) > NONCE_MS) {
      this.#nonces = { newest: crypto.randomUUID(), before: crypto.randomUUID(), madeAt: at }
    } else if (Math.abs(at - this.#nonces.madeAt) > NONCE_MS / 2) {
      this.#nonces = { newest: crypto.randomUUID(), before: this.#nonces.newest, madeAt: at }
    }
    return this.#nonces.newest
  }

  #isNonce(nonce: unknown): boolean {
    return nonce === this.#nonces?.newest || nonce === this.#nonces?.before
  }
}

/** What a client is told that has no proof, or a wrong one. */
function denied(message: string): Denial {
  return { ...refused('proof', message), challenge: `DPoP error="invalid_dpop_proof", error_description="${message}", algs="${ALGS}"` }
}

/** RFC 9449 §9. */
function challenge(nonce: string): Denial {
  const message = 'The DPoP proof needs the nonce of this server'
  return { ...refused('proof', message), challenge: `DPoP error="use_dpop_nonce", error_description="${message}", algs="${ALGS}"`, nonce }
}

/** RFC 9449 §4.3: without query and fragment, and both in their normal form. A socket's URL may be written either way. */
function isSameUrl(htu: unknown, url: string): boolean {
  return typeof htu === 'string' && normal(htu) !== undefined && normal(htu) === normal(url)
}

function normal(text: string): string | undefined {
  if (text.length > PROOF_CHARS || !URL.canParse(text)) return undefined
  const { protocol, host, pathname } = new URL(text)
  return `${protocol.replace(/^ws/, 'http')}//${host}${pathname}`
}

async function thumbprint(jwk: Record<string, unknown>): Promise<string | undefined> {
  const { calculateJwkThumbprint } = await import('jose')
  try {
    return await calculateJwkThumbprint(jwk)
  } catch {
    return undefined
  }
}

async function digest(text: string): Promise<string> {
  const bytes = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text))
  return base64(new Uint8Array(bytes)).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '')
}
