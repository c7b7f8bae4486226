import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import { demo } from '../../src/agents/demo/index.ts'
import { connect } from '../../src/client/node.ts'
import { remoteEvents } from '../../src/remotes/events/index.ts'
import { endless, mirror } from '../support/agents.ts'
import { startServer } from '../support/server.ts'
import { mirrored, say, textOf } from '../support/talk.ts'
import { verifies } from '../support/verifies.ts'
import { overWebSocket, type Heard } from '../support/wire.ts'

/** What a peer that is not ours says to a response.create: new kinds of everything, among what is known. */
const ANSWER: object[] = [
  { type: 'ping' },
  { type: 'hologram.started' },
  { type: 'response.created', response_id: 'r' },
  { type: 'progress', target: 'dreaming', percent: 400 },
  { type: 'response.delta', response_id: 'r', delta: { type: 'hologram', hologram: 'x' } },
  { type: 'response.delta', response_id: 'r', delta: { type: 'text', text: 'Hi' } },
  { type: 'message.created', message: 'no object' },
  {
    type: 'response.done',
    response_id: 'r',
    response: { id: 'r', status: 'delighted', output: [{ type: 'hologram' }, { type: 'text', text: 'Hi there' }] },
  },
]

/** A server of UAMP events as the specification has it, and nothing more: one event a POST, and the stream apart. */
async function plainHttpPeer(answer = ANSWER) {
  const heard: Heard[] = []
  let stream: ServerResponse | undefined
  const tell = (event: object): void => void stream?.write(`data: ${JSON.stringify({ event_id: 'e', session_id: 's1', ...event })}\n\n`)
  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    if (request.method === 'GET') {
      if (request.headers['x-session-id'] !== 's1') return void response.writeHead(404).end()
      stream = response.writeHead(200, { 'content-type': 'text/event-stream' })
      return tell({ type: 'session.created', uamp_version: '1.1', session: { id: 's1', created_at: 0, config: {}, status: 'warm' } })
    }
    let body = ''
    for await (const chunk of request.setEncoding('utf8')) body += chunk as string
    const event = JSON.parse(body) as Heard
    if (Array.isArray(event) || typeof event['event_id'] !== 'string') return void response.writeHead(400).end('one event')
    heard.push(event)
    response.writeHead(202, { 'x-session-id': 's1' }).end()
    if (event.type === 'response.create') for (const each of answer) tell(each)
  }
  const server = createServer((request, response) => void handle(request, response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, heard }
}

async function plainSocketPeer(answer = ANSWER) {
  const heard: Heard[] = []
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1', path: '/ws' })
  const sockets: WebSocket[] = []
  server.on('connection', (socket) => {
    sockets.push(socket)
    const tell = (event: object): void => socket.send(JSON.stringify({ event_id: 'e', ...event }))
    socket.on('message', (data: Buffer) => {
      const event = JSON.parse(data.toString()) as Heard
      heard.push(event)
      if (event.type === 'session.create') {
        tell({
          type: 'session.created',
          uamp_version: '1.0',
          session: { id: 's1', created_at: 0, config: { modalities: [] }, status: 'active' },
        })
      }
      if (event.type === 'response.create') for (const each of answer) tell(each)
    })
  })
  await new Promise((resolve) => server.once('listening', resolve))
  onTestFinished(() => {
    for (const socket of sockets) socket.terminate()
    server.close()
  })
  return { url: `ws://127.0.0.1:${(server.address() as AddressInfo).port}`, heard, sockets }
}

