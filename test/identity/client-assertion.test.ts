import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, generateKeyPair, SignJWT, type JWK } from 'jose'
import { expect, onTestFinished, test } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'
import { claimsOf, JWT_BEARER, postForm } from './oauth.ts'

const NOW = () => Math.floor(Date.now() / 1000)

async function keyPair(kid: string, alg = 'ES256') {
  const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true })
  return { privateKey, jwk: { ...(await exportJWK(publicKey)), kid, alg } as JWK, kid, alg }
}

type Pair = Awaited<ReturnType<typeof keyPair>>

interface Changed {
  readonly claims?: Readonly<Record<string, unknown>>
  readonly header?: Readonly<Record<string, unknown>>
}

function assertion({ privateKey, kid, alg }: Pair, aud: string, { claims, header }: Changed = {}): Promise<string> {
  const usual = { iss: 'robot', sub: 'robot', aud, iat: NOW(), exp: NOW() + 60, jti: crypto.randomUUID() }
  const all = Object.entries({ ...usual, ...claims }).filter(([, value]) => value !== undefined)
  return new SignJWT(Object.fromEntries(all)).setProtectedHeader({ alg, kid, ...header }).sign(privateKey)
}

const ask = (url: string, client_assertion: string, more: Readonly<Record<string, string>> = {}) =>
  postForm(`${url}/auth/token`, { grant_type: 'client_credentials', client_assertion_type: JWT_BEARER, client_assertion, ...more })

async function start(jwks: { keys: JWK[] }, jwksUri?: string) {
  const robot = jwksUri === undefined ? { jwks } : { jwksUri }
  const clients = { robot, other: { secret: 'other-0123456789abcdef' } }
  return startServer(demo(), { access: { clients, algorithm: 'EdDSA' }, limits: { wrongTokenBurst: 100 } })
}

verifies('oauth.private-key-jwt', 'a client signs who it is, for the issuer or for the endpoint', async () => {
  const pairs = await Promise.all(['RS256', 'PS256', 'ES256', 'EdDSA'].map((alg) => keyPair(alg, alg)))
  const { url } = await start({ keys: pairs.map(({ jwk }) => jwk) })
  for (const pair of pairs) {
    const { status, body } = await ask(url, await assertion(pair, url))
    expect([status, pair.alg]).toEqual([200, pair.alg])
    expect(await claimsOf(url, body['access_token'])).toMatchObject({ sub: 'robot', client_id: 'robot', scope: 'write' })
  }
  const [pair] = pairs as [Pair]
  expect((await ask(url, await assertion(pair, `${url}/auth/token`), { client_id: 'robot' })).status).toBe(200)
})

verifies('oauth.assertion-once', 'an assertion is used once', async () => {
  const pair = await keyPair('k')
  const { url } = await start({ keys: [pair.jwk] })
  const used = await assertion(pair, url)
  const answers = await Promise.all([ask(url, used), ask(url, used), ask(url, used)])
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
  expect(answers.filter(({ status }) => status === 401)).toHaveLength(2)
  expect((await ask(url, used)).body['error']).toBe('invalid_client')
})

