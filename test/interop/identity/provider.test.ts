/** Tokens of a real identity provider at our server, over HTTP, UAMP events and A2A. */
import { ClientFactory, JsonRpcTransportFactory } from 'a2a1/client'
import { Role } from 'a2a1'
import { calculateJwkThumbprint, decodeJwt, exportJWK, generateKeyPair, SignJWT } from 'jose'
import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import type { IssuerSettings } from '../../../src/auth/settings.ts'
import { defineAgent } from '../../../src/core/agent-kit/define-agent.ts'
import { byHeader, now, WAYS } from '../../identity/support.ts'
import { startServer } from '../../support/server.ts'
import { say, textOf } from '../../support/talk.ts'
import { verifies } from '../../support/verifies.ts'
import { overWebSocket } from '../../support/wire.ts'
import { oidcProvider } from './oidc.ts'

const AUDIENCE = 'https://agents.example'
const STATIC = 'a-secret-of-sixteen'

/** Says who calls. */
const who = defineAgent('demo', async function* ({ principal: { id, tenant, subject, scopes } }) {
  yield JSON.stringify({ id, tenant, subject, scopes })
})

type Provider = Awaited<ReturnType<typeof oidcProvider>>

function serverFor({ issuer }: Provider, settings: Partial<IssuerSettings> = {}) {
  const claims = { id: 'client_id', tenant: 'org.id' }
  return startServer(who, {
    tokens: { root: STATIC },
    access: { issuers: [{ issuer, audience: AUDIENCE, claims, ...settings }] },
    limits: { wrongTokenBurst: 1000 },
  })
}

async function overCompletions(url: string, token: string): Promise<string> {
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'demo', messages: [{ role: 'user', content: 'Who am I?' }] }),
  })
  if (!response.ok) throw new Error(await response.text())
  const { choices } = (await response.json()) as { choices: { message: { content: string } }[] }
  return choices[0]?.message.content ?? ''
}

async function overEvents(url: string, token: string): Promise<string> {
  const wire = await overWebSocket(url)
  await wire.open({ token })
  const answer = textOf(await say(wire, 'Who am I?'))
  wire.close()
  return answer
}

/** What a request shows to be admitted. */
type Show = (method: string, url: string) => Promise<Readonly<Record<string, string>>>

/** By the official client. */
async function overA2a(url: string, token: string, show: Show = async () => ({ authorization: `Bearer ${token}` })): Promise<string> {
  const fetchImpl: typeof fetch = async (input, init) => {
    const { method, url: called, headers } = new Request(input, init)
    return fetch(input, { ...init, headers: { ...Object.fromEntries(headers), ...(await show(method, called)) } })
  }
  const client = await new ClientFactory({ transports: [new JsonRpcTransportFactory({ fetchImpl })] }).createFromUrl(`${url}/`)
  const message = { messageId: crypto.randomUUID(), taskId: '', contextId: '', role: Role.ROLE_USER, metadata: undefined }
  const parts = [{ content: { $case: 'text', value: 'Who am I?' } as const, filename: '', mediaType: '', metadata: undefined }]
  const answer = await client.sendMessage({
    tenant: '',
    message: { ...message, parts, extensions: [], referenceTaskIds: [] },
    configuration: undefined,
    metadata: undefined,
  })
  const items = 'status' in answer ? answer.artifacts.flatMap((artifact) => artifact.parts) : answer.parts
  return items.map(({ content }) => (content?.$case === 'text' ? content.value : '')).join('')
}

const PROTOCOLS = { completions: overCompletions, events: overEvents, A2A: overA2a }

