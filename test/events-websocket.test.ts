import { expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { demo } from '../src/agents/demo/index.ts'
import { connect } from '../src/client/node.ts'
import { defineAgent } from '../src/core/agent-kit/define-agent.ts'
import { text } from '../src/core/agent-kit/drafts.ts'
import { remoteEvents } from '../src/remotes/events/index.ts'
import { coin } from './support/money.ts'
import { mirror } from './support/agents.ts'
import { startServer } from './support/server.ts'
import { isEnd, mirrored, say, textOf } from './support/talk.ts'
import { events } from '../src/transports/events/index.ts'
import type { Access, Principal } from '../src/core/ports/access.ts'
import { testServer } from './support/test-server.ts'
import { verifies } from './support/verifies.ts'
import { overWebSocket, type Heard } from './support/wire.ts'

verifies(
  ['uamp:session:multiplex', 'uamp:session:multiplex-routing', 'uamp:session:multiplex-concurrent', 'uamp:transport:websocket-multiplex'],
  'sessions share a socket, each with its own conversation, and answer at the same time',
  async () => {
    const { url } = await startServer([demo(), mirror])
    const wire = await overWebSocket(url)
    const ids = [await wire.open({ agent: 'demo' }), await wire.open({ agent: 'demo' }), await wire.open({ agent: 'mirror' })]
    expect(new Set(ids).size).toBe(3)
    for (const session_id of ids.slice(0, 2)) {
      await wire.send({ type: 'input.text', text: '/count 20 10', session_id })
      await wire.send({ type: 'response.create', session_id })
    }
    await expect.poll(() => wire.heard.filter(isEnd).length).toBe(2)
    const order = wire.heard.filter(({ type }) => type === 'response.delta').map((event) => event['session_id'])
    expect(order.indexOf(ids[1])).toBeLessThan(order.lastIndexOf(ids[0]))
    const third = mirrored(await say(wire, 'only mine', { session: ids[2] as string }))
    expect(third.messages.map(({ content }) => content)).toEqual(['only mine'])
  },
)

verifies('uamp:session:multiplex-required', 'with several sessions an event must say which', async () => {
  const { url } = await startServer(demo())
  const wire = await overWebSocket(url)
  await wire.open()
  await wire.open()
  expect(await wire.send({ type: 'input.text', text: 'whose?' })).toMatchObject({ code: 'invalid_request' })
})

verifies('uamp:session:multiplex-end', 'ending one session leaves the others', async () => {
  const { url } = await startServer(demo())
  const wire = await overWebSocket(url)
  const [a, b] = [await wire.open(), await wire.open()]
  await wire.send({ type: 'session.end', session_id: a })
  await wire.next('session.end')
  expect(textOf(await say(wire, 'still here', { session: b }))).toBe('You said: still here')
})

verifies('uamp:session:multiplex-tokens', 'each session may have its own token', async () => {
  const of = (id: string, scope: string) => ({ tenant: 't', id, scopes: [scope] })
  const tokens: Record<string, Principal> = { short: of('alice', 'short'), long: of('alice', 'long'), other: of('bob', 'short') }
  const access: Access = { authenticate: async ({ token = '' }) => tokens[token], authorize: () => true }
  const { url } = await testServer({ agents: [mirror], transports: [events()], access })
  const wire = await overWebSocket(url)
  const [first, second] = [await wire.open({ token: 'short' }), await wire.open({ token: 'long' })]
  const third = await wire.open({ session: { modalities: ['text'], token: 'other' } })
  expect(mirrored(await say(wire, 'hi', { session: first })).principal).toEqual(tokens['short'])
  expect(mirrored(await say(wire, 'hi', { session: second })).principal).toEqual(tokens['long'])
  expect(mirrored(await say(wire, 'hi', { session: third })).principal).toEqual(tokens['other'])
})

verifies('uamp:session:update-scope', 'an update with a session id changes that session alone, and names it', async () => {
  const { url } = await startServer(mirror)
  const wire = await overWebSocket(url)
  const [one, two] = [await wire.open(), await wire.open()]
  await wire.send({ type: 'session.update', session_id: one, session: { instructions: 'One.' } })
  expect(await wire.next('session.updated')).toMatchObject({ session_id: one })
  expect(mirrored(await say(wire, 'hi', { session: one })).config.instructions).toBe('One.')
  expect(mirrored(await say(wire, 'hi', { session: two })).config).not.toHaveProperty('instructions')
})

verifies('uamp:session:update-connection', 'a token without a session id is for the connection and what it opens', async () => {
  const { url } = await startServer(mirror, { tokens: { alice: 'a-secret-0123456789abcdef' } })
  const wire = await overWebSocket(url)
  wire.send({ type: 'session.update', token: 'a-secret-0123456789abcdef' }).catch(() => undefined)
  expect(await wire.next('session.updated')).not.toHaveProperty('session_id')
  await wire.open()
  expect(mirrored(await say(wire, 'hi')).principal.id).toBe('alice')
})

test('with several sessions a change of the configuration has to name one; tokens are for all of them', async () => {
  const payer = defineAgent('payer', async function* (turn) {
    const { payment } = await turn.ask('payment.required', { requirements: { amount: '1', currency: 'USD' } })
    yield text(`${payment.token?.slice(-8)} ${turn.config.instructions}`)
  })
  const server = await startServer(payer)
  const ofAll = await coin(server, '5')
  const wire = await overWebSocket(server.url)
  expect(await wire.send({ type: 'session.update', session: { instructions: 'Nobody.' } })).toMatchObject({
    code: 'invalid_request',
    message: expect.stringContaining('session.create'),
  })
  const [one, two] = [await wire.open(), await wire.open()]
  expect(await wire.send({ type: 'session.update', session: { instructions: 'Whose?' } })).toMatchObject({
    code: 'invalid_request',
    message: expect.stringContaining('session_id'),
  })
  void wire.send({ type: 'session.update', payment_token: ofAll })
  await wire.next((event) => event.type === 'session.updated' && event['session_id'] === undefined)
  const three = await wire.open()
  for (const session of [one, two, three]) expect(textOf(await say(wire, 'pay', { session }))).toBe(`${ofAll.slice(-8)} undefined`)
})

verifies('uamp:session:create-first', 'before session.create there is nothing to talk to', async () => {
  const { url } = await startServer(demo())
  const wire = await overWebSocket(url)
  expect(await wire.send({ type: 'response.create' })).toMatchObject({
    code: 'invalid_request',
    message: expect.stringContaining('session.create'),
  })
  expect(wire.heard.some(({ type }) => type === 'response.created')).toBe(false)
})

verifies(
  ['uamp:transport:websocket', 'uamp:transport:one-event-a-message', 'uamp:transport:ping'],
  'events are JSON messages at /ws, and a ping is always answered',
  async () => {
    const { url } = await startServer(demo())
    const socket = new WebSocket(`${url.replace('http', 'ws')}/ws`)
    const messages: string[] = []
    await new Promise((resolve) => socket.once('open', resolve))
    const twice = JSON.stringify({ type: 'ping', event_id: 'p1' })
    socket.on('message', (data: Buffer) => messages.push(data.toString()))
    socket.send(twice)
    socket.send(twice)
    socket.send(JSON.stringify({ type: 'session.create', uamp_version: '1.0' }))
    await expect.poll(() => messages.length).toBe(5)
    const types = messages.map((message) => (JSON.parse(message) as Heard).type)
    expect(types).toEqual(['pong', 'pong', 'session.created', 'capabilities', 'rate_limit'])
    socket.close()
  },
)

verifies(['uamp:session:rate-limited', 'uamp:response:rate-limit'], 'one connection carries so many sessions and no more', async () => {
  const { url } = await startServer(demo())
  const wire = await overWebSocket(url)
  const opening = await Promise.allSettled(Array.from({ length: 1000 }, () => wire.open()))
  const opened = opening.filter(({ status }) => status === 'fulfilled').length
  expect(opened).toBe(256)
  const refusal = wire.heard.find(({ type }) => type === 'session.error')
  expect(refusal?.['error']).toMatchObject({ code: 'rate_limited', details: { limit: 256, retry_after: 1 } })
  const told = wire.heard.find(({ type, remaining }) => type === 'rate_limit' && remaining === 0)
  expect(told).toMatchObject({ limit: 256, remaining: 0, reset_at: expect.any(Number) })
  const session = wire.heard.find(({ type }) => type === 'session.created')?.['session_id'] as string
  expect(textOf(await say(wire, 'alive', { session }))).toBe('You said: alive')
})

verifies('uamp:response:rate-limit-early', 'a socket tells what is left with each response, once', async () => {
  const { url } = await startServer(demo(), { limits: { messageBurst: 100, messagesPerSecond: 0.001 } })
  const wire = await overWebSocket(url)
  await wire.open()
  for (const prompt of ['/count 200', 'hello']) await say(wire, prompt)
  // session.create, then twice input.text and response.create.
  await expect.poll(() => wire.heard.filter(({ type }) => type === 'rate_limit').map(({ remaining }) => remaining)).toEqual([99, 97, 95])
})

verifies('uamp:session:flood', 'a flood on a socket is told once a second, and all of it is taken in order', async () => {
  const { url } = await startServer(mirror, { limits: { messageBurst: 20, messagesPerSecond: 100 } })
  const wire = await overWebSocket(url)
  await wire.open()
  const texts = Array.from({ length: 60 }, (_, n) => `${n}`)
  expect(await Promise.all(texts.map((each) => wire.send({ type: 'input.text', text: each })))).toEqual(texts.map(() => undefined))
  const told = wire.heard.filter(({ type }) => type === 'session.error')
  expect(told.length).toBeGreaterThan(0)
  expect(told.length).toBeLessThan(3)
  expect(told[0]?.['error']).toMatchObject({ code: 'rate_limited', details: { limit: 20, retry_after: 1, slowed: true } })
  await wire.send({ type: 'response.create' })
  const events = [await wire.next('response.delta')]
  expect(mirrored(events).messages.at(-1)?.content).toBe(texts.join(''))
})

test('our client, and an agent behind it, go on when they are told to slow down', async () => {
  const limits = { messageBurst: 5, messagesPerSecond: 200 }
  const { url: far } = await startServer(demo(), { limits })
  const { url } = await startServer(remoteEvents({ name: 'far', url: far, agent: 'demo' }), { limits })
  const client = connect(url, { transport: 'websocket' })
  const words = Array.from({ length: 20 }, (_, n) => `${n}`)
  const said = await Promise.all(words.map(async (each) => (await client.session()).say(each)))
  expect(said).toEqual(words.map((each) => `You said: ${each}`))
  client.close()
})

test('an event of unknown type is acknowledged, so that nobody waits for it or sends it again', async () => {
  const { url } = await startServer(demo())
  const client = connect(url, { transport: 'websocket' })
  const session = await client.session()
  await session.send({ type: 'future.thing' } as never)
  client.close()
})

test('a client that did not ask for acknowledgements or extensions gets none', async () => {
  const { url } = await startServer(demo())
  const wire = await overWebSocket(url)
  const plain = { id: 'plain', provider: 'test', modalities: ['text'], supports_streaming: true }
  const session_id = await wire.open({ client_capabilities: plain })
  void wire.send({ type: 'input.text', text: '/state', session_id })
  void wire.send({ type: 'response.create', session_id })
  await wire.next(isEnd)
  expect(wire.heard.filter(({ type }) => type.startsWith('x.'))).toEqual([])
})

test('a token comes with the upgrade, as a subprotocol, or with the first message', async () => {
  const { url } = await startServer(demo(), { tokens: { alice: 'a-secret-0123456789abcdef' } })
  const ws = `${url.replace('http', 'ws')}/uamp`
  const opened = (socket: WebSocket) =>
    new Promise<string>((resolve) => socket.once('open', () => resolve(socket.protocol)).once('error', (error) => resolve(error.message)))
  const encoded = Buffer.from('a-secret-0123456789abcdef').toString('base64url')
  expect(await opened(new WebSocket(ws, ['uamp', `uamp.token.${encoded}`]))).toBe('uamp')
  expect(await opened(new WebSocket(ws, { headers: { authorization: 'Bearer wrong' } }))).toContain('401')
  const wire = await overWebSocket(url)
  await expect(wire.open()).rejects.toThrow('Credentials')
  expect(await wire.open({ token: 'a-secret-0123456789abcdef' })).toMatch(/^sess_/)
})

const SECRETS = { portal: 'portal-secret-0123456789', alice: 'alice-secret-0123456789ab' }

verifies('uamp:session:platform', 'a platform sends each interaction under a session id of its own, and gets it answered', async () => {
  const { url, gateway } = await startServer(mirror, { tokens: SECRETS, grants: { portal: ['platform'] } })
  const wire = await overWebSocket(url, { token: SECRETS.portal })
  const messages = [
    { role: 'user', content: 'Before' },
    { role: 'assistant', content: 'Yes' },
    { role: 'user', content: 'Now' },
  ]
  const ids = Array.from({ length: 300 }, () => crypto.randomUUID())
  for (const session_id of ids) {
    void wire.send({ type: 'input.text', text: 'Now', session_id, messages, context: { chat_id: session_id } })
    void wire.send({ type: 'response.create', session_id })
    if (session_id === ids[0]) continue
    await wire.next((event) => event.type === 'response.done' && event['session_id'] === session_id)
  }
  const of = (id: string | undefined) => wire.heard.filter((event) => event['session_id'] === id)
  for (const id of [ids[0], ids[299]]) {
    expect(of(id).map(({ type }) => type)).toEqual(['response.created', 'response.delta', 'response.done'])
    expect(mirrored(of(id)).messages).toEqual([...messages.slice(0, 2), { ...messages[2], context: { chat_id: id } }])
  }
  expect(wire.heard.filter(({ type }) => type.endsWith('.error') || type === 'session.created')).toEqual([])
  await expect.poll(() => gateway.openSessions).toBe(0)
})

const INTERACTION = { type: 'input.text', text: 'hi', messages: [{ role: 'user', content: 'hi' }] }

test('a second input under the id of an interaction that is being answered is refused, and not lost', async () => {
  const { url } = await startServer(demo(), { tokens: SECRETS, grants: { portal: ['platform'] } })
  const wire = await overWebSocket(url, { token: SECRETS.portal })
  const session_id = crypto.randomUUID()
  const text = '/count 1000000 5'
  void wire.send({ type: 'input.text', session_id, text, messages: [{ role: 'user', content: text }] })
  await wire.next('response.delta')
  expect(await wire.send({ ...INTERACTION, session_id })).toMatchObject({ code: 'response_in_progress' })
  void wire.send({ type: 'response.cancel', session_id })
  await wire.next('response.cancelled')
  void wire.send({ ...INTERACTION, session_id })
  expect((await wire.next('response.done'))['response'].output).toMatchObject([{ text: 'You said: hi' }])
})

test('the payment token of a connection pays for interactions, also one that came while another was answered', async () => {
  const shop = defineAgent('shop', async function* (turn) {
    if (turn.messages[0]?.content === 'wait') await new Promise((resolve) => turn.signal.addEventListener('abort', resolve))
    const requirements = { amount: '1.00', currency: 'USD', schemes: [{ scheme: 'token' }] }
    const { payment } = await turn.ask('payment.required', { requirements })
    yield text(`paid with ${payment.token?.slice(-8)}`)
  })
  const server = await startServer(shop, { tokens: SECRETS, grants: { portal: ['platform'] } })
  const { url } = server
  const wire = await overWebSocket(url, { token: SECRETS.portal })
  for (const [token, before] of [
    [await coin(server, '1'), undefined],
    [await coin(server, '1'), { ...INTERACTION, session_id: 'waits', messages: [{ role: 'user', content: 'wait' }] }],
  ] as const) {
    if (before) void wire.send(before)
    void wire.send({ type: 'session.update', payment_token: token })
    await wire.next('session.updated')
    void wire.send({ ...INTERACTION, session_id: crypto.randomUUID() })
    const told = await wire.next(({ type }) => type === 'response.done' || type === 'payment.required')
    expect(told).toMatchObject({ type: 'response.done', response: { output: [{ text: `paid with ${token.slice(-8)}` }] } })
  }
})

test('an Access that says yes to everything makes nobody a platform: the scope has to be there', async () => {
  const event = { type: 'input.text', text: 'hi', session_id: 'never-seen', messages: [{ role: 'user', content: 'hi' }] }
  const refusals = []
  for (const scopes of [['*'], ['*', 'platform']]) {
    const access = { authenticate: async () => ({ tenant: 't', id: 'p', scopes }), authorize: () => true }
    const { url } = await testServer({ agents: [mirror], transports: [events()], access })
    const wire = await overWebSocket(url)
    void wire.send(event)
    refusals.push((await wire.next(({ type }) => type === 'response.done' || type.endsWith('.error')))['error']?.code)
  }
  expect(refusals).toEqual(['not_found', undefined])
})

test('who is no platform gets no session for an unknown id', async () => {
  const { url } = await startServer(mirror, { tokens: SECRETS, grants: { portal: ['platform'] } })
  const event = { type: 'input.text', text: 'hi', session_id: 'never-seen', messages: [{ role: 'user', content: 'hi' }] }
  const alice = await overWebSocket(url, { token: SECRETS.alice })
  expect(await alice.send(event)).toMatchObject({ code: 'not_found' })
  const open = await startServer(mirror)
  expect(await (await overWebSocket(open.url)).send(event)).toMatchObject({ code: 'not_found' })
  const portal = await overWebSocket(url, { token: SECRETS.portal })
  expect(await portal.send({ ...event, messages: undefined })).toMatchObject({ code: 'not_found' })
  await expect(startServer(mirror, { tokens: SECRETS, grants: { nobody: ['platform'] } })).rejects.toThrow('nobody')
})
