import { expect, test } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import type { Revocations } from '../../src/core/ports/revocations.ts'
import type { Transport } from '../../src/core/ports/transport.ts'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'
import { ACCESS_TOKEN, basic, claimsOf, EXCHANGE, postForm, tokenFrom } from './oauth.ts'

const SHOP = ['shop', 'shop-0123456789abcdef'] as const
const OTHER = ['other', 'other-0123456789abcdef'] as const
const ALICE = 'alice-0123456789abcdef'

async function start() {
  let revocations: Revocations | undefined
  const watch: Transport = { name: 'watch', serves: 'all', routes: (host) => ((revocations = host.revocations), []) }
  const clients = { shop: { secret: SHOP[1] }, other: { secret: OTHER[1] } }
  const server = await startServer(demo(), { access: { clients, algorithm: 'EdDSA' }, tokens: { alice: ALICE }, transports: [watch] })
  return { ...server, revocations: revocations as Revocations }
}

const revoke = (url: string, [name, secret]: readonly [string, string], token: string) =>
  postForm(`${url}/auth/revoke`, { token, token_type_hint: 'access_token' }, { authorization: basic(name, secret) })

/** Whether this server still takes a token for a good one. */
const isGood = async (url: string, subject_token: string) =>
  (
    await postForm(
      `${url}/auth/token`,
      { grant_type: EXCHANGE, subject_token, subject_token_type: ACCESS_TOKEN },
      { authorization: basic(...OTHER) },
    )
  ).status === 200

verifies('oauth.revoke', 'a client takes its token back, and no other goes with it', async () => {
  const { url, revocations } = await start()
  const [token, another] = [await tokenFrom(url, SHOP), await tokenFrom(url, SHOP)]
  expect(await isGood(url, token)).toBe(true)
  const { status, headers } = await revoke(url, SHOP, token)
  expect([status, headers.get('cache-control')]).toEqual([200, 'no-store'])
  expect([await isGood(url, token), await isGood(url, another)]).toEqual([false, true])
  const { jti } = await claimsOf(url, token)
  expect(revocations.list()).toMatchObject([{ kind: 'token', id: jti, issuer: url }])
  expect((await revoke(url, SHOP, token)).status).toBe(200)
})

verifies('oauth.revoke-unknown', 'a token that was never good is answered with 200', async () => {
  const { url, revocations } = await start()
  for (const token of ['x', 'a.b.c', SHOP[1]]) expect((await revoke(url, SHOP, token)).status).toBe(200)
  expect(revocations.list()).toEqual([])
})

verifies('oauth.revoke-other', "another's token is not revoked", async () => {
  const { url } = await start()
  const token = await tokenFrom(url, SHOP)
  const { status, body } = await revoke(url, OTHER, token)
  expect([status, body['error']]).toEqual([400, 'unauthorized_client'])
  expect((await revoke(url, ['shop', 'wrong'], token)).status).toBe(401)
  expect(await isGood(url, token)).toBe(true)
})

test('a revoked principal gets no tokens, and what it has is refused, whatever it is', async () => {
  const { url, revocations } = await start()
  const models = () => fetch(`${url}/v1/models`, { headers: { authorization: `Bearer ${ALICE}` } })
  const token = await tokenFrom(url, ['alice', ALICE])
  expect((await models()).status).toBe(200)
  await revocations.revoke({ kind: 'principal', id: 'alice' })
  const refused = await models()
  expect([refused.status, JSON.stringify(await refused.json())]).toEqual([401, expect.stringContaining('revoked')])
  expect(await isGood(url, token)).toBe(false)
  const asked = await postForm(`${url}/auth/token`, { grant_type: 'client_credentials' }, { authorization: basic('alice', ALICE) })
  expect([asked.status, asked.body['error']]).toEqual([400, 'unauthorized_client'])
  await revocations.restore({ kind: 'principal', id: 'alice' })
  expect([(await models()).status, await isGood(url, token)]).toEqual([200, true])
})