verifies('verify.provider', 'a program shows a token of its provider, over every protocol', async () => {
  const provider = await oidcProvider()
  const { url } = await serverFor(provider)
  const token = await provider.token({ resource: AUDIENCE })
  for (const [name, protocol] of Object.entries(PROTOCOLS)) {
    expect(JSON.parse(await protocol(url, token)), name).toEqual({
      id: `${encodeURIComponent(provider.issuer)}/robot`,
      tenant: 'acme',
      subject: 'robot',
      scopes: ['read', 'call'],
    })
  }
  for (const way of Object.values(WAYS)) expect(await way(url, token)).toMatchObject({ accepted: true })
  // Its keys are found by discovery, once.
  expect(provider.asked.filter((path) => path !== '/token')).toEqual(['/.well-known/openid-configuration', '/jwks'])
})

verifies('verify.provider', 'a person who signed in calls with the access token, and not with the ID token', async () => {
  const provider = await oidcProvider()
  const { url } = await serverFor(provider, { claims: {} })
  const { accessToken, idToken } = await provider.signIn(AUDIENCE)
  expect(JSON.parse(await overCompletions(url, accessToken))).toMatchObject({
    tenant: 'default',
    subject: 'alice',
    scopes: ['read', 'call'],
  })
  for (const way of Object.values(WAYS)) {
    expect(await way(url, idToken)).toMatchObject({ accepted: false, error: { message: expect.stringContaining('of the type ""') } })
  }
  // Not even for an operator who takes what the app itself gets, of any type.
  const { aud } = decodeJwt(idToken)
  const lax = await serverFor(provider, { claims: {}, typ: '', audience: String(aud), scopes: ['write'] })
  for (const way of Object.values(WAYS)) {
    expect(await way(lax.url, idToken)).toMatchObject({ accepted: false, error: { message: 'This is not an access token' } })
  }
})

verifies('verify.provider', 'a token for another server, of another provider, or that cannot be read is refused', async () => {
  const [provider, other] = [await oidcProvider(), await oidcProvider()]
  const { url, logged } = await serverFor(provider)
  const refused: readonly (readonly [token: string, because: string])[] = [
    [await provider.token({ resource: 'https://other.example' }), 'The token is for another server'],
    [await other.token({ resource: AUDIENCE }), 'This server does not believe the issuer of the token'],
    [await provider.token(), 'valid'],
  ]
  for (const [token, because] of refused) {
    for (const way of Object.values(WAYS)) {
      const outcome = await way(url, token)
      expect(outcome).toMatchObject({ accepted: false, error: { message: expect.stringContaining(because) } })
      if (outcome.status !== undefined) expect(outcome.status).toBe(401)
    }
    await expect(overA2a(url, token)).rejects.toThrow(because)
    expect(JSON.stringify(logged)).not.toContain(token)
  }
  expect(other.asked).toEqual(['/token'])
})

