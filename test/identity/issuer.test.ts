import { createLocalJWKSet, decodeProtectedHeader, jwtVerify, type JSONWebKeySet, type JWSHeaderParameters } from 'jose'
import { expect, onTestFinished, test } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { text } from '../../src/core/agent-kit/drafts.ts'
import { createAgentApp } from '../../src/serve/index.ts'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'
import { basic, claimsOf, postForm, tokenFrom } from './oauth.ts'

const bob = defineAgent('team.bob', async function* () {
  yield text('Bob')
})
const SECRET = 'a secret: 100% + äöü'
const ALICE = ['alice', 'alice-0123456789abcdef'] as const
const SHOP = ['shop', SECRET] as const

const start = (options: Parameters<typeof startServer>[1] = {}) =>
  startServer([demo(), bob], {
    defaultAgent: 'demo',
    tokens: { alice: ALICE[1] },
    access: {
      // Such a key is made a hundred times as fast as one of RSA.
      algorithm: 'EdDSA',
      clients: {
        shop: { secret: SECRET, scopes: ['read', 'call', 'tools:*'] },
        one: { secret: 'one-0123456789abcdef', targets: ['team.bob'] },
        two: { secret: 'two-0123456789abcdef', targets: ['@demo', 'https://other.example/agents/*'] },
        all: { secret: 'all-0123456789abcdef', targets: ['*'], scopes: ['admin'] },
        'team.bob': { secret: 'bob-0123456789abcdef' },
      },
    },
    ...options,
  })

const ask = (url: string, fields: Readonly<Record<string, string>> = {}, [name, secret]: readonly [string, string] = SHOP) =>
  postForm(`${url}/auth/token`, { grant_type: 'client_credentials', ...fields }, { authorization: basic(name, secret) })

verifies(
  ['oauth.client-credentials', 'oauth.at-jwt', 'oauth.jwks', 'aoauth.life', 'oauth.no-store', 'oauth.scope'],
  'a client gets a token that anybody can verify with the published keys',
  async () => {
    const { url } = await start()
    const before = Math.floor(Date.now() / 1000)
    const { status, headers, body } = await ask(url)
    expect(status).toBe(200)
    expect(headers.get('cache-control')).toBe('no-store')
    const { access_token: token, ...rest } = body
    expect(rest).toEqual({ token_type: 'Bearer', expires_in: 300, scope: 'read call tools:*' })
    const { header, ...claims } = await claimsOf(url, token)
    expect(header).toEqual({ alg: 'EdDSA', typ: 'at+jwt', kid: expect.any(String) })
    expect(claims).toEqual({
      iss: url,
      sub: 'shop',
      aud: url,
      client_id: 'shop',
      scope: 'read call tools:*',
      token_type: 'Bearer',
      jti: expect.stringMatching(/^[0-9a-f-]{36}$/),
      iat: expect.any(Number),
      nbf: claims.iat,
      exp: (claims.iat ?? 0) + 300,
    })
    expect(claims.iat).toBeGreaterThanOrEqual(before)
  },
)

verifies('aoauth.algorithms', 'tokens are signed with RS256, or with EdDSA where the operator says so', async () => {
  const { url } = await start({ access: { clients: { shop: { secret: SECRET } } } })
  const { header } = await claimsOf(url, await tokenFrom(url, SHOP))
  expect(header).toMatchObject({ alg: 'RS256' })
})

verifies('oauth.client-secret', 'a secret comes by Basic, encoded or not, or in the body', async () => {
  const { url } = await start()
  const encoded = basic(encodeURIComponent(SHOP[0]), encodeURIComponent(SECRET).replaceAll('%20', '+'))
  const grant = { grant_type: 'client_credentials' }
  expect((await postForm(`${url}/auth/token`, grant, { authorization: encoded })).status).toBe(200)
  expect((await postForm(`${url}/auth/token`, grant, { authorization: basic(...SHOP) })).status).toBe(200)
  expect((await postForm(`${url}/auth/token`, { ...grant, client_id: SHOP[0], client_secret: SECRET })).status).toBe(200)
})

