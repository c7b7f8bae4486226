/** What is refused, with which code, and that nothing is done for it. */
import { randomUUID } from 'node:crypto'
import { expect, onTestFinished, test } from 'vitest'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { serve } from '../../src/serve/index.ts'
import type { RequirementId } from '../../spec/requirements.ts'
import { verifies } from '../support/verifies.ts'
import { company, message, pinned, post, signed, type Company, type Members } from './company.ts'

interface World {
  readonly url: string
  readonly did: string
  readonly client: Company
  readonly other: Company
}

let asked = 0
const agent = defineAgent('worker', async function* () {
  asked++
  yield 'done'
})

async function world(): Promise<World> {
  const [client, other] = [await company('did:web:client.example'), await company('did:web:other.example', 'EdDSA')]
  const server = await serve(agent, {
    port: 0,
    data: 'memory',
    log: () => undefined,
    tokens: { client: 'secret-of-the-client', other: 'secret-of-the-other' },
    insecureDev: true,
    envelope: { keys: pinned(client, other), senders: { [client.did]: 'client', [other.did]: 'other' }, maxBodyKb: 16 },
  })
  onTestFinished(() => server.close({ graceMs: 0 }))
  const { id } = (await (await fetch(`${server.url}/.well-known/did.json`)).json()) as { id: string }
  return { url: server.url, did: id, client, other }
}

const AS_CLIENT = { authorization: 'Bearer secret-of-the-client' }
const AS_OTHER = { authorization: 'Bearer secret-of-the-other' }

type Send = (world: World) => Promise<Response>

interface Cited {
  readonly verifies: RequirementId
}

/** A message that is right but for some members. */
const wrong =
  (more: Members | (() => Members)): Send =>
  async ({ url, did, client }) =>
    post(url, await signed(client, message(client, did, typeof more === 'function' ? more() : more)), AS_CLIENT)

const later = (seconds: number): string => new Date(Date.now() + seconds * 1000).toISOString()

