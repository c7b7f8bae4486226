/** Keys that are taken away: what they signed is refused soon, also if it was verified before. */
import { expect, test } from 'vitest'
import { identityAccess } from '../../src/auth/identity.ts'
import { ClientKeys } from '../../src/auth/issuer/client-keys.ts'
import { fetchKeys } from '../../src/auth/verify/fetch-keys.ts'
import { RemoteKeys } from '../../src/auth/verify/remote-keys.ts'
import { principalId } from '../../src/core/basics/principal.ts'
import { fetchHttp } from '../../src/core/http/fetch-http.ts'
import type { HttpClient } from '../../src/core/ports/http.ts'
import { verifies } from '../support/verifies.ts'
import { postForm } from './oauth.ts'
import { claimsFor, identityServer, issuer, json, keyPair, now } from './support.ts'

const MINUTE = 60_000
const URL = 'https://agents.example'
const { signal: closing } = new AbortController()

test('a token for a day does not outlive its key', async () => {
  const [pair, next] = await Promise.all([keyPair('k1'), keyPair('k2')])
  const from = await issuer(pair)
  const { host } = await identityServer()
  const clock = { ticks: 0 }
  const parts = () => ({
    ...host,
    monotonic: () => clock.ticks,
    once: async () => true,
    ownUrl: () => URL,
    signer: host.signer,
    outbound: undefined,
  })
  const settings = { issuers: [{ issuer: from.url, audience: URL }] }
  const access = identityAccess({ tokens: {}, anonymous: false, settings, parts })
  const token = await pair.sign(claimsFor(URL, from.url, { exp: now() + 86_400 }))
  expect(await access.authenticate({ token })).toMatchObject({ subject: 'bob' })
  from.published.keys = [next.jwk]
  clock.ticks = 4 * MINUTE
  expect(await access.authenticate({ token })).toMatchObject({ subject: 'bob' })
  // The keys are due after five minutes, and are read beside the next request.
  const later = (): ReturnType<typeof access.authenticate> => {
    clock.ticks += 6 * MINUTE
    return access.authenticate({ token })
  }
  await expect.poll(later).toMatchObject({ denied: 'invalid', message: expect.stringContaining('does not publish') })
})

test('the keys of a client are used for a quarter of an hour while they cannot be read', async () => {
  const pair = await keyPair('k1')
  const from = await issuer(pair)
  const clock = { ticks: 0 }
  const failures: unknown[] = []
  const keys = new ClientKeys(`${from.url}/.well-known/jwks.json`, {
    http: fetchHttp(),
    monotonic: () => clock.ticks,
    closing,
    onError: (error) => failures.push(error),
  })
  expect(await keys.current()).toMatchObject({ keys: [{ kid: 'k1' }] })
  from.published.answer = (_, response) => response.writeHead(404).end()
  clock.ticks = 14 * MINUTE
  expect(await keys.current()).toMatchObject({ keys: [{ kid: 'k1' }] })
  expect(failures.length).toBe(1)
  clock.ticks = 16 * MINUTE
  expect(await keys.current()).toBeUndefined()
  from.published.answer = undefined
  clock.ticks = 22 * MINUTE
  expect(await keys.current()).toMatchObject({ keys: [{ kid: 'k1' }] })
})

test('a client that is revoked gets no more tokens, under any name that logs give it', async () => {
  const { url, host } = await identityServer({ access: { clients: { shop: { secret: 'shop-0123456789abcdef' } } } })
  const ask = async () => {
    const fields = { grant_type: 'client_credentials', client_id: 'shop', client_secret: 'shop-0123456789abcdef' }
    const { status, body } = await postForm(`${url}/agents/demo/auth/token`, fields)
    return [status, body['error']]
  }
  for (const id of ['shop', principalId(url, 'shop'), principalId(`${url}/agents/demo`, 'shop')]) {
    expect(await ask()).toEqual([200, undefined])
    await host.revocations?.revoke({ kind: 'principal', id })
    expect(await ask(), id).toEqual([400, 'unauthorized_client'])
    await host.revocations?.restore({ kind: 'principal', id })
  }
})

test('while an issuer does not answer, a key that is not known may be a new one', async () => {
  const from = await issuer(await keyPair('k1'))
  const clock = { ticks: 0 }
  const options = { http: fetchHttp(), monotonic: () => clock.ticks, closing, onFailure: () => undefined }
  const keys = new RemoteKeys({ issuer: from.url, isStranger: true }, options)
  expect(typeof (await keys.find('k1', 'RS256'))).toBe('object')
  expect(await keys.find('made-up', 'RS256')).toBe('unknown')
  from.published.answer = (_, response) => response.writeHead(500).end()
  for (let at = 0; at < 10; at++) expect(await keys.find('made-up', 'RS256')).toBe('unreachable')
  expect(from.asked.length).toBe(3)
  expect(typeof (await keys.find('k1', 'RS256'))).toBe('object')
  from.published.answer = undefined
  clock.ticks = 2 * MINUTE
  expect(await keys.find('made-up', 'RS256')).toBe('unknown')
})

/** An issuer that is reached over TLS, and answers every request with one document. */
function answering(document: object): Pick<HttpClient, 'request'> {
  const body = new TextEncoder().encode(JSON.stringify(document))
  return {
    request: async () => ({
      status: 200,
      headers: new Headers({ 'content-type': 'application/json' }),
      body: (async function* () {
        yield body
      })(),
    }),
  }
}

verifies('keys.another', 'a document that came over TLS cannot name keys that do not', async () => {
  const place = { issuer: 'https://login.example', isStranger: false }
  const found = (jwks_uri: string) =>
    fetchKeys(place, { http: answering({ issuer: place.issuer, jwks_uri, keys: [] }), signal: closing }).then(({ uri }) => uri)
  expect(await found('https://keys.example/jwks')).toBe('https://keys.example/jwks')
  for (const uri of ['http://login.example/jwks', 'HTTP://login.example/jwks', 'file:///etc/passwd']) {
    await expect(found(uri)).rejects.toThrow('do not come over TLS')
  }
})

verifies('keys.another', 'a key counts only for the issuer that publishes it', async () => {
  const [bob, mallory] = [await keyPair('k1'), await keyPair('k1')]
  const [theirs, hers] = [await issuer(bob), await issuer(mallory)]
  const server = await identityServer({
    access: { agents: { allow: ['everyone'] } },
    outbound: { allow: [theirs.host, hers.host] },
    limits: { wrongTokenBurst: 1000 },
  })
  const status = async (token: string) => (await fetch(`${server.url}/v1/models`, { headers: { authorization: `Bearer ${token}` } })).status
  const claims = (from: string) => claimsFor(server.url, from)
  // Both keys are known here, and have the same name.
  expect(await status(await mallory.sign(claims(hers.url)))).toBe(200)
  expect(await status(await bob.sign(claims(theirs.url)))).toBe(200)
  expect(await status(await mallory.sign(claims(theirs.url)))).toBe(401)
  // Mallory serves Bob's key: that gives her neither his name nor his tokens.
  hers.published.answer = (_, response) => json(response, { keys: [bob.jwk] })
  expect(await status(await mallory.sign(claims(theirs.url)))).toBe(401)
  expect(await status(await bob.sign({ ...claims(theirs.url), aud: hers.url }))).toBe(401)
})