test("a caller's static token is a client, too, with the rights of the token", async () => {
  const { url } = await start({ grants: { alice: ['platform'] } })
  const { body } = await ask(url, {}, ALICE)
  expect(body['scope']).toBe('write operate platform')
  expect(await claimsOf(url, body['access_token'])).toMatchObject({ sub: 'alice', client_id: 'alice' })
  expect((await ask(url, { scope: 'admin' }, ALICE)).body['error']).toBe('invalid_scope')
  expect((await ask(url, { scope: 'host:demo' }, ALICE)).body['error']).toBe('invalid_scope')
})

verifies(['aoauth.target', 'aoauth.agent-url'], 'a token is for the agent that the target names', async () => {
  const { url } = await start()
  const audience = async (target: string, by: readonly [string, string] = SHOP) =>
    (await claimsOf(url, await tokenFrom(url, by, { target }))).aud
  const bobs = `${url}/agents/team.bob`
  expect(await audience('@team.bob')).toBe(bobs)
  expect(await audience('team.bob')).toBe(bobs)
  expect(await audience(bobs)).toBe(bobs)
  expect(await audience(`${url}/`)).toBe(url)
  expect(await audience(bobs.replace('127.0.0.1', 'localhost'))).toBe(bobs)
  expect(await audience('https://other.example/agents/x', ['two', 'two-0123456789abcdef'])).toBe('https://other.example/agents/x')
  expect(await audience('https://any.example', ['all', 'all-0123456789abcdef'])).toBe('https://any.example')
  const {
    iss,
    agent_path: path,
    sub,
  } = await claimsOf(url, await tokenFrom(url, ['team.bob', 'bob-0123456789abcdef'], { target: '@demo' }))
  expect(`${iss}${path as string}/${sub}`).toBe(bobs)
  expect((await claimsOf(url, await tokenFrom(url, ['one', 'one-0123456789abcdef']))).aud).toBe(bobs)
})

