/** DPoP proofs that nobody signed, or that bring more than their key. */
import { createHash, createHmac } from 'node:crypto'
import { calculateJwkThumbprint, exportJWK, generateKeyPair, SignJWT } from 'jose'
import { expect } from 'vitest'
import { verifies } from '../support/verifies.ts'
import { claimsFor, identityServer, issuer, keyPair, now } from './support.ts'

const encoded = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')

verifies('dpop.proof', 'a proof without an asymmetric signature is refused, and an address in it is not called', async () => {
  const pair = await keyPair('k1')
  const from = await issuer(pair)
  const server = await identityServer({
    access: { agents: { allow: [from.url] } },
    outbound: { allow: [from.host] },
    limits: { wrongTokenBurst: 1000 },
  })
  const { publicKey, privateKey } = await generateKeyPair('ES256', { extractable: true })
  const jwk = await exportJWK(publicKey)
  const oct = { kty: 'oct', k: Buffer.from('a secret that both sides know').toString('base64url') }
  const call = async (proof: (claims: object) => string | Promise<string>, key: object = jwk) => {
    const token = await pair.sign(claimsFor(server.url, from.url, { cnf: { jkt: await calculateJwkThumbprint(key) } }))
    const ath = createHash('sha256').update(token).digest('base64url')
    const dpop = await proof({ htm: 'GET', htu: `${server.url}/v1/models`, ath, jti: crypto.randomUUID(), iat: now() })
    const { status, headers } = await fetch(`${server.url}/v1/models`, { headers: { authorization: `DPoP ${token}`, dpop } })
    return [status, headers.get('www-authenticate')?.split(',')[0]]
  }
  const signed = (header: object) => (claims: object) =>
    new SignJWT({ ...claims }).setProtectedHeader({ alg: 'ES256', typ: 'dpop+jwt', jwk, ...header }).sign(privateKey)
  const REFUSED = [401, 'DPoP error="invalid_dpop_proof"']
  expect(await call(signed({}))).toEqual([200, undefined])
  for (const alg of ['none', 'None', 'HS256']) {
    for (const key of [jwk, oct]) {
      const forge = (claims: object): string => {
        const text = `${encoded({ alg, typ: 'dpop+jwt', jwk: key })}.${encoded(claims)}`
        return `${text}.${createHmac('sha256', 'a secret that both sides know').update(text).digest('base64url')}`
      }
      expect(await call(forge, key), alg).toEqual(REFUSED)
    }
  }
  expect(await call((claims) => `${encoded({ alg: 'ES256', typ: 'dpop+jwt', jwk })}.${encoded(claims)}.`)).toEqual(REFUSED)
  // A key that is somewhere else is not fetched.
  expect(await call(signed({ jwk: undefined, jku: `${from.url}/mallory.json` }))).toEqual(REFUSED)
  expect(await call(signed({ jwk: undefined, x5u: `${from.url}/mallory.pem` }))).toEqual(REFUSED)
  expect(from.asked).toEqual(['/.well-known/jwks.json'])
})