for (const [binding, peer] of Object.entries({ 'HTTP + SSE': plainHttpPeer, WebSocket: plainSocketPeer })) {
  verifies(
    ['remote-events.any-server', 'remote-events.new-values', 'uamp:transport:ping-back', 'uamp:version:new-values'],
    `a server that knows only the specification, and says new things, is understood over ${binding}`,
    async () => {
      const there = await peer()
      const { url } = await startServer(remoteEvents({ name: 'far', url: there.url, token: 'a-token' }))
      const wire = await overWebSocket(url)
      await wire.open()
      await wire.send({ type: 'input.text', text: 'Hello ', context: { chat_id: 'c' } })
      const events = await say(wire, 'you', { create: { metadata: { n: 1 } } })
      expect(textOf(events)).toBe('Hi there')
      expect(events.at(-1)).toMatchObject({ type: 'response.done', response: { status: 'completed' } })
      await expect.poll(() => there.heard.map(({ type }) => type)).toEqual(expect.arrayContaining(['pong', 'session.end']))
      const sent = (type: string) => there.heard.find((event) => event.type === type)
      expect(sent('input.text')).toMatchObject({
        text: 'Hello you',
        session_id: 's1',
        context: { chat_id: 'c' },
        messages: [{ role: 'user', content: 'Hello you' }],
      })
      expect(sent('response.create')).toMatchObject({ metadata: { n: 1 }, event_id: expect.any(String) })
      expect(textOf(await say(wire, 'again'))).toBe('Hi there')
    },
  )

  test(`an end that lacks its body is an end over ${binding}`, async () => {
    const there = await peer([
      { type: 'response.delta', response_id: 'r', delta: { type: 'text', text: 'short' } },
      { type: 'response.done', response_id: 'r' },
    ])
    const { url } = await startServer(remoteEvents({ name: 'far', url: there.url }))
    const wire = await overWebSocket(url)
    await wire.open()
    const events = await say(wire, 'hi')
    expect(events.at(-1)).toMatchObject({ type: 'response.done', response: { status: 'completed', output: [{ text: 'short' }] } })
  })

  test(`a refusal without an id of a response ends it over ${binding}`, async () => {
    const there = await peer([{ type: 'response.error', error: { code: 'too_hot' } }])
    const { url } = await startServer(remoteEvents({ name: 'far', url: there.url }))
    const wire = await overWebSocket(url)
    await wire.open()
    expect((await say(wire, 'hi')).at(-1)).toMatchObject({ type: 'response.error', error: { code: 'too_hot' } })
  })
}

test('over WebSocket one of our own servers answers as over HTTP, asks its questions, and is stopped', async () => {
  const { agent, stopped } = endless()
  const there = await startServer([demo(), mirror, agent], { tokens: { me: 'a-secret-0123456789abcdef' } })
  const at = (name: string) => ({ name, url: `${there.url.replace('http', 'ws')}/agents/${name}/uamp`, token: 'a-secret-0123456789abcdef' })
  const here = await startServer([remoteEvents(at('demo')), remoteEvents(at('mirror')), remoteEvents(at('endless'))])
  const wire = await overWebSocket(here.url)
  const [plain, mirrors, long] = [
    await wire.open({ agent: 'demo' }),
    await wire.open({ agent: 'mirror' }),
    await wire.open({ agent: 'endless' }),
  ]
  expect(textOf(await say(wire, '/count 3000', { session: plain }))).toContain('2999 3000')
  await wire.send({ type: 'input.text', text: '/approve it', session_id: plain })
  await wire.send({ type: 'response.create', session_id: plain })
  const { approval_id } = await wire.next('x.approval.request')
  await wire.send({ type: 'x.approval.response', approval_id, approved: true, session_id: plain })
  await wire.next((event) => event.type === 'response.done' && event['response'].output[0]?.text === 'Approved: it')
  // More than a stranger may send in one message.
  await wire.send({ type: 'session.update', session_id: mirrors, session: { instructions: 'x'.repeat(20_000) } })
  expect(mirrored(await say(wire, 'hi', { session: mirrors })).config.instructions).toHaveLength(20_000)
  await wire.send({ type: 'input.text', text: 'go', session_id: long })
  await wire.send({ type: 'response.create', session_id: long })
  await wire.next((event) => event.type === 'response.delta' && event['session_id'] === long)
  await wire.send({ type: 'response.cancel', session_id: long })
  await stopped
  await expect.poll(() => there.gateway.openSessions).toBe(0)
})

