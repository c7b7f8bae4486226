import { base64Url } from '../protocol/base64.ts'
import { bareType, bytesOf, isCanonical } from '../wire/compact-jws.ts'
import { hashOf, payloadOf } from './canonical.ts'
import { envelopeError } from './codes.ts'
import { canonicalJson } from '../protocol/canonical-json.ts'
import { didUrl, isSameDid } from './did.ts'
import { strictObject } from './strict-json.ts'
import type { Envelope, Unsigned } from './schema.ts'

/** `typ` of a signature, so that no token passes for one (RFC 8725 §3.11). */
const TYP = 'uamp+jws'
/** Names that a header may have. One with `jwk`, `jku` or `x5c` would bring its own key; `crit` and `b64` change what is signed. */
const HEADER: ReadonlySet<string> = new Set(['alg', 'kid', 'typ'])
/** Keys that are tried for one signature that names none. */
const MOST_KEYS = 8

/** How WebCrypto is asked for each. */
const ALGORITHMS = { ES256: { name: 'ECDSA', hash: 'SHA-256' }, EdDSA: { name: 'Ed25519' } } as const

export type SignatureAlg = keyof typeof ALGORITHMS

/** A public key of a sender. */
export interface VerifyKey {
  /** A DID URL: `did:web:example.com#key-1`. */
  readonly id: string
  readonly alg: SignatureAlg
  readonly key: CryptoKey
}

/** A private key, and the DID URL under which its public half is published. */
export interface SigningKey {
  readonly id: string
  readonly alg: SignatureAlg
  sign(bytes: Uint8Array): Promise<Uint8Array>
}

/** A signature in its form. Nothing of it is verified. */
export interface Signature {
  readonly alg: SignatureAlg
  /** The DID URL of the key. Undefined: any key of the sender. */
  readonly kid: string | undefined
  /** The header as it was signed. */
  readonly head: string
  /** The payload, if it came with the signature. */
  readonly body: string
  readonly bytes: Uint8Array
}

export interface Verified {
  /** What was signed, in hexadecimal digits. */
  readonly hash: string
  readonly key: VerifyKey
}

const encoder = new TextEncoder()

/** Signs a message in the name of its sender. Throws what a reader would throw: a message that nobody accepts is not signed. */
export async function signEnvelope(unsigned: Unsigned, { id, alg, sign }: SigningKey): Promise<Envelope> {
  // What JSON makes of a date in `ext`, and not the date, is what arrives.
  const members = strictObject(JSON.stringify(unsigned)) as Unsigned
  const head = encoded(JSON.stringify({ alg, kid: id, typ: TYP }))
  const body = encoded(payloadOf(await hashOf(members)))
  return { ...members, sig: `${head}..${base64Url(await sign(encoder.encode(`${head}.${body}`)))}` }
}

/** Reads a detached JWS (RFC 7515, appendix F). Throws `4.01` if it is none that is accepted. */
export function readSignature(sig: string): Signature {
  const parts = sig.split('.', 4)
  const [head = '', body = '', tail = ''] = parts
  const isWhole = parts.length === 3 && isCanonical(head) && isCanonical(tail) && (body === '' || isCanonical(body))
  const header = isWhole ? strictIn(head) : undefined
  if (!header) throw unsigned('The signature is not a detached JWS')
  const foreign = Object.keys(header).find((name) => !HEADER.has(name))
  if (foreign !== undefined) throw unsigned(`The header of the signature may have alg, kid and typ, and nothing else`)
  const { alg, kid, typ } = header
  if (kid !== undefined && typeof kid !== 'string') throw unsigned('The kid of the signature is not a DID URL')
  if (typ !== undefined && (typeof typ !== 'string' || bareType(typ) !== TYP)) throw unsigned(`The typ of the signature must be ${TYP}`)
  const known = algorithmOf(alg)
  if (!known) throw unsigned('The signature must be made with ES256 or EdDSA')
  return { alg: known, kid, head, body, bytes: bytesOf(tail) }
}

/** RFC 9864 calls EdDSA with this curve by the name of the curve. Undefined: no other algorithm is known. */
export function algorithmOf(alg: unknown): SignatureAlg | undefined {
  if (alg === 'ES256') return alg
  return alg === 'EdDSA' || alg === 'Ed25519' ? 'EdDSA' : undefined
}

/** The object in a part of a JWS. Undefined: there is none, or two readers could read two. */
export function strictIn(part: string): Readonly<Record<string, unknown>> | undefined {
  try {
    return strictObject(bytesOf(part))
  } catch {
    return undefined
  }
}

/**
 * Verifies that one of these keys has signed exactly these members. A key of another DID than `from` does not count. Who vouches for the
 * keys is up to the caller. Throws `4.01` if none has.
 */
export async function verifySignature(
  members: Readonly<Record<string, unknown>>,
  { alg, kid, head, body, bytes }: Signature,
  keys: readonly VerifyKey[],
): Promise<Verified> {
  const hash = await hashOf(members)
  const payload = body === '' ? encoded(payloadOf(hash)) : body
  // A payload that came along must say the same: otherwise it is a good signature of something else.
  if (body !== '' && strictIn(body)?.['sha256'] !== hash) throw unsigned('The signature is of another message')
  const input = encoder.encode(`${head}.${payload}`)
  const from = typeof members['from'] === 'string' ? members['from'] : ''
  const theirs = keys.filter((key) => isSameDid(key.id, from))
  const tried = theirs.filter((key) => key.alg === alg && (kid === undefined || didUrl(key.id) === didUrl(kid)))
  for (const key of tried.slice(0, MOST_KEYS)) {
    if (await isSignature(key, bytes, input)) return { hash, key }
  }
  throw unsigned(theirs.length === 0 ? 'The sender has no key that signs' : 'The signature is not one of the sender for this message')
}

/** Whether this key has made a signature of these bytes. */
export async function isSignature({ alg, key }: VerifyKey, bytes: Uint8Array, input: Uint8Array): Promise<boolean> {
  try {
    return await crypto.subtle.verify(ALGORITHMS[alg], key, bytes as BufferSource, input as BufferSource)
  } catch {
    return false
  }
}

/** The thumbprint of a key (RFC 7638), which `cnf.jkt` of a token names. */
export async function thumbprintOf({ key }: VerifyKey): Promise<string> {
  const { crv, kty, x, y } = await crypto.subtle.exportKey('jwk', key)
  const text = canonicalJson({ crv, kty, x, y })
  return base64Url(new Uint8Array(await crypto.subtle.digest('SHA-256', encoder.encode(text))))
}

function unsigned(message: string): Error {
  return envelopeError('4.01', message, 'signature')
}

function encoded(text: string): string {
  return base64Url(encoder.encode(text))
}
