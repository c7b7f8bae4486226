import canonicalize from 'canonicalize'
import type { CryptoKey, JWK } from 'jose'
import { UampError } from '../../../protocol/errors.ts'
import { isRecord } from '../../../protocol/json.ts'
import type { AgentCard, CardSignature } from './model.ts'

export interface SigningKey {
  /** The private key. A JWK that has `alg` and `kid` needs neither beside it. */
  readonly key: JWK | CryptoKey
  readonly kid?: string
  /** Default: the JWK's. */
  readonly alg?: string
  /** Where clients find the public key, as a JWK set. */
  readonly jku?: string
}

export type Sign = (card: AgentCard) => Promise<readonly CardSignature[]>

/** Signs the 1.0 card with every key: A2A 1.0 §8.4. Other generations' fields are not covered, as clients of 1.0 do not know them. */
export function cardSigner(keys: readonly SigningKey[]): Sign {
  const signers = keys.map(signerOf)
  return (card) => {
    const payload = payloadOf(card)
    return Promise.all(signers.map((sign) => sign(payload)))
  }
}

function signerOf({
  key,
  kid = jwkField(key, 'kid'),
  alg = jwkField(key, 'alg'),
  jku,
}: SigningKey): (payload: string) => Promise<CardSignature> {
  if (kid === undefined || alg === undefined) throw new UampError('invalid_request', 'A key for agent cards needs "kid" and "alg"')
  if (!/^(ES|RS|PS|Ed)/.test(alg)) throw new UampError('invalid_request', `Agent cards are signed with a private key, and ${alg} has none`)
  return async (payload) => {
    // Loaded by those who sign: 46 modules.
    const { FlattenedSign } = await import('jose')
    const signing = new FlattenedSign(new TextEncoder().encode(payload))
    signing.setProtectedHeader({ alg, typ: 'JOSE', kid, ...(jku !== undefined && { jku }) })
    const { protected: header = '', signature } = await signing.sign(key)
    return { protected: header, signature }
  }
}

function jwkField(key: JWK | CryptoKey, field: 'kid' | 'alg'): string | undefined {
  const value = (key as JWK)[field]
  return typeof value === 'string' ? value : undefined
}

/**
 * What is signed (§8.4.1): RFC 8785 of the card without its signatures and without defaults. The official SDKs leave out all that is
 * empty, also objects; a card of ours has nothing such, so both come to the same text.
 */
export function payloadOf({ signatures: _, ...card }: AgentCard): string {
  return canonicalize(withoutDefaults(card)) ?? ''
}

/** Members that are neither required nor `optional` in the proto, at their default. What is the extension's own stays as it is. */
function withoutDefaults(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutDefaults)
  if (!isRecord(value)) return value
  const kept = Object.entries(value).filter(
    ([key, member]) => !(Array.isArray(member) && member.length === 0) && !(key === 'required' && member === false),
  )
  return Object.fromEntries(kept.map(([key, member]) => [key, key === 'params' ? member : withoutDefaults(member)]))
}
