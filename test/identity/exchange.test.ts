import { expect, test } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { mintToken, signJwt } from '../../src/auth/mint.ts'
import { storedSigner } from '../../src/auth/signer.ts'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { text } from '../../src/core/agent-kit/drafts.ts'
import type { Signer } from '../../src/core/ports/keys.ts'
import type { Transport } from '../../src/core/ports/transport.ts'
import { passingKeys } from '../../src/stores/file-keys.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'
import { ACCESS_TOKEN, basic, claimsOf, EXCHANGE, postForm, tokenFrom } from './oauth.ts'

const agents = ['a', 'b', 'c'].map((name) =>
  defineAgent(name, async function* () {
    yield text(name)
  }),
)
const USER = ['user', 'user-0123456789abcdef'] as const
const A = ['a', 'aaaa-0123456789abcdef'] as const
const B = ['b', 'bbbb-0123456789abcdef'] as const
const READER = ['reader', 'reader-0123456789abcdef'] as const
const STRANGER = ['stranger', 'stranger-0123456789abcdef'] as const

async function start() {
  // A transport sees the signer, as code of an operator does.
  let signer: Signer | undefined
  const watch: Transport = { name: 'watch', serves: 'all', routes: (host) => ((signer = host.signer), []) }
  const clients = {
    user: { secret: USER[1] },
    a: { secret: A[1] },
    b: { secret: B[1] },
    reader: { secret: READER[1], scopes: ['read'] },
    stranger: { secret: STRANGER[1] },
  }
  const server = await startServer([demo(), ...agents], {
    defaultAgent: 'demo',
    access: { clients, algorithm: 'EdDSA' },
    transports: [watch],
  })
  return { ...server, signer: signer as Signer }
}

const exchange = (url: string, [name, secret]: readonly [string, string], fields: Readonly<Record<string, string>>) =>
  postForm(
    `${url}/auth/token`,
    {
      grant_type: EXCHANGE,
      subject_token_type: ACCESS_TOKEN,
      ...('actor_token' in fields && { actor_token_type: ACCESS_TOKEN }),
      ...fields,
    },
    { authorization: basic(name, secret) },
  )

verifies(
  ['oauth.exchange', 'oauth.exchange-act'],
  'an agent passes on the token that it was called with, and says that it acts',
  async () => {
    const { url } = await start()
    const first = await tokenFrom(url, USER, { target: '@a', scope: 'call' })
    const { status, headers, body } = await exchange(url, A, { subject_token: first, target: '@b' })
    expect([status, headers.get('cache-control')]).toEqual([200, 'no-store'])
    expect(body).toMatchObject({ token_type: 'Bearer', issued_token_type: ACCESS_TOKEN, scope: 'call' })
    const second = await claimsOf(url, body['access_token'])
    const act = { sub: 'a', iss: url }
    expect(second).toMatchObject({ iss: url, sub: 'user', aud: `${url}/agents/b`, client_id: 'a', scope: 'call', act })
    const third = await exchange(url, B, { subject_token: body['access_token'] as string, target: '@c' })
    expect(await claimsOf(url, third.body['access_token'])).toMatchObject({ sub: 'user', act: { sub: 'b', act } })
  },
)

verifies('oauth.exchange-narrows', 'nothing gets wider by an exchange', async () => {
  const { url } = await start()
  const token = await tokenFrom(url, USER, { target: '@a', scope: 'read call' })
  const { exp } = await claimsOf(url, token)
  const refusedWith = async (by: readonly [string, string], fields: Readonly<Record<string, string>>) =>
    (await exchange(url, by, { subject_token: token, ...fields })).body['error']
  expect(await refusedWith(A, { scope: 'write' })).toBe('invalid_scope')
  expect(await refusedWith(A, { scope: 'read tool' })).toBe('invalid_scope')
  expect(await refusedWith(A, { target: 'https://other.example' })).toBe('invalid_target')
  // The token is for another agent than this one.
  expect(await refusedWith(B, { target: '@b' })).toBe('invalid_target')
  expect(await refusedWith(STRANGER, { target: url })).toBe('invalid_target')
  const same = await exchange(url, A, { subject_token: token })
  const claims = await claimsOf(url, same.body['access_token'])
  expect(claims).toMatchObject({ aud: `${url}/agents/a`, scope: 'read call' })
  expect(claims.exp).toBeLessThanOrEqual(exp ?? 0)
  // A client that may only read passes on no more than that.
  const whole = await tokenFrom(url, USER)
  expect((await exchange(url, READER, { subject_token: whole })).body['error']).toBe('invalid_scope')
  const read = await tokenFrom(url, USER, { scope: 'read call' })
  expect((await exchange(url, READER, { subject_token: read })).body['scope']).toBe('read')
})

