/** Signed messages between organisations at a server, which is not built: each test is the behaviour that its requirement asks for. */
import { randomUUID } from 'node:crypto'
import { expect } from 'vitest'
import { WebSocket } from 'ws'
import { expectedFailure } from '../support/verifies.ts'
import { decoded, frame, hashOf, Sender, type SendOptions } from './envelopes.ts'

type Members = Readonly<Record<string, unknown>>

/** The code that a message is refused with, or its status if it is accepted. */
async function outcome(more: Members, options?: SendOptions): Promise<string | number> {
  const sender = await Sender.start()
  const { status, body } = await sender.send(await sender.question('hello', more), options)
  return status === 202 ? status : (body.code as string)
}

const bare = randomUUID()
const ancient = new Date(Date.now() - 3_600_000).toISOString()

expectedFailure('envelope:refusals', 'messages and signatures that are ruled out', async () => {
  const [sender, other] = [await Sender.start(), await Sender.start()]
  const rows: readonly (readonly [expected: string | number, more: Members, options?: SendOptions])[] = [
    [202, { id: bare }],
    ['4.00', { id: '2c5ea4c0-4067-11e9-8bad-9b1deb4d3b7d' }],
    [202, { reply_to: bare }],
    ['4.00', { reply_to: 'yesterday' }],
    ['4.00', { ts: '2026-11-17T10:00:00+01:00' }],
    ['4.00', { from: 'somebody' }],
    ['4.00', { to: [] }],
    ['4.00', { intent: 'gossip' }],
    ['4.00', { mood: 'good' }],
    ['4.00', { body: undefined }],
    ['4.00', { delta_window: 0 }],
    ['4.00', {}, { tamper: (text) => text.replace('{', '{"intent":"inform",') }],
    ['4.01', {}, { tamper: (text) => text.replace('hello', 'adieu') }],
    ['4.01', {}, { tamper: (text) => text.replace(/"sig":"[^"]*"/, '"sig":"e30..AA"') }],
    [202, {}, { alg: 'ES256' }],
    [202, {}, { alg: 'EdDSA' }],
    ['4.01', {}, { alg: 'RS256' }],
    ['4.01', {}, { alg: 'none' }],
    ['4.01', {}, { header: { jku: 'https://evil.example/keys' } }],
    ['4.01', { from: other.did }],
  ]
  for (const [expected, more, options] of rows) {
    const { status, body } = await sender.send(await sender.question('hello', more), options)
    expect([more, status === 202 ? status : body.code]).toEqual([more, expected])
  }
})
expectedFailure('envelope:answer-signature', 'the answer is signed over its hash', async () => {
  const sender = await Sender.start()
  const question = await sender.question('hello')
  await sender.send(question)
  const { sig, ...answer } = (await (await fetch(`${sender.url}/v1/messages/${String(question['id'])}`)).json()) as Members
  expect([String(sig).split('.')[1], hashOf(answer)]).toEqual(['', expect.stringMatching(/^[0-9a-f]{64}$/)])
})
expectedFailure('envelope:body-read', 'a body in base64', async () => {
  const body = { type: 'text/plain', content: Buffer.from('hello').toString('base64'), encoding: 'base64' }
  const { deltas } = await (await Sender.start()).ask('', { body })
  expect(deltas.map(({ payload }) => payload?.text ?? '').join('')).toContain('hello')
})
expectedFailure('envelope:time', 'an old message', async () => {
  expect([await outcome({}), await outcome({ ts: ancient })]).toEqual([202, '4.01'])
})
expectedFailure('envelope:to', 'a message for others', async () => {
  expect([await outcome({}), await outcome({ to: ['did:web:other.example'] })]).toEqual([202, '4.03'])
})
expectedFailure('envelope:ask', 'a question and its answer', async () => {
  const { sent, deltas } = await (await Sender.start()).ask('hello')
  expect([sent.status, deltas.at(-1)?.type]).toEqual([202, 'done'])
})
expectedFailure('envelope:inform', 'news', async () => {
  const sender = await Sender.start()
  const { status, headers } = await sender.send(await sender.question('news', { intent: 'inform' }))
  expect([status, headers.get('location')]).toEqual([202, null])
})
expectedFailure('envelope:cancel', 'a question that is withdrawn', async () => {
  const sender = await Sender.start()
  const question = await sender.question('/count 100000 10')
  const sent = await sender.send(question)
  await sender.send(await sender.question('', { intent: 'cancel', reply_to: question['id'] }))
  expect((await sender.read(sent)).at(-1)?.type).toBe('cancel')
})
expectedFailure('envelope:subscribe', 'a subscription', async () => {
  const sender = await Sender.start()
  const { status, headers } = await sender.send(await sender.question('', { intent: 'subscribe' }))
  expect([status, headers.get('location')]).toEqual([202, expect.stringMatching(/^\/v1\/stream\//)])
})
expectedFailure('envelope:ext', 'what the sender likes', async () => {
  const { deltas } = await (await Sender.start()).ask('/history', { ext: { 'x-trace': 'b3:1' } })
  expect(deltas.at(-1)?.type).toBe('done')
})
expectedFailure('envelope:did-document', 'the keys of the server', async () => {
  const { url } = await Sender.start()
  expect(await (await fetch(`${url}/.well-known/did.json`)).json()).toMatchObject({
    id: expect.stringMatching(/^did:web:/),
    assertionMethod: [expect.any(String)],
  })
})
expectedFailure('envelope:manifest', 'the manifest', async () => {
  const { url } = await Sender.start()
  const response = await fetch(`${url}/.well-known/agent-manifest.json`)
  const payload = decoded((await response.text()).split('.')[1] ?? '')
  expect(response.headers.get('content-type')).toContain('application/manifest+jws')
  expect(Object.keys(payload as object).sort()).toEqual(['agent', 'auth', 'body_types', 'description', 'intents', 'limits'])
})
expectedFailure('envelope:hub', 'the hub', async () => {
  const { url } = await Sender.start()
  const payload = decoded((await (await fetch(`${url}/.well-known/agent-hub.json`)).text()).split('.')[1] ?? '')
  expect(payload).toMatchObject({ manifests: [expect.any(Object)], trust_anchors: expect.any(Object) })
})
expectedFailure('envelope:stream-id', 'a stream with a name of its own', async () => {
  const { sent, deltas } = await (await Sender.start()).ask('hello', { stream_id: 'str-mine' })
  expect([sent.headers.get('location'), deltas[0]?.stream_id]).toEqual(['/v1/stream/str-mine', 'str-mine'])
})
expectedFailure('envelope:stream-owner', "somebody else's stream", async () => {
  const sender = await Sender.start()
  const { headers } = await sender.send(await sender.question('hello', { stream_id: 'str-mine' }))
  const response = await fetch(sender.url + (headers.get('location') ?? ''), { headers: { authorization: 'Bearer stranger' } })
  expect((await response.json()) as object).toMatchObject({ code: '4.04' })
})
expectedFailure('envelope:delta-order', 'the numbers of a stream', async () => {
  const { deltas } = await (await Sender.start()).ask('/count 5')
  expect(deltas.map(({ delta_seq }) => delta_seq)).toEqual(deltas.map((_, index) => index))
  expect(deltas.filter(({ type }) => ['done', 'cancel', 'error'].includes(type))).toHaveLength(1)
})
expectedFailure('envelope:sse', 'the events of a stream', async () => {
  const { deltas } = await (await Sender.start()).ask('/count 5')
  expect(deltas.map(({ id }) => id)).toEqual(deltas.map(({ delta_seq }) => String(delta_seq)))
})
expectedFailure('envelope:resume', 'a reader that comes back', async () => {
  const sender = await Sender.start()
  const { sent } = await sender.ask('/count 5')
  const [next] = await sender.read(sent, { 'last-event-id': '1' })
  expect(next?.delta_seq).toBe(2)
})
expectedFailure('envelope:window', 'a reader that acknowledges nothing', async () => {
  const { deltas } = await (await Sender.start()).ask('/count 100', { delta_window: 4 })
  expect(deltas.filter(({ type }) => type === 'chunk')).toHaveLength(4)
})
expectedFailure('envelope:acknowledge', 'a reader that acknowledges', async () => {
  const sender = await Sender.start()
  const sent = await sender.send(await sender.question('/count 8', { delta_window: 4, stream_id: 'str-ack' }))
  const body = { type: 'application/json', content: '{"ack":3}' }
  const progress = await sender.question('', { intent: 'progress', stream_id: 'str-ack', body })
  const [deltas] = await Promise.all([sender.read(sent), sender.send(progress)])
  expect(deltas.at(-1)?.type).toBe('done')
})
expectedFailure('envelope:websocket', 'a frame and its answer', async () => {
  const [answer] = await overSocket((message) => frame(message))
  expect(answer?.readUInt32BE()).toBe((answer?.length ?? 0) - 4)
})
expectedFailure('envelope:websocket-length', 'a frame whose length is wrong', async () => {
  const [answer] = await overSocket((message) => frame(message, 5))
  expect(JSON.parse(answer?.subarray(4).toString() ?? '')).toMatchObject({ type: 'error', payload: { code: '4.00' } })
})
expectedFailure('envelope:grpc', 'a call of gRPC', async () => {
  const { url } = await Sender.start()
  const headers = { 'content-type': 'application/grpc-web+json' }
  expect((await fetch(`${url}/uamp.v1.Agent/Send`, { method: 'POST', headers, body: '{}' })).status).toBe(200)
})
expectedFailure('envelope:http3', 'another way is offered', async () => {
  const { url } = await Sender.start()
  expect((await fetch(`${url}/.well-known/agent-manifest.json`)).headers.get('alt-svc')).toContain('h3=')
})
expectedFailure('envelope:tls', 'a public address without TLS', async () => {
  const { url } = await Sender.start()
  const response = await fetch(`${url}/v1/messages`, { method: 'POST', headers: { host: 'agents.example' }, body: '{}' })
  expect((await response.json()) as object).toMatchObject({ code: '4.01' })
})
expectedFailure('envelope:authentication', 'a caller that shows nothing', async () => {
  expect(await outcome({ cap_token: undefined }, { headers: { authorization: '' }, alg: 'none' })).toBe('4.01')
})
expectedFailure('envelope:sender-is-caller', 'somebody who calls as one and signs as another', async () => {
  expect(await outcome({}, { headers: { authorization: 'Bearer token-of-another' } })).toBe('4.03')
})
expectedFailure('envelope:capability', 'a capability for somebody else', async () => {
  expect(await outcome({ cap_token: 'eyJhbGciOiJub25lIn0.e30.' })).toBe('4.03')
})
expectedFailure('envelope:missing-seq', 'a delta without its number', async () => {
  const [answer] = await overSocket(() => frame({ stream_id: 'str-1', ts: new Date().toISOString(), type: 'progress' }))
  expect(JSON.parse(answer?.subarray(4).toString() ?? '')).toMatchObject({ payload: { code: '4.09' } })
})
expectedFailure('envelope:too-large', 'a message that is too large', async () => {
  expect(await outcome({ body: { type: 'text/plain', content: 'x'.repeat(32 * 1024 * 1024) } })).toBe('4.13')
})
expectedFailure('envelope:busy', 'more questions than there is room for', async () => {
  const sender = await Sender.start()
  const all = await Promise.all(Array.from({ length: 200 }, async () => sender.send(await sender.question('/count 1000 100'))))
  const refused = all.find(({ status }) => status === 503)
  expect([refused?.body.code, refused?.headers.has('retry-after')]).toEqual(['5.04', true])
})
expectedFailure('envelope:retries', 'a message that comes twice', async () => {
  const sender = await Sender.start()
  const question = await sender.question('hello')
  const [first, second] = [await sender.send(question), await sender.send(question)]
  const other = await sender.send({ ...question, body: { type: 'text/plain', content: 'something else' } })
  expect([first.status, second.headers.get('location'), other.body.code]).toEqual([202, first.headers.get('location'), '4.22'])
})
expectedFailure('envelope:context', 'a context that was changed', async () => {
  const sender = await Sender.start()
  const question = await sender.question('hello')
  await sender.send(question)
  const context = [{ id: question['id'], hash: `sha256:${'0'.repeat(64)}` }]
  expect((await sender.send(await sender.question('more', { context }))).body.code).toBe('4.00')
})
expectedFailure('envelope:stream-hash', 'the hash of a stream', async () => {
  const { deltas } = await (await Sender.start()).ask('/count 5')
  expect(deltas.at(-1)?.payload).toMatchObject({ stream_sha256: expect.stringMatching(/^[0-9a-f]{64}$/) })
})
expectedFailure('envelope:media-type', 'a message as plain JSON', async () => {
  const sender = await Sender.start()
  const { status } = await sender.send(await sender.question('hello'), { headers: { 'content-type': 'application/json' } })
  expect(status).toBe(415)
})

/** What comes back for one frame. */
async function overSocket(toFrame: (message: Members) => Buffer): Promise<Buffer[]> {
  const sender = await Sender.start()
  const message = await sender.question('hello')
  const socket = new WebSocket(`${sender.url.replace('http', 'ws')}/uamp/1/ws`, 'uamp.1')
  await new Promise<void>((resolve, reject) => socket.once('open', resolve).once('error', reject))
  socket.send(toFrame(message))
  const answer = await new Promise<Buffer>((resolve) => socket.once('message', (data: Buffer) => resolve(data)))
  socket.close()
  return [answer]
}