const cases: Record<string, readonly [status: number, code: string, send: Send, cited?: Cited]> = {
  'no token': [
    401,
    '4.01',
    async ({ url, did, client }) => post(url, await signed(client, message(client, did))),
    { verifies: 'envelope:authentication' },
  ],
  'no signature': [401, '4.01', async ({ url, did, client }) => post(url, message(client, did), AS_CLIENT)],
  'a signature that is none': [401, '4.01', async ({ url, did, client }) => post(url, { ...message(client, did), sig: 'x' }, AS_CLIENT)],
  'a body that was changed afterwards': [
    401,
    '4.01',
    async ({ url, did, client }) => {
      const ask = await signed(client, message(client, did))
      return post(url, { ...ask, body: { type: 'text/plain', content: 'pay mallory 999' } }, AS_CLIENT)
    },
  ],
  'the token of another sender': [
    403,
    '4.03',
    async ({ url, did, client }) => post(url, await signed(client, message(client, did)), AS_OTHER),
    { verifies: 'envelope:sender-is-caller' },
  ],
  'a key of another sender': [
    401,
    '4.01',
    async ({ url, did, client, other }) => post(url, await signed(other, message(client, did)), AS_CLIENT),
  ],
  'a sender whose keys nobody can read': [
    403,
    '4.03',
    async ({ url, did }) => {
      const stranger = await company('did:web:localhost%3A1')
      return post(url, await signed(stranger, message(stranger, did)), AS_CLIENT)
    },
  ],
  'a recipient elsewhere': [403, '4.03', wrong({ to: ['did:web:elsewhere.example'] }), { verifies: 'envelope:to' }],
  'a time in the past': [401, '4.01', wrong(() => ({ ts: later(-301) })), { verifies: 'envelope:time' }],
  'a time in the future': [401, '4.01', wrong(() => ({ ts: later(310) })), { verifies: 'envelope:time' }],
  'a time of another zone': [400, '4.00', wrong({ ts: '2026-01-31T12:00:00+02:00' })],
  'an id that is no UUID': [400, '4.00', wrong({ id: '1' })],
  'an id of version 1': [400, '4.00', wrong({ id: 'urn:uuid:6ba7b810-9dad-11d1-80b4-00c04fd430c8' })],
  'an intent that is none': [400, '4.00', wrong({ intent: 'obey' })],
  'an intent that is not served': [501, '5.01', wrong({ intent: 'propose' })],
  'a subscription to nothing': [404, '4.04', wrong({ intent: 'subscribe', stream_id: 'nothing' })],
  'a member that is unknown': [400, '4.00', wrong({ priority: 'high' })],
  'no recipient': [400, '4.00', wrong({ to: [] })],
  '65 recipients': [400, '4.00', wrong({ to: Array.from({ length: 65 }, () => 'did:web:a.example') })],
  'a window of 0': [400, '4.00', wrong({ delta_window: 0 })],
  'a window of -1': [400, '4.00', wrong({ delta_window: -1 })],
  'a stream that a path cannot name': [400, '4.00', wrong({ stream_id: '..' })],
  'a stream of the connection': [400, '4.00', wrong({ stream_id: '/uamp/1/ws' })],
  'a body of an unknown type': [415, '4.15', wrong({ body: { type: 'model/gltf', content: '' } })],
  'a body of an unknown encoding': [415, '4.15', wrong({ body: { type: 'text/plain', content: 'x', encoding: 'rot13' } })],
  'a body that is not base64': [400, '4.00', wrong({ body: { type: 'text/plain', content: '***', encoding: 'base64' } })],
  'a body that is too large': [
    413,
    '4.13',
    wrong({ body: { type: 'text/plain', content: 'x'.repeat(16 * 1024 + 1) } }),
    { verifies: 'envelope:too-large' },
  ],
  'a message that is far too large': [
    413,
    '4.13',
    wrong({ body: { type: 'text/plain', content: 'x'.repeat(200 * 1024) } }),
    { verifies: 'envelope:too-large' },
  ],
  'a capability token of somebody': [415, '4.15', wrong({ cap_token: 'x' }), { verifies: 'envelope:capability' }],
  'a proposal that nobody made': [404, '4.04', wrong({ intent: 'confirm', reply_to: randomUUID() })],
  'a confirm of nothing': [400, '4.00', wrong({ intent: 'confirm' })],
  'a cancel of nothing': [404, '4.04', wrong({ intent: 'cancel', reply_to: randomUUID() })],
  'an acknowledgement of nothing': [
    404,
    '4.04',
    wrong({ intent: 'progress', stream_id: 'x', body: { type: 'application/json', content: '{"ack":1}' } }),
  ],
  'another content type': [
    415,
    '4.15',
    async ({ url, did, client }) =>
      post(url, await signed(client, message(client, did)), { ...AS_CLIENT, 'content-type': 'application/json' }),
    { verifies: 'envelope:media-type' },
  ],
  'another character set': [
    415,
    '4.15',
    async ({ url, did, client }) =>
      post(url, await signed(client, message(client, did)), { ...AS_CLIENT, 'content-type': 'application/uamp+json; charset=latin1' }),
    { verifies: 'envelope:media-type' },
  ],
  'a member that stands twice': [
    400,
    '4.00',
    async ({ url, did, client }) => {
      const ask = JSON.stringify(await signed(client, message(client, did)))
      return post(url, ask.replace('{', '{"intent":"inform",'), AS_CLIENT)
    },
  ],
  'a byte order mark': [
    400,
    '4.00',
    async ({ url, did, client }) => post(url, `\ufeff${JSON.stringify(await signed(client, message(client, did)))}`, AS_CLIENT),
  ],
  'what is not JSON': [400, '4.00', ({ url }) => post(url, '{', AS_CLIENT)],
}

for (const [name, [status, code, send, cited]] of Object.entries(cases)) {
  const run = async (): Promise<void> => {
    const there = await world()
    const before = asked
    const response = await send(there)
    const problem = (await response.json()) as Members
    expect([response.status, problem]).toMatchObject([status, { code, title: expect.any(String), detail: expect.any(String) }])
    expect(response.headers.get('content-type')).toBe('application/problem+json')
    // The server is well, and nothing was done.
    const good = await post(there.url, await signed(there.client, message(there.client, there.did, { intent: 'inform' })), AS_CLIENT)
    expect([good.status, asked]).toEqual([202, before])
  }
  if (cited) verifies(cited.verifies, name, run)
  else verifies('envelope:refusals', name, run)
}

test('plain HTTP is refused, unless it is for development on this machine', async () => {
  const client = await company()
  const server = await serve(agent, { port: 0, data: 'memory', log: () => undefined, envelope: { keys: pinned(client) } })
  onTestFinished(() => server.close({ graceMs: 0 }))
  const response = await post(server.url, '{}')
  expect([response.status, await response.json()]).toMatchObject([403, { code: '4.03', reason: 'tls' }])
  for (const [method, path] of [
    ['GET', '/v1/stream/x'],
    ['POST', '/v1/stream/x/ack'],
    ['GET', `/v1/messages/${randomUUID()}`],
  ] as const) {
    const refused = await fetch(server.url + path, { method, ...(method === 'POST' && { body: '{"ack":0}' }) })
    expect([refused.status, await refused.json()]).toMatchObject([403, { code: '4.03', reason: 'tls' }])
  }
  const anywhere = serve(agent, {
    port: 0,
    host: '0.0.0.0',
    tokens: { a: 'b'.repeat(20) },
    data: 'memory',
    insecureDev: true,
    envelope: {},
  })
  await expect(anywhere).rejects.toThrow('insecureDev is for this one alone')
})
