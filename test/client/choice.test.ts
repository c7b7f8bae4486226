import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { WebSocketServer } from 'ws'
import { demo } from '../../src/agents/demo/index.ts'
import { connect as connectAnywhere } from '../../src/client/index.ts'
import { connect } from '../../src/client/node.ts'
import { serve } from '../../src/serve/index.ts'
import { UAMP_VERSION } from '../../src/protocol/version.ts'
import { mirror, type Mirrored } from '../support/agents.ts'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'
import { startProxy, type Proxy } from './proxy.ts'

let server: Awaited<ReturnType<typeof serve>>
let guarded: Awaited<ReturnType<typeof serve>>
let proxy: Proxy
beforeAll(async () => {
  server = await serve(demo(), { port: 0, data: 'memory' })
  guarded = await serve(demo(), { port: 0, data: 'memory', tokens: { alice: 'secret/+=-0123456789abcdef' } })
})
afterAll(() => Promise.all([server.close({ graceMs: 0 }), guarded.close({ graceMs: 0 })]))
beforeEach(async () => {
  proxy = await startProxy(server.port)
})
afterEach(() => proxy.close())

describe('which way is taken', () => {
  test('HTTP + SSE where the runtime has no WebSocket', async () => {
    const client = connectAnywhere(proxy.url, { WebSocket: undefined as never })
    proxy.door = 'no-upgrade'
    const session = await client.session()
    expect(await session.say('hello')).toBe('You said: hello')
    client.close()
  })

  test('HTTP + SSE when no WebSocket can be opened', async () => {
    proxy.door = 'no-upgrade'
    const client = connect(proxy.url)
    const session = await client.session()
    expect(await session.say('hello')).toBe('You said: hello')
    expect(client.status).toBe('open')
    client.close()
  })

  test('a session goes on over SSE when WebSockets stop working', async () => {
    const client = connect(proxy.url, { reconnect: { minMs: 1, maxMs: 5 } })
    const session = await client.session()
    await session.say('over the socket')
    proxy.door = 'no-upgrade'
    proxy.cut()
    expect(await session.say('/history')).toContain('over the socket')
    client.close()
  })

  test('nothing else when WebSocket was asked for', async () => {
    proxy.door = 'no-upgrade'
    const client = connect(proxy.url, { transport: 'websocket' })
    await expect(client.session()).rejects.toMatchObject({
      code: 'unreachable',
      message: expect.stringContaining('no WebSocket') as string,
    })
    client.close()
    expect(() => connectAnywhere(proxy.url, { transport: 'websocket', WebSocket: undefined as never })).toThrow(
      expect.objectContaining({ code: 'not_supported' }) as Error,
    )
  })

  test.each(['auto', 'websocket', 'sse'] as const)('%s: an address where nobody is', async (transport) => {
    proxy.door = 'shut'
    const client = connect(proxy.url, { transport })
    await expect(client.session()).rejects.toMatchObject({ code: 'unreachable' })
    expect(client.status).toBe('closed')
    client.close()
  })
})

describe.each(['auto', 'websocket', 'sse'] as const)('credentials, %s', (transport) => {
  test('a good token is let in', async () => {
    const client = connect(guarded.url, { transport, token: 'secret/+=-0123456789abcdef' })
    expect(await (await client.session()).say('hello')).toBe('You said: hello')
    client.close()
  })

  test.each(['wrong', undefined])('token %s: unauthorized', async (token) => {
    const client = connect(guarded.url, { transport, ...(token !== undefined && { token }) })
    await expect(client.session()).rejects.toMatchObject({ code: 'unauthorized' })
    client.close()
  })

  // The token goes with the upgrade, so that what comes first may be as large as it is.
  test('a large first message is taken with a token, and without one the reason is told', async () => {
    const large = { instructions: 'x'.repeat(60 * 1024) }
    const known = connect(guarded.url, { transport, token: 'secret/+=-0123456789abcdef' })
    expect(await (await known.session(large)).say('hello')).toBe('You said: hello')
    known.close()
    const unknown = connect(guarded.url, { transport })
    const message = expect.stringMatching(
      transport === 'sse' ? /needs a valid token/ : /before the token may have at most 16384 bytes/,
    ) as string
    await expect(unknown.session(large)).rejects.toMatchObject({ code: 'unauthorized', message })
    unknown.close()
  })
})

