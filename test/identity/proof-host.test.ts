import { createHash } from 'node:crypto'
import { request } from 'node:http'
import { calculateJwkThumbprint, exportJWK, generateKeyPair, SignJWT } from 'jose'
import { expect, test } from 'vitest'
import { claimsFor, identityServer, issuer, keyPair } from './support.ts'

const PATH = '/v1/chat/completions'

/** Sends a request with a `Host` of one's choice. Gives its status. */
function send(url: string, headers: Readonly<Record<string, string>>): Promise<number | undefined> {
  const body = JSON.stringify({ model: 'demo', messages: [{ role: 'user', content: 'Hello' }] })
  return new Promise((resolve, reject) => {
    const sent = request(url + PATH, { method: 'POST', headers: { 'content-type': 'application/json', ...headers } }, (answer) => {
      answer.resume()
      resolve(answer.statusCode)
    })
    sent.on('error', reject).end(body)
  })
}

test('a proof for another address is refused, whatever the request says in Host', async () => {
  const pair = await keyPair('idp')
  const from = await issuer(pair)
  const { url } = await identityServer({ access: { issuers: [{ issuer: from.url }] } })
  const { publicKey, privateKey } = await generateKeyPair('ES256')
  const jwk = await exportJWK(publicKey)
  const token = await pair.sign(claimsFor(url, from.url, { cnf: { jkt: await calculateJwkThumbprint(jwk) } }))
  const ath = createHash('sha256').update(token).digest('base64url')
  const asked = async (place: string) => {
    const claims = new SignJWT({ htu: `http://${place}${PATH}`, htm: 'POST', jti: crypto.randomUUID(), ath })
    const dpop = await claims.setProtectedHeader({ alg: 'ES256', typ: 'dpop+jwt', jwk }).setIssuedAt().sign(privateKey)
    return send(url, { host: place, authorization: `DPoP ${token}`, dpop })
  }
  const { port } = new URL(url)
  expect([await asked(`127.0.0.1:${port}`), await asked(`localhost:${port}`)]).toEqual([200, 200])
  expect([await asked('127.0.0.1:1'), await asked('192.0.2.1'), await asked(`192.0.2.1:${port}`)]).toEqual([401, 401, 401])
})
