/** Another implementation of UAMP envelope §4.2 and §6.3, of `jose` and `canonicalize` alone. It shares no line with ours. */
import { createHash } from 'node:crypto'
import canonicalize from 'canonicalize'
import { base64url, CompactSign, compactVerify, exportJWK, generateKeyPair, type CryptoKey, type JWK } from 'jose'

type Members = Readonly<Record<string, unknown>>

/** Somebody who signs with it. */
export interface Party {
  readonly alg: 'ES256' | 'EdDSA'
  readonly kid: string
  readonly privateKey: CryptoKey
  readonly publicKey: CryptoKey
  readonly jwk: JWK
}

export async function makeParty(alg: Party['alg'], kid: string): Promise<Party> {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true })
  return { alg, kid, privateKey, publicKey, jwk: await exportJWK(publicKey) }
}

export function canonicalOf({ sig: _, ...members }: Members): string {
  return canonicalize(members) ?? ''
}

export function sha256Of(members: Members): string {
  return createHash('sha256').update(canonicalOf(members), 'utf8').digest('hex')
}

/** The signature of these members. */
export async function signedBy({ alg, kid, privateKey }: Party, members: Members): Promise<string> {
  const payload = new TextEncoder().encode(`{"sha256":"${sha256Of(members)}"}`)
  const jws = await new CompactSign(payload).setProtectedHeader({ alg, kid, typ: 'uamp+jws' }).sign(privateKey)
  const [head, , tail] = jws.split('.')
  return `${head}..${tail}`
}

/** The hash that was signed. Throws if the signature does not fit the message. */
export async function verifiedBy({ alg, kid, publicKey }: Party, text: string): Promise<string> {
  const members = JSON.parse(text) as Members
  const [head, middle, tail] = String(members['sig']).split('.')
  if (middle !== '') throw new Error('It is not detached')
  const hash = sha256Of(members)
  const { protectedHeader } = await compactVerify(`${head}.${base64url.encode(`{"sha256":"${hash}"}`)}.${tail}`, publicKey, {
    algorithms: [alg],
  })
  if (protectedHeader.kid !== kid) throw new Error('It is of another key')
  return hash
}