describe('a server of another make', () => {
  let stranger: WebSocketServer
  let heard: { readonly type: string; readonly uamp_version?: string }[]
  beforeEach(async () => {
    let sessions = 0
    heard = []
    stranger = new WebSocketServer({ port: 0, host: '127.0.0.1' })
    stranger.on('connection', (socket) => {
      const say = (event: object): void => socket.send(JSON.stringify({ event_id: crypto.randomUUID(), ...event }))
      socket.on('message', (data: Buffer) => {
        const event = JSON.parse(data.toString()) as (typeof heard)[number]
        const { type } = event
        heard.push(event)
        if (type === 'session.create') {
          const session = { id: `s${++sessions}`, created_at: 0, config: { modalities: ['text'] }, status: 'active' }
          say({ type: 'session.created', uamp_version: '1.0', session })
        }
        if (type !== 'response.create') return
        say({ type: 'response.created', response_id: 'r1' })
        socket.send('not json')
        say({ type: 'response.delta', response_id: 'r1', delta: { type: 'text', text: 'hi' } })
        say({ type: 'something.new', response_id: 'r1' })
        say({ type: 'response.done', response_id: 'r1', response: { id: 'r1', status: 'completed', output: [] } })
      })
    })
    await new Promise((resolve) => stranger.once('listening', resolve))
  })
  afterEach(() => {
    for (const socket of stranger.clients) socket.terminate()
    stranger.close()
  })
  const url = (): string => `ws://127.0.0.1:${(stranger.address() as { port: number }).port}/`

  verifies('uamp:version:client-sends', 'is told the version first of all, over WebSocket and over HTTP', async () => {
    const bodies: unknown[] = []
    const record: typeof fetch = (input, init) => {
      if (typeof init?.body === 'string') bodies.push(JSON.parse(init.body))
      return fetch(input, init)
    }
    const clients = [connect(url()), connect(server.url, { transport: 'sse', fetch: record })]
    for (const client of clients) {
      await client.session()
      client.close()
    }
    expect([heard[0], bodies[0]]).toMatchObject([
      { type: 'session.create', uamp_version: UAMP_VERSION },
      { type: 'session.create', uamp_version: UAMP_VERSION },
    ])
  })

  test('needs no acknowledgements, numbers or session ids', async () => {
    const client = connect(url())
    const session = await client.session()
    expect(session.id).toBe('s1')
    expect(await session.say('hello')).toBe('hi')
    await session.send({ type: 'input.typing', is_typing: true })
    client.close()
  })

  test('that cannot resume is found out, and not taken for the same session', async () => {
    const client = connect(url(), { reconnect: { minMs: 1, maxMs: 1 } })
    const session = await client.session()
    const loop = (async () => {
      for await (const _ of session);
    })()
    for (const socket of stranger.clients) socket.terminate()
    await expect(loop).rejects.toMatchObject({ code: 'not_found' })
    client.close()
  })
})

test('a client says what it can do, and the agent sees it', async () => {
  const { url } = await startServer(mirror)
  const client = connect(url)
  const session = await client.session({
    capabilities: { id: 'my-app', modalities: ['text', 'image'], widgets: ['chart'], supports_thinking: false },
  })
  const text = await session.say('hi')
  expect((JSON.parse(text) as Mirrored).client).toMatchObject({
    id: 'my-app',
    modalities: ['text', 'image'],
    widgets: ['chart'],
    supports_thinking: false,
    extensions: { uamp: { ack: true } },
  })
  client.close()
})