verifies(['verify.provider', 'trust.reserved'], 'a provider cannot make anybody an administrator', async () => {
  const provider = await oidcProvider()
  const { url } = await serverFor(provider)
  const token = await provider.token({ resource: AUDIENCE, scope: 'call admin service:billing' })
  expect(JSON.parse(await overCompletions(url, token))).toMatchObject({ scopes: ['call'] })
  const metrics = await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${token}` } })
  expect(metrics.status).toBe(403)
  // What its words mean here is what the operator says.
  const mapped = await serverFor(provider, { scopes: { admin: ['call', 'tool'], 'service:billing': ['pay'] } })
  expect(JSON.parse(await overCompletions(mapped.url, token))).toMatchObject({ scopes: ['call', 'tool', 'pay'] })
})

verifies(['verify.provider', 'keys.rotation'], 'the provider replaces its key, and neither the old nor the new tokens fail', async () => {
  const provider = await oidcProvider()
  const { url } = await serverFor(provider)
  const before = await provider.token({ resource: AUDIENCE })
  expect(await byHeader(url, before)).toMatchObject({ accepted: true })
  await provider.rotate()
  const [after, late] = [await provider.token({ resource: AUDIENCE }), await provider.token({ resource: AUDIENCE })]
  for (const way of Object.values(WAYS)) {
    for (const token of [after, late, before]) expect(await way(url, token)).toMatchObject({ accepted: true })
  }
  expect(provider.asked.filter((path) => path === '/jwks').length).toBe(2)
})

verifies('verify.provider', 'a provider that is down locks nobody out whose key is known, and is no fault of the others', async () => {
  const provider = await oidcProvider()
  const { url } = await serverFor(provider)
  const [token, another] = [await provider.token({ resource: AUDIENCE }), await provider.token({ resource: AUDIENCE })]
  expect(await byHeader(url, token)).toMatchObject({ accepted: true })
  await provider.rotate()
  const replaced = await provider.token({ resource: AUDIENCE })
  await provider.stop()
  const fresh = await serverFor(provider)
  for (const way of Object.values(WAYS)) {
    for (const known of [token, another]) expect(await way(url, known)).toMatchObject({ accepted: true })
    // A key that is not known yet, and a server that knows none: nobody can say that the token is wrong.
    for (const [server, given] of [
      [url, replaced],
      [fresh.url, token],
    ] as const) {
      const { accepted, status, error, challenge } = await way(server, given)
      expect({ accepted, challenge }).toEqual({ accepted: false, challenge: undefined })
      expect(error.message).toBe('The keys of the identity provider cannot be read now')
      if (status !== undefined) expect(status).toBe(503)
    }
    expect(await way(fresh.url, STATIC)).toMatchObject({ accepted: true })
  }
  const response = await fetch(`${fresh.url}/v1/models`, { headers: { authorization: `Bearer ${token}` } })
  expect([response.status, response.headers.get('retry-after')]).toEqual([503, '60'])
  expect(fresh.logged.filter(({ message }) => message === 'The keys of an issuer could not be read').length).toBe(1)
})

verifies(['verify.provider', 'dpop.accepted', 'dpop.bearer'], 'a token that the provider has bound to a key needs a proof', async () => {
  const provider = await oidcProvider()
  const { url } = await serverFor(provider)
  const { publicKey, privateKey } = await generateKeyPair('ES256')
  const jwk = await exportJWK(publicKey)
  const prove = (htm: string, htu: string, more: object = {}) =>
    new SignJWT({ htm, htu, jti: crypto.randomUUID(), iat: now(), ...more })
      .setProtectedHeader({ alg: 'ES256', typ: 'dpop+jwt', jwk })
      .sign(privateKey)
  const token = await provider.token({ resource: AUDIENCE, proof: (at) => prove('POST', at) })
  expect(decodeJwt(token)['cnf']).toEqual({ jkt: await calculateJwkThumbprint(jwk) })
  const ath = createHash('sha256').update(token).digest('base64url')
  const show: Show = async (htm, htu) => ({ authorization: `DPoP ${token}`, dpop: await prove(htm, htu, { ath }) })
  expect(JSON.parse(await overA2a(url, token, show))).toMatchObject({ tenant: 'acme', subject: 'robot' })
  await expect(overA2a(url, token)).rejects.toThrow('The token is for the holder of a key')
  const models = async (headers: Readonly<Record<string, string>>) => (await fetch(`${url}/v1/models`, { headers })).status
  expect(await models(await show('GET', `${url}/v1/models`))).toBe(200)
  expect(await models({ authorization: `DPoP ${token}` })).toBe(401)
  expect(await models({ authorization: `Bearer ${token}` })).toBe(401)
})

test('two configured providers are told apart, whatever names they give', async () => {
  const [one, other] = [await oidcProvider(), await oidcProvider()]
  const issuers = [one, other].map(({ issuer }) => ({ issuer, audience: AUDIENCE }))
  const { url } = await startServer(who, { access: { issuers } })
  const ids = await Promise.all(
    [one, other].map(async (provider) => JSON.parse(await overCompletions(url, await provider.token({ resource: AUDIENCE })))),
  )
  expect(ids.map(({ id }: { id: string }) => id)).toEqual([one, other].map(({ issuer }) => `${encodeURIComponent(issuer)}/robot`))
})
