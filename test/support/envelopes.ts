import { codeOf } from '../../src/envelope/codes.ts'
import { importedKey } from '../../src/envelope/did-document.ts'
import type { Unsigned } from '../../src/envelope/schema.ts'
import type { SignatureAlg, SigningKey, VerifyKey } from '../../src/envelope/signature.ts'
import { UampError } from '../../src/protocol/errors.ts'

const GENERATE = { ES256: { name: 'ECDSA', namedCurve: 'P-256' }, EdDSA: { name: 'Ed25519' } } as const
const SIGN = { ES256: { name: 'ECDSA', hash: 'SHA-256' }, EdDSA: { name: 'Ed25519' } } as const

export const CLIENT = 'did:web:client.example'

/** Somebody who signs, and the public half as others have it. */
export interface Signer {
  readonly signing: SigningKey
  readonly key: VerifyKey
  readonly jwk: Readonly<JsonWebKey>
  readonly pair: CryptoKeyPair
}

export async function makeSigner(alg: SignatureAlg, id = `${CLIENT}#${alg}`): Promise<Signer> {
  const pair = (await crypto.subtle.generateKey(GENERATE[alg], true, ['sign', 'verify'])) as CryptoKeyPair
  const jwk = await crypto.subtle.exportKey('jwk', pair.publicKey)
  const key = await importedKey(id, jwk)
  if (!key) throw new Error('What was made is no key')
  const sign = async (bytes: Uint8Array) => new Uint8Array(await crypto.subtle.sign(SIGN[alg], pair.privateKey, bytes as BufferSource))
  return { signing: { id, alg, sign }, key, jwk, pair }
}

/** A message with every member that has a form of its own. */
export const QUESTION: Unsigned = {
  id: 'urn:uuid:6f2b1a60-3d7e-4c35-9a5b-0c1d2e3f4a5b',
  ts: '2026-01-31T12:00:00.000Z',
  from: CLIENT,
  to: ['did:web:worker.example'],
  intent: 'ask',
  reply_to: 'urn:uuid:0d9a1f6e-1f43-4a77-8d0c-5a5f0e6b7c8d',
  context: [{ id: '0d9a1f6e-1f43-4a77-8d0c-5a5f0e6b7c8d', hash: `sha256:${'ab'.repeat(32)}` }],
  stream_id: 'str-42',
  delta_window: 64,
  body: { type: 'text/plain', content: '2 + 2, "ö", 😀', encoding: 'utf-8', compression: 'none' },
  cap_token: 'eyJ.e30.AA',
  ext: { 'x-trace': 'b3:1', nested: { list: [1, 0.5, null, true, { ü: '' }] } },
}

/** `4.00 duplicate`: what a refusal says to programs. `accepted` if there is none. Any other error than ours passes. */
export async function outcome(run: () => unknown): Promise<string> {
  try {
    await run()
    return 'accepted'
  } catch (thrown) {
    if (!(thrown instanceof UampError)) throw thrown
    const reason = thrown.details?.['reason']
    return typeof reason === 'string' ? `${codeOf(thrown)} ${reason}` : codeOf(thrown)
  }
}
