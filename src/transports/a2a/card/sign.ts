import type { CryptoKey, JWK } from 'jose'
import type { Signer } from '../../../core/ports/keys.ts'
import { base64Url } from '../../../protocol/base64.ts'
import { canonicalJson } from '../../../protocol/canonical-json.ts'
import { UampError } from '../../../protocol/errors.ts'
import { isRecord } from '../../../protocol/json.ts'
import type { AgentCard, CardSignature } from './model.ts'

export interface SigningKey {
  /** The private key. `kid` and `alg` may be left out if it is a JWK that has them. */
  readonly key: JWK | CryptoKey
  readonly kid?: string
  /** Default: the JWK's. */
  readonly alg?: string
  /** Where clients find the public key, as a JWK set. */
  readonly jku?: string
}

export type Sign = (card: AgentCard) => Promise<readonly CardSignature[]>

/** Signs the 1.0 card with every key (A2A 1.0 §8.4). Clients of 1.0 do not know the fields of other generations, so they are not signed. */
export function cardSigner(keys: readonly SigningKey[]): Sign {
  const signers = keys.map(signerOf)
  return (card) => {
    const payload = payloadOf(card)
    return Promise.all(signers.map((sign) => sign(payload)))
  }
}

/** Signs cards with the server's own key, which clients find at `jku`. */
export async function signByServer(signer: Signer, card: AgentCard, jku: string): Promise<CardSignature> {
  const { kid, alg, sign } = await signer.key('cards')
  const encode = (text: string): string => base64Url(encoder.encode(text))
  const header = encode(JSON.stringify({ alg, typ: 'JOSE', kid, jku }))
  const signature = await sign(encoder.encode(`${header}.${encode(payloadOf(card))}`))
  return { protected: header, signature: base64Url(signature) }
}

const encoder = new TextEncoder()

function signerOf({
  key,
  kid = jwkField(key, 'kid'),
  alg = jwkField(key, 'alg'),
  jku,
}: SigningKey): (payload: string) => Promise<CardSignature> {
  if (kid === undefined || alg === undefined) throw new UampError('invalid_request', 'A key for agent cards needs "kid" and "alg"')
  if (!/^(ES|RS|PS|Ed)/.test(alg)) throw new UampError('invalid_request', `Agent cards are signed with a private key, and ${alg} has none`)
  return async (payload) => {
    // 46 modules, so only servers that sign load them.
    const { FlattenedSign } = await import('jose')
    const signing = new FlattenedSign(encoder.encode(payload))
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
 * The text that is signed (§8.4.1): RFC 8785 of the card without its signatures and without defaults. The official SDKs also leave out
 * empty objects. Our cards have none, so the text is the same.
 */
export function payloadOf({ signatures: _, ...card }: AgentCard): string {
  return canonicalJson(withoutDefaults(card))
}

/** Leaves out members at their default that are neither required nor `optional` in the proto. `params` belong to the extension and stay. */
function withoutDefaults(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutDefaults)
  if (!isRecord(value)) return value
  const kept = Object.entries(value).filter(
    ([key, member]) => !(Array.isArray(member) && member.length === 0) && !(key === 'required' && member === false),
  )
  return Object.fromEntries(kept.map(([key, member]) => [key, key === 'params' ? member : withoutDefaults(member)]))
}
