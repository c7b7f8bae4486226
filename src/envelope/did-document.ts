import { base64Url } from '../protocol/base64.ts'
import { isRecord, recordsIn } from '../protocol/records.ts'
import { bytesOf } from '../wire/compact-jws.ts'
import { envelopeError } from './codes.ts'
import { didOf, didUrl, isSameDid } from './did.ts'
import type { SignatureAlg, VerifyKey } from './signature.ts'

/** Keys of a document that are looked at. */
const METHODS = 64
/** The kind of key that each algorithm has, and how WebCrypto is told. */
const KINDS = {
  ES256: { kty: 'EC', crv: 'P-256', import: { name: 'ECDSA', namedCurve: 'P-256' } },
  EdDSA: { kty: 'OKP', crv: 'Ed25519', import: { name: 'Ed25519' } },
} as const satisfies Record<SignatureAlg, object>

/** The points of Ed25519 of small order, as `x` without its sign: one signature by such a key fits every message. */
const SMALL_ORDER: ReadonlySet<string> = new Set([
  'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA',
  'AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA',
  'JuiVj8KyJ7BFw_SJ8u-Y8NXfrAXTxjM5sTgCiG1T_AU',
  'xxdqcD1N2E-6PAt2DRBnDyogU_osOczGTsf9d5KsA3o',
  '7P_______________________________________38',
  '7f_______________________________________38',
  '7v_______________________________________38',
])

/** The relationships whose keys may sign in the name of their DID. */
const SIGNING = ['assertionMethod', 'authentication'] as const

/** A public key as a document publishes it. */
export interface PublishedKey {
  /** The part of the DID URL after `#`. */
  readonly kid: string
  readonly jwk: Readonly<Record<string, unknown>>
}

export interface Service {
  readonly id: string
  readonly type: string
  readonly serviceEndpoint: string
}

/** A DID document (DID Core 1.0) for these keys. */
export function didDocument(did: string, keys: readonly PublishedKey[], services: readonly Service[] = []): object {
  const methods = keys.map(({ kid, jwk: { kty, crv, x, y } }) => ({
    id: `${did}#${kid}`,
    type: 'JsonWebKey2020',
    controller: did,
    publicKeyJwk: { kty, crv, x, ...(y !== undefined && { y }) },
  }))
  const ids = methods.map(({ id }) => id)
  return {
    '@context': ['https://www.w3.org/ns/did/v1', 'https://w3id.org/security/suites/jws-2020/v1'],
    id: did,
    verificationMethod: methods,
    assertionMethod: ids,
    authentication: ids,
    ...(services.length > 0 && { service: services.map(({ id, ...service }) => ({ id: `${did}#${id}`, ...service })) }),
  }
}

/** The keys of a document that may sign for this DID. Throws `4.01` if the document is of another DID, or is none. */
export async function signingKeys(document: unknown, did: string): Promise<readonly VerifyKey[]> {
  if (!isRecord(document) || typeof document['id'] !== 'string' || didOf(document['id']) !== didOf(did)) {
    throw envelopeError('4.01', 'The DID document of the sender is not one of that DID', 'did')
  }
  const methods = recordsIn(document['verificationMethod']).slice(0, METHODS)
  const embedded = SIGNING.flatMap((name) => recordsIn(document[name])).slice(0, METHODS)
  const allowed = new Set(SIGNING.flatMap((name) => textsIn(document[name])).map((id) => didUrl(id, did)))
  const found = new Map<string, Promise<VerifyKey | undefined>>()
  for (const method of [...embedded, ...methods]) {
    const id = typeof method['id'] === 'string' ? didUrl(method['id'], did) : ''
    // A key of somebody else may be listed, but does not sign in this name.
    const isTheirs = isSameDid(id, did) && isControlledBy(method['controller'], did)
    if (found.has(id) || !isTheirs || !(embedded.includes(method) || allowed.has(id))) continue
    found.set(id, importedKey(id, method['publicKeyJwk']))
  }
  return (await Promise.all(found.values())).filter((key) => key !== undefined)
}

/** Undefined: it is no public key that can make signatures of envelopes. */
export async function importedKey(id: string, jwk: unknown): Promise<VerifyKey | undefined> {
  if (!isRecord(jwk) || 'd' in jwk) return undefined
  const { kty, crv, x, y } = jwk
  const alg = (Object.keys(KINDS) as SignatureAlg[]).find((name) => KINDS[name].kty === kty && KINDS[name].crv === crv)
  if (!alg || typeof x !== 'string' || (alg === 'ES256') !== (typeof y === 'string')) return undefined
  try {
    if (alg === 'EdDSA' && isOfSmallOrder(x)) return undefined
    // Only what the key consists of: other members could make the import fail, or make another key of it.
    const plain = { kty, crv, x, ...(y !== undefined && { y }) } as JsonWebKey
    return { id, alg, key: await crypto.subtle.importKey('jwk', plain, KINDS[alg].import, true, ['verify']) }
  } catch {
    return undefined
  }
}

function isOfSmallOrder(x: string): boolean {
  const withoutSign = bytesOf(x).map((byte, at) => (at === 31 ? byte & 127 : byte))
  return SMALL_ORDER.has(base64Url(withoutSign))
}

function isControlledBy(controller: unknown, did: string): boolean {
  return controller === undefined || (typeof controller === 'string' && isSameDid(controller, did))
}

function textsIn(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((each) => typeof each === 'string').slice(0, METHODS) : []
}
