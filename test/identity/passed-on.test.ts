/** What an attacker might do with tokens that were passed on, and with tokens in the body of a request. */
import { createHash } from 'node:crypto'
import { decodeJwt } from 'jose'
import { expect, test } from 'vitest'
import { serverIdentity } from '../../src/auth/own-identity.ts'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { text } from '../../src/core/agent-kit/drafts.ts'
import { principalId } from '../../src/core/basics/principal.ts'
import type { ServerFacts } from '../../src/core/ports/agent.ts'
import type { Signer } from '../../src/core/ports/keys.ts'
import type { Host, Transport } from '../../src/core/ports/transport.ts'
import { verifySigned } from '../../src/client/verify.ts'
import { OutboundAuth } from '../../src/upstream/outbound-auth.ts'
import { caller, gate, message, patient, stateOf, webhook } from '../a2a/push-support.ts'
import { startServer } from '../support/server.ts'
import { ACCESS_TOKEN, basic, claimsOf, EXCHANGE, postForm, tokenFrom } from './oauth.ts'
import { byHeader, identityServer, issuer, keyPair, now } from './support.ts'

const USER = ['user', 'user-0123456789abcdef'] as const
const ROBOT = ['robot', 'robot-0123456789abcdef'] as const
const clients = { user: { secret: USER[1] }, robot: { secret: ROBOT[1] } }

function exchange(url: string, fields: Readonly<Record<string, string>>) {
  const types = { subject_token_type: ACCESS_TOKEN, ...('actor_token' in fields && { actor_token_type: ACCESS_TOKEN }) }
  return postForm(`${url}/auth/token`, { grant_type: EXCHANGE, ...types, ...fields }, { authorization: basic(...ROBOT) })
}

test('tokens that a client got for others end when its access is revoked', async () => {
  const { url, host } = await identityServer({ access: { clients } })
  const { body } = await exchange(url, { subject_token: await tokenFrom(url, USER), target: '@demo' })
  const passedOn = String(body['access_token'])
  const accepted = async () => (await byHeader(url, passedOn)).accepted
  for (const id of ['robot', principalId(url, 'robot')]) {
    expect(await accepted()).toBe(true)
    await host.revocations?.revoke({ kind: 'principal', id })
    expect(await accepted(), id).toBe(false)
    expect(await byHeader(url, await tokenFrom(url, USER))).toMatchObject({ accepted: true })
    await host.revocations?.restore({ kind: 'principal', id })
  }
})

test('a client cannot hide behind a token that it got for somebody else', async () => {
  const { url } = await identityServer({ access: { clients } })
  const users = await tokenFrom(url, USER)
  const { body } = await exchange(url, { subject_token: users, target: '@demo' })
  const hidden = await exchange(url, { subject_token: users, actor_token: String(body['access_token']) })
  expect(hidden).toMatchObject({ status: 400, body: { error: 'invalid_request' } })
  const own = await exchange(url, { subject_token: users, actor_token: await tokenFrom(url, ROBOT) })
  expect(await claimsOf(url, own.body['access_token'])).toMatchObject({ sub: 'user', act: { sub: 'robot' } })
})

test('a stream ends with the token in the body that opened its session', async () => {
  const forever = defineAgent('forever', async function* ({ signal }) {
    yield text('begun')
    await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
  })
  const { url } = await startServer(forever, { tokens: { caller: 'caller-0123456789abcdef' }, access: { clients } })
  const token = await tokenFrom(url, USER)
  const events = [
    { type: 'session.create', event_id: '1', uamp_version: '1.0', token, session: {} },
    { type: 'input.text', event_id: '2', text: 'x' },
    { type: 'response.create', event_id: '3' },
  ]
  const headers = { authorization: 'Bearer caller-0123456789abcdef', accept: 'text/event-stream' }
  const { body } = await fetch(`${url}/events`, { method: 'POST', headers, body: JSON.stringify(events) })
  let heard = ''
  let revoked: number | undefined
  for await (const piece of body?.pipeThrough(new TextDecoderStream()) ?? []) {
    heard += piece
    if (!heard.includes('begun') || revoked !== undefined) continue
    revoked = (await postForm(`${url}/auth/revoke`, { token }, { authorization: basic(...USER) })).status
  }
  expect([revoked, heard.match(/"reason":"\w+"/g)?.at(-1)]).toEqual([200, '"reason":"token_revoked"'])
})

test('the keys of a signature come from its issuer, and not from a file that lies there', async () => {
  const pair = await keyPair('forged')
  const asked: string[] = []
  const files: typeof fetch = async (address) => {
    asked.push(String(address))
    return Response.json({ keys: [pair.jwk] })
  }
  const claims = { response_hash: createHash('sha256').update('I owe you').digest('hex'), iat: now(), exp: now() + 60 }
  const sign = (iss: string) => pair.sign({ iss, ...claims }, { typ: 'response+jwt' })
  const good = 'https://good.example'
  const check = async (iss: string, issuer?: string) =>
    verifySigned({ signature: await sign(iss), response: 'I owe you' }, { fetch: files, ...(issuer !== undefined && { issuer }) })
      .then(({ valid }) => valid)
      .catch(() => false)
  expect(await check(`${good}/agents/bob`, good)).toBe(true)
  expect(asked).toEqual([`${good}/agents/bob/.well-known/jwks.json`])
  for (const path of ['/agents/../files/1?', '/agents/x/../../files/1#', '/agents/..\\files/1?', '/agents/x?', '/agents/bob/files/1']) {
    expect(await check(good + path, good), path).toBe(false)
  }
  for (const forged of [`${good}/files/1?`, `${good}/a/../files/1#`, 'https://good.example@evil.example']) {
    expect(await check(forged), forged).toBe(false)
  }
  expect(asked.length).toBe(1)
})