test('an assertion that anything is wrong with is refused', async () => {
  const pair = await keyPair('k')
  const stranger = await keyPair('k')
  const { url } = await start({ keys: [pair.jwk] })
  const wrong: readonly (readonly [string, string | Promise<string>, Readonly<Record<string, string>>?])[] = [
    ['another audience', assertion(pair, 'https://other.example')],
    ['no audience', assertion(pair, url, { claims: { aud: undefined } })],
    ['another issuer', assertion(pair, url, { claims: { iss: 'other' } })],
    ['another subject', assertion(pair, url, { claims: { sub: 'other' } })],
    ['nobody', assertion(pair, url, { claims: { iss: 'nobody', sub: 'nobody' } })],
    ['a client that has a secret', assertion(pair, url, { claims: { iss: 'other', sub: 'other' } })],
    ['expired', assertion(pair, url, { claims: { exp: NOW() - 61 } })],
    ['no end', assertion(pair, url, { claims: { exp: undefined } })],
    ['an end that is far away', assertion(pair, url, { claims: { exp: NOW() + 100_000 } })],
    ['not valid yet', assertion(pair, url, { claims: { nbf: NOW() + 120 } })],
    ['no id', assertion(pair, url, { claims: { jti: undefined } })],
    ['a long id', assertion(pair, url, { claims: { jti: 'x'.repeat(300) } })],
    ['an id that is no text', assertion(pair, url, { claims: { jti: 7 } })],
    ['another key', assertion(stranger, url)],
    ['a key in the header', assertion(stranger, url, { header: { jwk: stranger.jwk, kid: undefined } })],
    ['a type of its own', assertion(pair, url, { header: { typ: 'at+jwt' } })],
    ['a header that must be understood', assertion(pair, url, { header: { crit: ['x'], x: 1 } }).catch(() => 'x.y.z')],
    ['another client_id', assertion(pair, url), { client_id: 'other' }],
    [
      'another kind of assertion',
      assertion(pair, url),
      { client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:saml2-bearer' },
    ],
    [
      'not signed',
      `${btoa('{"alg":"none"}')}.${btoa(JSON.stringify({ iss: 'robot', sub: 'robot', aud: url, exp: NOW() + 60, jti: '1' }))}.`,
    ],
    ['no token', 'x'],
    ['too long', 'x'.repeat(9000)],
  ]
  for (const [why, given, more] of wrong) {
    const { status, body } = await ask(url, await given, more)
    expect([status, body['error']], why).toEqual([401, 'invalid_client'])
  }
})

test('whoever has made an assertion is told what is wrong with it, and the log says what they are not told', async () => {
  const [pair, stranger] = [await keyPair('k'), await keyPair('k')]
  const lines: unknown[] = []
  const { url } = await startServer(demo(), {
    access: { clients: { robot: { jwks: { keys: [pair.jwk] } } }, algorithm: 'EdDSA' },
    log: (_, message, { client, because } = {}) => void (message === 'A client was refused' && lines.push([client, because])),
  })
  const described = async (given: string, more?: Readonly<Record<string, string>>) =>
    (await ask(url, given, more)).body['error_description']
  const told: readonly (readonly [Readonly<Record<string, unknown>>, string])[] = [
    [{ aud: 'https://other.example' }, `The client assertion is for another server: aud must be ${url} or ${url}/auth/token`],
    [{ iss: undefined }, 'The client assertion must have the name of the client in iss and in sub'],
    [{ exp: undefined }, 'The client assertion does not say when it ends: it needs exp'],
    [{ exp: NOW() - 3600 }, 'The client assertion has expired'],
    [{ exp: NOW() + 7200 }, 'The client assertion ends too late: exp may be an hour away'],
    [{ jti: undefined }, 'The client assertion needs a jti, which is new each time and has at most 256 characters'],
  ]
  for (const [claims, why] of told) expect(await described(await assertion(pair, url, { claims }))).toBe(why)
  expect(await described('x')).toBe('The client assertion is not a JWT that can be read')
  expect(await described(await assertion(pair, url), { client_assertion_type: 'jwt' })).toBe(
    `The client_assertion_type must be ${JWT_BEARER}`,
  )
  const used = await assertion(pair, url)
  expect(await described(used)).toBeUndefined()
  expect(await described(used)).toBe('The client assertion was used before: each needs a jti of its own')
  expect(lines).toHaveLength(told.length + 3)
  // Which clients there are, and which keys they have, is nobody's business.
  lines.length = 0
  const hidden = 'The client is not known, or has not proved to be it'
  expect(await described(await assertion(stranger, url))).toBe(hidden)
  expect(await described(await assertion(pair, url, { claims: { iss: 'Robot', sub: 'Robot' } }))).toBe(hidden)
  expect(await described(await assertion(pair, url, { header: { kid: 'other' } }))).toBe(hidden)
  expect(lines).toEqual([
    ['robot', 'The client assertion is not right: signature verification failed'],
    [undefined, 'There is no client of that name'],
    ['robot', 'The client assertion is not right: no applicable key found in the JSON Web Key Set'],
  ])
})

test('two keys with one kid are nobody’s', async () => {
  const [one, other] = [await keyPair('same'), await keyPair('same')]
  const { url } = await start({ keys: [one.jwk, other.jwk] })
  expect((await ask(url, await assertion(one, url))).status).toBe(401)
})

/** A place where a client has its keys. */
async function keyPlace() {
  const place = { keys: [] as JWK[], reads: 0, broken: false }
  const server = createServer((_, response) => {
    place.reads++
    if (place.broken) response.writeHead(302, { location: '/elsewhere' }).end()
    else response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ keys: place.keys }))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return { place, uri: `http://127.0.0.1:${(server.address() as AddressInfo).port}/keys` }
}

test('keys at a URL are read once for many, and strangers cannot have them read again and again', async () => {
  const { place, uri } = await keyPlace()
  const [pair, stranger] = [await keyPair('k'), await keyPair('unknown')]
  place.keys = [pair.jwk]
  const { url } = await start({ keys: [] }, uri)
  const assertions = await Promise.all(Array.from({ length: 10 }, () => assertion(pair, url)))
  const answers = await Promise.all(assertions.map((each) => ask(url, each)))
  expect(answers.map(({ status }) => status)).toEqual(assertions.map(() => 200))
  for (let round = 0; round < 3; round++) expect((await ask(url, await assertion(stranger, url))).status).toBe(401)
  expect(place.reads).toBe(1)
})

test('keys that cannot be read refuse their client and nobody else', async () => {
  const { place, uri } = await keyPlace()
  place.broken = true
  const pair = await keyPair('k')
  const { url, logged } = await start({ keys: [] }, uri)
  expect((await ask(url, await assertion(pair, url))).status).toBe(401)
  expect(place.reads).toBe(1)
  expect(logged.map(({ message }) => message)).toContain('The keys of a client cannot be read')
  const secret = { grant_type: 'client_credentials', client_id: 'other', client_secret: 'other-0123456789abcdef' }
  expect((await postForm(`${url}/auth/token`, secret)).status).toBe(200)
})
