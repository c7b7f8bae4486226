import type { Denial } from '../../core/ports/access.ts'
import { bareType, bytesOf, isCanonical, objectIn } from '../../wire/compact-jws.ts'

/** The longest token that is looked at. */
export const TOKEN_CHARS = 8192

/** Asymmetric algorithms, and the kind of key that each needs. `none` and `HS*` are not here, so nobody can ask for them (RFC 8725 §3.1). */
export const ALGORITHMS = {
  RS256: 'RSA',
  RS384: 'RSA',
  RS512: 'RSA',
  PS256: 'RSA',
  PS384: 'RSA',
  PS512: 'RSA',
  ES256: 'P-256',
  ES384: 'P-384',
  ES512: 'P-521',
  EdDSA: 'Ed25519',
  Ed25519: 'Ed25519',
} as const

export type Algorithm = keyof typeof ALGORITHMS

/** How WebCrypto is asked for each of them. The hash of RSA belongs to the imported key. */
const PARAMETERS: Readonly<Record<Algorithm, AlgorithmIdentifier | RsaPssParams | EcdsaParams>> = {
  RS256: 'RSASSA-PKCS1-v1_5',
  RS384: 'RSASSA-PKCS1-v1_5',
  RS512: 'RSASSA-PKCS1-v1_5',
  PS256: { name: 'RSA-PSS', saltLength: 32 },
  PS384: { name: 'RSA-PSS', saltLength: 48 },
  PS512: { name: 'RSA-PSS', saltLength: 64 },
  ES256: { name: 'ECDSA', hash: 'SHA-256' },
  ES384: { name: 'ECDSA', hash: 'SHA-384' },
  ES512: { name: 'ECDSA', hash: 'SHA-512' },
  EdDSA: 'Ed25519',
  Ed25519: 'Ed25519',
}

export function isAlgorithm(name: unknown): name is Algorithm {
  return typeof name === 'string' && Object.hasOwn(ALGORITHMS, name)
}

/** A token whose form is right. Nothing in it has been verified. */
export interface Parsed {
  readonly text: string
  readonly alg: Algorithm
  readonly kid: string | undefined
  /** In lower case, without `application/`; empty if there is none. */
  readonly typ: string
  readonly header: Readonly<Record<string, unknown>>
  readonly claims: Readonly<Record<string, unknown>>
}

/** True if a text has the form of a JWT, as opposed to a secret that somebody chose. */
export function looksLikeJwt(text: string): boolean {
  return text.startsWith('ey') && text.split('.', 3).length === 3
}

export function refused(denied: Denial['denied'], message: string): Denial {
  return { denied, message }
}

const MALFORMED = refused('invalid', 'The token is not a JWT that can be read')

/** Reads a compact JWS. Headers that name keys are never looked at: whoever signs must not choose the key (RFC 8725 §3.10). */
export function parseToken(text: string, most = TOKEN_CHARS): Parsed | Denial {
  if (text.length > most) return refused('invalid', `The token has more than ${most} characters`)
  const parts = text.split('.', 4)
  const [head = '', body = '', signature = ''] = parts
  if (parts.length !== 3 || !parts.every(isCanonical) || signature === '') return MALFORMED
  const [header, claims] = [objectIn(head), objectIn(body)]
  if (!header || !claims) return MALFORMED
  const { alg, kid, typ } = header
  if (!isAlgorithm(alg)) return refused('invalid', 'The token is signed with an algorithm that is not accepted')
  if ('crit' in header || 'b64' in header || 'zip' in header) return refused('invalid', 'The token has a header that is not understood')
  if (kid !== undefined && (typeof kid !== 'string' || kid.length > 256)) return MALFORMED
  return { text, alg, kid, typ: typeof typ === 'string' ? bareType(typ) : '', header, claims }
}

/**
 * The key is one that `importKey` has made for this algorithm. Not `compactVerify` of jose: it reads the header and the claims once more,
 * which takes a quarter of the time that a new token costs.
 */
export async function hasSignature({ text, alg }: Pick<Parsed, 'text' | 'alg'>, key: CryptoKey): Promise<boolean> {
  const end = text.lastIndexOf('.')
  const [signed, signature] = [new TextEncoder().encode(text.slice(0, end)), bytesOf(text.slice(end + 1))]
  try {
    return await crypto.subtle.verify(PARAMETERS[alg], key, signature as BufferSource, signed)
  } catch {
    return false
  }
}