test('elsewhere, an agent does not pass for a caller of the same name', async () => {
  const { host, url } = await identityServer()
  const auth = new OutboundAuth({ name: 'helper', url: 'https://other.example', auth: { type: 'self', as: 'caller' } })
  auth.prepare({ identity: serverIdentity({ signer: () => host.signer as Signer, url: () => url, now: Date.now }) } as ServerFacts)
  const subjectFor = async (id: string) => {
    const principal = { tenant: 'default', id, issuer: url, subject: 'alice', scopes: [] }
    const token = await auth.token({ principal, http: host.http, signal: new AbortController().signal })
    return decodeJwt(token).sub
  }
  expect(await subjectFor(principalId(url, 'alice'))).toBe('alice')
  expect(await subjectFor(principalId(url, 'alice', '/agents'))).toBe(principalId(url, 'alice', '/agents'))
})

test('what begins in the moment in which its token is revoked ends, too', async () => {
  const { host } = await identityServer()
  const caller = { tenant: 'default', id: 'bob', scopes: [] }
  await host.revocations?.revoke({ kind: 'principal', id: 'bob' })
  // The token was looked at before, and the stream is there only now.
  const ended = new Promise<string>((resolve) => host.live.add({ principal: () => caller, cut: resolve }))
  expect(await ended).toBe('token_revoked')
})

test('an ID token that names its app, or has roles, is still no access token', async () => {
  const pair = await keyPair('idp')
  const from = await issuer(pair)
  const settings = { issuer: from.url, audience: 'the-app', typ: 'JWT', claims: { scopes: ['scp', 'roles'] }, scopes: { '*': ['call'] } }
  const { url } = await identityServer({ access: { issuers: [settings] } })
  const asked = async (more: object) => {
    const claims = { iss: from.url, aud: 'the-app', sub: 'alice', iat: now(), exp: now() + 300, ...more }
    return (await byHeader(url, await pair.sign(claims, { typ: 'JWT' }))).accepted
  }
  expect(await asked({ azp: 'the-app', scp: 'x' })).toBe(true)
  expect(await asked({ azp: 'the-app', email: 'alice@example.com' })).toBe(false)
  expect(await asked({ tid: 'acme', ver: '2.0', uti: 'u', roles: ['x'] })).toBe(false)
  expect(await asked({ tid: 'acme', ver: '2.0', uti: 'u', roles: ['x'], azp: 'robot', azpacr: '1' })).toBe(true)
})

test('webhooks of a caller whose access was revoked are told nothing more, by any name of theirs', async () => {
  const { opened, open } = gate()
  const hooks = await Promise.all([webhook(), webhook(), webhook()])
  let host: Host | undefined
  const watch: Transport = { name: 'watch', routes: (given) => ((host = given), []) }
  const both = { ...clients, other: { secret: 'other-0123456789abcdef' } }
  const options = { access: { clients: both }, outbound: { allow: ['127.0.0.1'] }, transports: [watch] }
  const { url, logged } = await startServer(patient(opened), options)
  const callers = [USER, ROBOT, ['other', both.other.secret]] as const
  for (const [at, who] of callers.entries()) {
    const configuration = { taskPushNotificationConfig: { url: hooks[at]?.url }, returnImmediately: true }
    await caller(url, await tokenFrom(url, who))('SendMessage', { message: message(), configuration })
    await hooks[at]?.until(() => hooks[at]?.got.length !== 0)
  }
  await host?.revocations?.revoke({ kind: 'principal', id: 'user' })
  await host?.revocations?.revoke({ kind: 'principal', id: principalId(url, 'robot') })
  open()
  await hooks[2]?.untilEnd()
  const isDropped = (fields?: Readonly<Record<string, unknown>>) => fields?.['why'] === 'the access of its owner was revoked'
  const dropped = () => new Set(logged.flatMap(({ fields }) => (isDropped(fields) ? [fields?.['task']] : [])))
  await expect.poll(() => dropped().size, { timeout: 10_000 }).toBe(2)
  const ends = hooks.map(({ got }) => got.some(({ body }) => stateOf(body) === 'completed'))
  expect(ends).toEqual([false, false, true])
})

test('somebody whom only a stored id names is revoked as the client that they are', async () => {
  const { host, url } = await identityServer()
  await host.revocations?.revoke({ kind: 'principal', id: 'bob' })
  const found = (id: string) => host.revocations?.find({ tenant: 'default', id, scopes: [] })
  expect(found(principalId(url, 'bob'))).toBe('principal')
  expect(found(principalId(`${url}/agents/demo`, 'bob'))).toBe('principal')
  expect([found(principalId('https://other.example', 'bob')), found(principalId(url, 'eve'))]).toEqual([undefined, undefined])
})