test('whoever holds a token for the whole server may narrow it to one agent', async () => {
  const { url } = await start()
  const token = await tokenFrom(url, USER)
  const { body } = await exchange(url, STRANGER, { subject_token: token, target: '@b', scope: 'read' })
  expect(await claimsOf(url, body['access_token'])).toMatchObject({ sub: 'user', aud: `${url}/agents/b`, act: { sub: 'stranger' } })
})

test('a client narrows its own token without acting for anybody', async () => {
  const { url } = await start()
  const { body } = await exchange(url, USER, { subject_token: await tokenFrom(url, USER, { target: '@a' }), target: '@b', scope: 'read' })
  expect(await claimsOf(url, body['access_token'])).toEqual(expect.not.objectContaining({ act: expect.anything() }))
})

test('an actor token names the actor, if it is the client’s own', async () => {
  const { url } = await start()
  const subject_token = await tokenFrom(url, USER, { target: '@a' })
  const own = await exchange(url, A, { subject_token, target: '@b', actor_token: await tokenFrom(url, A) })
  expect(await claimsOf(url, own.body['access_token'])).toMatchObject({ act: { sub: 'a' } })
  const other = await exchange(url, A, { subject_token, target: '@b', actor_token: await tokenFrom(url, B) })
  expect([other.status, other.body['error']]).toEqual([400, 'invalid_request'])
})

verifies('oauth.exchange-act', 'no more than eight act for each other', async () => {
  const { url } = await start()
  let token = await tokenFrom(url, USER)
  const answers: number[] = []
  for (let round = 0; round < 9; round++) {
    const { status, body } = await exchange(url, round % 2 === 0 ? A : B, { subject_token: token })
    answers.push(status)
    token = (body['access_token'] as string | undefined) ?? token
  }
  expect(answers).toEqual([200, 200, 200, 200, 200, 200, 200, 200, 400])
  let depth = 0
  for (let act = (await claimsOf(url, token))['act'] as { act?: unknown } | undefined; act; act = act.act as typeof act) depth++
  expect(depth).toBe(8)
})

verifies('oauth.exchange-invalid', 'a token that is not a good one of this server is not exchanged', async () => {
  const { url, signer } = await start()
  const now = Date.now()
  const usual = { issuer: url, subject: 'user', audience: url, scope: ['write'], now }
  const stranger = storedSigner({ store: memoryStore(), keys: passingKeys(), now: Date.now })
  const claims = { iss: url, sub: 'user', aud: url, scope: 'write', client_id: 'user', jti: '1', iat: now / 1000, exp: now / 1000 + 60 }
  const wrong: readonly (readonly [string, string])[] = [
    ['another key', await mintToken(stranger, usual)],
    ['another issuer', await mintToken(signer, { ...usual, issuer: 'https://other.example' })],
    ['an issuer that begins like ours', await mintToken(signer, { ...usual, issuer: `${url}.evil.example` })],
    ['expired', await mintToken(signer, { ...usual, now: now - 600_000 })],
    ['another type', await signJwt(signer, { purpose: 'tokens', typ: 'JWT', claims })],
    ['the key of another purpose', await signJwt(signer, { purpose: 'responses', typ: 'at+jwt', claims })],
    ['claims that are missing', await signJwt(signer, { purpose: 'tokens', typ: 'at+jwt', claims: { iss: url, exp: now / 1000 + 60 } })],
    ['not a token', 'x'],
    ['a secret', USER[1]],
  ]
  for (const [why, subject_token] of wrong) {
    const { status, body } = await exchange(url, A, { subject_token })
    expect([status, body['error']], why).toEqual([400, 'invalid_request'])
  }
  const good = await mintToken(signer, usual)
  expect((await exchange(url, A, { subject_token: good })).status).toBe(200)
  expect((await exchange(url, A, { subject_token: good, subject_token_type: 'urn:ietf:params:oauth:token-type:saml2' })).status).toBe(400)
  expect((await exchange(url, A, { subject_token: good, requested_token_type: 'urn:ietf:params:oauth:token-type:id_token' })).status).toBe(
    400,
  )
  expect((await exchange(url, A, {})).body['error']).toBe('invalid_request')
})

test('a token that ends soon gives one that ends as soon', async () => {
  const { url, signer } = await start()
  const short = await mintToken(signer, { issuer: url, subject: 'user', audience: url, scope: ['write'], now: Date.now(), ttlSeconds: 30 })
  const { body } = await exchange(url, A, { subject_token: short })
  expect(body['expires_in']).toBeLessThanOrEqual(30)
  expect((await claimsOf(url, body['access_token'])).exp).toBeLessThanOrEqual((await claimsOf(url, short)).exp ?? 0)
})
