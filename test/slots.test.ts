import { describe, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { demo } from '../src/agents/demo/index.ts'
import { startServer } from './support/server.ts'

/** A slot of so many bytes, and a little more for its name. */
const slot = (bytes: number) => ({ large: 'x'.repeat(bytes) })

const rpc = (method: string, params: object) => ({ jsonrpc: '2.0', id: 1, method, params })
const part = { text: 'hello' }

/** One request of each protocol that carries a slot, over HTTP. */
const posts: Record<string, (filler: object) => { path: string; body: object; headers?: Record<string, string> }> = {
  'events, session': (filler) => ({ path: '/events', body: [{ type: 'session.create', session: { extensions: filler } }] }),
  'events, input': (filler) => ({
    path: '/events',
    body: [{ type: 'session.create' }, { type: 'input.text', text: 'a', context: filler }],
  }),
  'events, metadata': (filler) => ({ path: '/events', body: [{ type: 'session.create', metadata: filler }] }),
  responses: (filler) => ({ path: '/v1/responses', body: { model: 'demo', input: 'a', metadata: filler } }),
  'a2a 1.0': (filler) => ({
    path: '/a2a',
    body: rpc('SendMessage', { message: { messageId: 'm', role: 'ROLE_USER', parts: [part], metadata: filler } }),
    headers: { 'a2a-version': '1.0' },
  }),
  'a2a 0.3': (filler) => ({
    path: '/a2a',
    body: rpc('message/send', {
      message: { kind: 'message', messageId: 'm', role: 'user', parts: [{ kind: 'text', ...part }] },
      metadata: filler,
    }),
  }),
  'ag-ui': (filler) => ({
    path: '/ag-ui',
    body: {
      threadId: 't',
      runId: 'r',
      messages: [{ id: '1', role: 'user', content: 'a' }],
      tools: [],
      context: [],
      state: {},
      forwardedProps: filler,
    },
  }),
  acp: (filler) => ({ path: '/acp', body: rpc('initialize', { protocolVersion: 1, clientCapabilities: {}, _meta: filler }) }),
}

async function send(url: string, name: string, bytes: number): Promise<{ status: number; text: string }> {
  const { path, body, headers } = (posts[name] as (typeof posts)[string])(slot(bytes))
  const response = await fetch(url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers },
    body: JSON.stringify(body),
  })
  return { status: response.status, text: await response.text() }
}

// Completions have none: their metadata has the bounds of OpenAI, which are far smaller.
describe('an extension slot holds 64 KiB, on every protocol', () => {
  test.each(Object.keys(posts))('%s', async (name) => {
    const { url, gateway } = await startServer(demo())
    const refused = await send(url, name, 70 * 1024)
    expect(refused.text).toMatch(/holds more than 65536 bytes/)
    const held = gateway.heldBytes
    expect(held).toBe(0)
    const taken = await send(url, name, 60 * 1024)
    expect(taken.text).not.toMatch(/holds more than/)
    expect(taken.status).toBeLessThan(500)
  })

  test.each([
    ['events', '/uamp', { type: 'session.create', session: { extensions: slot(70 * 1024) } }],
    ['realtime', '/v1/realtime?model=demo', { type: 'response.create', response: { metadata: slot(70 * 1024) } }],
    ['responses', '/v1/responses', { type: 'response.create', model: 'demo', input: 'a', metadata: slot(70 * 1024) }],
    ['omnia', '/omnia?agent=demo', { type: 'message', content: 'a', metadata: slot(70 * 1024) }],
    ['acp', '/acp', rpc('initialize', { protocolVersion: 1, clientCapabilities: {}, _meta: slot(70 * 1024) })],
  ])('%s over WebSocket', async (_, path, message) => {
    const { url } = await startServer(demo())
    const socket = new WebSocket(url.replace('http', 'ws') + path)
    const told = new Promise<string>((resolve) => {
      socket.on('message', (data: Buffer) => /holds more than 65536 bytes/.test(data.toString()) && resolve(data.toString()))
    })
    await new Promise((resolve) => socket.once('open', resolve))
    socket.send(JSON.stringify(message))
    expect(await told).toMatch(/too_large|holds more/)
    socket.close()
  })

  test('the number is a setting', async () => {
    const { url } = await startServer(demo(), { limits: { slotBytes: 200 * 1024 } })
    expect((await send(url, 'responses', 150 * 1024)).status).toBe(200)
    expect((await send(url, 'responses', 250 * 1024)).text).toMatch(/holds more than 204800 bytes/)
  })

  test("AG-UI's state counts only against the budget", async () => {
    const { url } = await startServer(demo())
    const { path, body } = (posts['ag-ui'] as (typeof posts)[string])({})
    const response = await fetch(url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'text/event-stream' },
      body: JSON.stringify({ ...body, state: slot(300 * 1024) }),
    })
    expect(await response.text()).toContain('RUN_FINISHED')
  })
})