for (const scheme of ['http', 'ws']) {
  test(`what one client does not support is kept for the others, of an answer that came over ${scheme}`, async () => {
    const there = await startServer(demo())
    const here = await startServer(remoteEvents({ name: 'far', url: there.url.replace('http', scheme) }))
    const flags = { supports_streaming: false, supports_thinking: false, tools: { supports_tools: false } }
    const plain = await overWebSocket(here.url)
    const session = await plain.open({ client_capabilities: { id: 'plain', provider: 'test', modalities: ['text'], ...flags } })
    for (const said of ['/image', '/think hard', '/tool clock']) {
      void plain.send({ type: 'input.text', text: said })
      void plain.send({ type: 'response.create' })
      const { response } = await plain.next('response.done')
      expect(new Set(response.output.map(({ type }: Heard) => type))).toEqual(new Set(['text']))
    }
    const full = await overWebSocket(here.url)
    await full.follow(session, 0)
    for (const kinds of [
      ['image', 'text'],
      ['thinking', 'text'],
      ['tool_call', 'tool_result', 'text'],
    ]) {
      const { response } = await full.next('response.done')
      expect(response.output.map(({ type }: Heard) => type)).toEqual(kinds)
    }
    expect(full.heard.map(({ type }) => type)).toContain('thinking')
  })
}

test('widgets that one client lacks are still among those of the remote agent', async () => {
  const widgets = ['chart', 'table']
  const there = await startServer({ ...mirror, capabilities: { ...mirror.capabilities, widgets } })
  const here = await startServer(remoteEvents({ name: 'far', url: there.url }))
  const told = async (client: object) => {
    const wire = await overWebSocket(here.url)
    await wire.open({
      client_capabilities: { id: 'c', provider: 'test', modalities: ['text'], extensions: { uamp: { ack: true } }, ...client },
    })
    await say(wire, 'hi')
    return ((await (await fetch(`${here.url}/capabilities`)).json()) as { widgets?: string[] }).widgets
  }
  expect(await told({ widgets: ['chart', 'form'] })).toEqual(['chart'])
  expect(await told({})).toEqual(widgets)
  expect(await told({ widgets: ['table'] })).toEqual(widgets)
})

test('a socket that is cut or cannot be opened fails the response', async () => {
  const there = await plainSocketPeer([])
  const here = await startServer([remoteEvents({ name: 'cut', url: there.url }), remoteEvents({ name: 'gone', url: 'ws://127.0.0.1:9' })])
  const wire = await overWebSocket(here.url)
  const [cut, gone] = [await wire.open({ agent: 'cut' }), await wire.open({ agent: 'gone' })]
  const answer = say(wire, 'hi', { session: cut })
  await expect.poll(() => there.heard.some(({ type }) => type === 'response.create')).toBe(true)
  there.sockets[0]?.terminate()
  expect((await answer).at(-1)).toMatchObject({ type: 'response.error', error: { code: 'provider_error' } })
  expect((await say(wire, 'hi', { session: gone })).at(-1)).toMatchObject({ error: { code: 'provider_error' } })
})

verifies('uamp:transport:ping-back', 'our client answers the ping of a server', async () => {
  const there = await plainSocketPeer()
  const client = connect(there.url.replace('ws', 'http').replace('/ws', ''), { transport: 'websocket', WebSocket: Rerouted })
  onTestFinished(() => client.close())
  await client.session()
  there.sockets[0]?.send(JSON.stringify({ type: 'ping', event_id: 'p' }))
  await expect.poll(() => there.heard.map(({ type }) => type)).toContain('pong')
})

/** The peer serves only `/ws`. */
class Rerouted extends WebSocket {
  constructor(url: string) {
    super(url.replace('/uamp', '/ws'))
  }
}