verifies('oauth.errors', 'mistakes get the error of their kind', async () => {
  const { url } = await start()
  const cases: readonly (readonly [string, Readonly<Record<string, string>>, (readonly [string, string])?])[] = [
    ['unsupported_grant_type', { grant_type: 'password' }],
    ['invalid_target', { target: '@nobody' }],
    ['invalid_target', { target: 'javascript:alert(1)' }],
    ['invalid_target', { target: `${url}/agents/nobody` }],
    ['invalid_target', { target: `${url}/agents/demo/../x` }],
    ['invalid_target', { target: 'https://other.example' }],
    ['invalid_target', { target: 'https://user:pass@other.example' }, ['all', 'all-0123456789abcdef']],
    ['invalid_target', { target: '@demo' }, ['one', 'one-0123456789abcdef']],
    ['invalid_target', { target: 'https://other.example/else' }, ['two', 'two-0123456789abcdef']],
    ['invalid_target', {}, ['two', 'two-0123456789abcdef']],
    ['invalid_request', { target: '@demo', audience: '@secret' }],
    ['invalid_scope', { scope: 'admin' }],
    ['invalid_scope', { scope: 'write' }],
    ['invalid_scope', { scope: 'read "quoted"' }],
    ['invalid_scope', { scope: Array.from({ length: 65 }, (_, i) => `tools:${i}`).join(' ') }],
  ]
  for (const [error, fields, by] of cases) {
    const { status, headers, body } = await ask(url, fields, by)
    expect([status, body['error']], JSON.stringify(fields)).toEqual([400, error])
    expect(body['error_description']).toEqual(expect.stringMatching(/^[ !#-[\]-~]+$/))
    expect(headers.get('cache-control')).toBe('no-store')
  }
  const missing = await postForm(`${url}/auth/token`, {}, { authorization: basic(...SHOP) })
  expect([missing.status, missing.body['error']]).toEqual([400, 'invalid_request'])
  const json = await fetch(`${url}/auth/token`, { method: 'POST', body: '{}', headers: { 'content-type': 'application/json' } })
  expect([json.status, ((await json.json()) as { error: string }).error]).toEqual([400, 'invalid_request'])
})

verifies(['oauth.repeated', 'oauth.one-way'], 'a field that comes twice, and a client that proves itself twice, are refused', async () => {
  const { url } = await start()
  const body = 'grant_type=client_credentials&scope=read&scope=call'
  const form = { 'content-type': 'application/x-www-form-urlencoded' }
  const twice = await fetch(`${url}/auth/token`, { method: 'POST', body, headers: { ...form, authorization: basic(...SHOP) } })
  expect([twice.status, ((await twice.json()) as { error: string }).error]).toEqual([400, 'invalid_request'])
  const both = await ask(url, { client_id: SHOP[0], client_secret: SECRET })
  expect([both.status, both.body['error']]).toEqual([400, 'invalid_request'])
  expect((await ask(url, { scope: '' })).body['scope']).toBe('read call tools:*')
})

verifies('oauth.invalid-client', 'whoever has not proved to be a client gets 401 and a challenge', async () => {
  const { url, logged } = await start()
  const wrong: readonly (readonly [string, string])[] = [
    ['shop', 'wrong'],
    ['shop', ''],
    ['nobody', SECRET],
    ['__proto__', SECRET],
    ['', ''],
    // What unknown names are compared with is nobody's secret.
    ['nobody', 'nobody'],
  ]
  for (const [name, secret] of wrong) {
    const { status, headers, body } = await ask(url, {}, [name, secret])
    expect([status, body['error']], name).toEqual([401, 'invalid_client'])
    expect(headers.get('www-authenticate')).toMatch(/^Basic realm=/)
  }
  for (const authorization of ['Basic ***', 'Basic', 'Bearer x', basic('shop', SECRET).slice(0, -9)]) {
    expect((await postForm(`${url}/auth/token`, { grant_type: 'client_credentials' }, { authorization })).status).toBe(401)
  }
  expect((await postForm(`${url}/auth/token`, { grant_type: 'client_credentials', client_id: 'shop' })).status).toBe(401)
  expect(JSON.stringify(logged)).not.toContain(SECRET)
})

test('a request that is wrong is told what would be right', async () => {
  const { url } = await start()
  const post = async (fields: Readonly<Record<string, string>>, headers?: Readonly<Record<string, string>>) =>
    (await postForm(`${url}/auth/token`, { grant_type: 'client_credentials', ...fields }, headers)).body['error_description']
  expect(await post({})).toMatch(/^The client must prove who it is: by HTTP Basic, with client_id and client_secret, or/)
  expect(await post({}, { authorization: `Bearer ${SECRET}` })).toMatch(/^The Authorization header of a client must be HTTP Basic/)
  const shop = { authorization: basic('shop', SECRET) }
  expect(await post({ scope: 'Read' }, shop)).toBe('The scope Read is not granted. What is: read call tools:*')
  expect(await post({ grant_type: 'token-exchange' }, shop)).toMatch(
    /must be client_credentials or urn:ietf:params:oauth:grant-type:token-e/,
  )
  const exchange = { grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange', subject_token: 'x', subject_token_type: 'access_token' }
  expect(await post(exchange, shop)).toMatch(
    /^The subject_token_type is not known here: write urn:ietf:params:oauth:token-type:access_token$/,
  )
})

test('a client that is refused is named in the log, with the reason', async () => {
  const { url, logged } = await start()
  await ask(url, {}, ['shop', 'wrong'])
  expect(JSON.stringify(logged)).toMatch(/A client was refused.*"client":"shop","because":"The secret is wrong"/)
})

test('wrong secrets are throttled as wrong tokens are, and right ones pass', async () => {
  const { url } = await start({ limits: { wrongTokenBurst: 3, wrongTokensPerSecond: 0.001 } })
  const statuses: number[] = []
  for (let round = 0; round < 5; round++) statuses.push((await ask(url, {}, ['shop', `wrong ${round}`])).status)
  expect(statuses).toEqual([401, 401, 401, 429, 429])
  const late = await ask(url, {}, ['shop', 'wrong'])
  expect([late.body['error'], Number(late.headers.get('retry-after'))]).toEqual(['temporarily_unavailable', expect.any(Number)])
  expect((await ask(url)).status).toBe(200)
  expect((await fetch(`${url}/capabilities`, { headers: { authorization: 'Bearer wrong' } })).status).toBe(200)
  expect((await fetch(`${url}/models`, { headers: { authorization: 'Bearer wrong' } })).status).toBe(429)
})

test('a form is read up to 16 KiB', async () => {
  const { url } = await start()
  expect((await ask(url, { pad: 'x'.repeat(15_000) })).status).toBe(200)
  expect((await ask(url, { pad: 'x'.repeat(17_000) })).status).toBe(413)
  const body = new ReadableStream({
    pull(controller) {
      controller.enqueue(new TextEncoder().encode('x'.repeat(8192)))
    },
  })
  const headers = { 'content-type': 'application/x-www-form-urlencoded', authorization: basic(...SHOP) }
  const endless = await fetch(`${url}/auth/token`, { method: 'POST', body, headers, duplex: 'half' } as RequestInit)
  expect(endless.status).toBe(413)
})

verifies(
  ['oauth.metadata', 'aoauth.openid-configuration', 'aoauth.per-agent', 'oauth.metadata-path'],
  'the server and each agent describe themselves, by the configured URL',
  async () => {
    const publicUrl = 'https://agents.example/ai'
    const { url } = await start({ publicUrl, prefix: '/ai', allowedHosts: ['*'] })
    const get = async (path: string) => (await fetch(`${url}${path}`, { headers: { 'x-forwarded-host': 'evil.example' } })).json()
    const root = {
      issuer: publicUrl,
      jwks_uri: `${publicUrl}/.well-known/jwks.json`,
      token_endpoint: `${publicUrl}/auth/token`,
      revocation_endpoint: `${publicUrl}/auth/revoke`,
      grant_types_supported: ['client_credentials', 'urn:ietf:params:oauth:grant-type:token-exchange'],
      token_endpoint_auth_methods_supported: ['client_secret_basic', 'client_secret_post', 'private_key_jwt'],
      response_types_supported: ['token'],
      subject_types_supported: ['public'],
      scopes_supported: expect.arrayContaining(['read', 'write', 'admin']),
    }
    expect(await get('/.well-known/openid-configuration')).toMatchObject(root)
    expect(await get('/.well-known/oauth-authorization-server')).toMatchObject(root)
    const own = { issuer: `${publicUrl}/agents/team.bob`, token_endpoint: `${publicUrl}/agents/team.bob/auth/token` }
    expect(await get('/agents/team.bob/.well-known/openid-configuration')).toMatchObject(own)
    expect(await get('/agents/team.bob/.well-known/oauth-authorization-server')).toMatchObject(own)
    expect(await get('/.well-known/oauth-authorization-server/agents/team.bob')).toMatchObject(own)
    expect((await fetch(`${url}/.well-known/oauth-authorization-server/agents/nobody`)).status).toBe(404)
    const token = await tokenFrom(`${url}/agents/team.bob`, SHOP)
    expect(await claimsOf(`${url}/agents/team.bob`, token)).toMatchObject({ iss: own.issuer, aud: own.issuer })
  },
)

test('the keys have a tag and an age, and whoever has them is told so', async () => {
  const { url } = await start()
  const first = await fetch(`${url}/.well-known/jwks.json`)
  expect(first.headers.get('cache-control')).toBe('public, max-age=300')
  expect(first.headers.get('content-type')).toBe('application/json')
  const { keys } = (await first.json()) as { keys: { alg: 'EdDSA' | 'RS256' | 'ES256' }[] }
  const fields = { EdDSA: ['crv', 'x'], RS256: ['e', 'n'], ES256: ['crv', 'x', 'y'] }
  expect(keys.map(({ alg }) => alg)).toEqual(['EdDSA', 'EdDSA', 'RS256', 'RS256', 'ES256', 'ES256'])
  for (const key of keys) expect(Object.keys(key).toSorted()).toEqual(['alg', 'kid', 'kty', 'use', ...fields[key.alg]].toSorted())
  const etag = first.headers.get('etag') ?? ''
  const again = await fetch(`${url}/.well-known/jwks.json`, { headers: { 'if-none-match': etag } })
  expect([again.status, await again.text()]).toEqual([304, ''])
})

verifies('oauth.jwks', 'keys that were read before anything was signed verify the first answer and the first card', async () => {
  const publicUrl = 'https://agents.example'
  const { url } = await start({ publicUrl, a2a: { sign: true } })
  const keys = createLocalJWKSet((await (await fetch(`${url}/.well-known/jwks.json`)).json()) as JSONWebKeySet)
  const asked = await fetch(`${url}/agents/demo/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${ALICE[1]}`, 'x-uamp-signature': 'chunk' },
    body: JSON.stringify({ messages: [{ role: 'user', content: 'hello' }] }),
  })
  const { signature } = (await asked.json()) as { signature: string }
  expect((await jwtVerify(signature, keys)).payload.iss).toBe(`${publicUrl}/agents/demo`)
  const one = { headers: { 'a2a-version': '1.0' } }
  const card = (await (await fetch(`${url}/agents/demo/.well-known/agent-card.json`, one)).json()) as {
    signatures: { protected: string }[]
  }
  const header = decodeProtectedHeader({ payload: '', signature: '', protected: card.signatures[0]?.protected ?? '' })
  expect(await keys(header as JWSHeaderParameters)).toBeDefined()
})

test('a server that does not know its URL says so, and still has keys', async () => {
  // Mounted in a server of a user's, so that it cannot know where it listens.
  const app = createAgentApp(demo(), { data: 'memory', access: { clients: { shop: { secret: SECRET } } }, log: () => undefined })
  onTestFinished(() => app.close({ graceMs: 0 }))
  const description = await app.fetch(new Request('http://localhost/.well-known/openid-configuration'))
  expect(description.status).toBe(404)
  expect(await description.json()).toMatchObject({ error_description: expect.stringContaining('publicUrl') })
  const body = new URLSearchParams({ grant_type: 'client_credentials' })
  const headers = { authorization: basic(...SHOP) }
  const token = await app.fetch(new Request('http://localhost/auth/token', { method: 'POST', body, headers }))
  expect([token.status, await token.json()]).toEqual([
    501,
    expect.objectContaining({ error_description: expect.stringContaining('publicUrl') }),
  ])
  expect((await app.fetch(new Request('http://localhost/.well-known/jwks.json'))).status).toBe(200)
})

test.each([
  ['a name that is also that of a token', { tokens: { shop: ALICE[1] } }, 'also the name of a token'],
  ['a short secret', { access: { clients: { shop: { secret: 'short' } } } }, 'needs 16'],
  ['no secret and no keys', { access: { clients: { shop: {} } } }, 'one of'],
  ['a private key', { access: { clients: { shop: { jwks: { keys: [{ kty: 'OKP', d: 'x' }] } } } } }, 'private key'],
  ['the name of everybody', { access: { clients: { anonymous: { secret: SECRET } } } }, 'cannot have this name'],
])('a client with %s is refused at the start', async (_, options, message) => {
  await expect(start(options)).rejects.toThrow(message)
})

test('without clients and tokens nobody gets a token', async () => {
  const { url } = await startServer(demo())
  expect((await ask(url)).status).toBe(401)
})
