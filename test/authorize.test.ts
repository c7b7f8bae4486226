import { expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { demo } from '../src/agents/demo/index.ts'
import { defineAgent } from '../src/core/agent-kit/define-agent.ts'
import { text } from '../src/core/agent-kit/drafts.ts'
import type { Access, Principal } from '../src/core/ports/access.ts'
import { a2a } from '../src/transports/a2a/index.ts'
import { acp } from '../src/transports/acp/index.ts'
import { agUi } from '../src/transports/ag-ui/index.ts'
import { catalog, completions } from '../src/transports/completions/index.ts'
import { events } from '../src/transports/events/index.ts'
import { omnia } from '../src/transports/omnia/index.ts'
import { realtime } from '../src/transports/realtime/index.ts'
import { responses } from '../src/transports/responses/index.ts'
import { Client, overSocket } from './acp/wire.ts'
import { message } from './a2a/push-support.ts'
import { connect } from './openai/realtime-wire.ts'
import { testServer } from './support/test-server.ts'
import { overWebSocket } from './support/wire.ts'

const secret = defineAgent('secret', async function* () {
  yield text('not for everybody')
})

/** Alice may talk to the demo and to nothing else; root may do everything. What is asked is written down. */
async function start() {
  const asked = new Set<string>()
  const known: Record<string, Principal> = {
    alice: { tenant: 't', id: 'alice', scopes: ['call'] },
    bob: { tenant: 't', id: 'bob', scopes: ['call'] },
    root: { tenant: 't', id: 'alice', scopes: ['call', 'tool', 'secret'] },
  }
  const access: Access = {
    schemes: ['Bearer'],
    authenticate: async ({ headers, token }) => known[token ?? headers?.get('authorization')?.replace('Bearer ', '') ?? ''],
    authorize: ({ scopes }, action, resource) => {
      asked.add(action)
      return scopes.includes(action) && (resource !== 'secret' || scopes.includes('secret'))
    },
  }
  const connectTools = () => Promise.reject(new Error('none'))
  const transports = [
    events(),
    completions(),
    ...catalog(),
    responses(),
    realtime(),
    a2a(),
    agUi(),
    acp({ connectTools, version: '1' }),
    omnia(),
  ]
  const server = await testServer({ agents: [demo(), secret], transports, access, defaultAgent: 'demo' })
  const post = (path: string, body: unknown, token = 'alice', headers: object = {}) =>
    fetch(server.url + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    })
  return { ...server, asked, post }
}

const closed = (socket: WebSocket): Promise<number> =>
  new Promise((resolve) => {
    socket.once('unexpected-response', (_, response) => resolve(response.statusCode ?? 0))
    socket.once('close', (code) => resolve(code))
    socket.on('error', () => undefined)
  })

const HELLO = { messages: [{ role: 'user', content: 'Hello' }] }
const RUN = { threadId: 't1', runId: 'r1', messages: [{ id: 'm', role: 'user', content: 'Hello' }] }
const send = { jsonrpc: '2.0', id: 1, method: 'SendMessage', params: { message: message() } }

test('every transport asks for the same actions: who may call one agent calls it everywhere, and no other', async () => {
  const { url, asked, post } = await start()
  const create = (agent: string) => [{ type: 'session.create', agent }, { type: 'input.text', text: 'Hello' }, { type: 'response.create' }]
  const statuses = async (agent: string) => {
    const submit = { jsonrpc: '2.0', id: 1, method: 'prompt/submit', params: HELLO }
    return {
      events: (await post('/events', create(agent))).status,
      completions: (await post('/v1/chat/completions', { model: agent, ...HELLO })).status,
      responses: (await post('/v1/responses', { model: agent, input: 'Hello' })).status,
      'ag-ui': (await post(`/agents/${agent}/ag-ui`, RUN)).status,
      a2a: (await post(`/agents/${agent}/a2a`, send, 'alice', { 'a2a-version': '1.0' })).status,
      acp: (await post(`/agents/${agent}/acp`, submit)).status,
    }
  }
  const allowed = await statuses('demo')
  expect(Object.values(allowed).every((status) => status < 300)).toBe(true)
  expect(await statuses('secret')).toEqual(Object.fromEntries(Object.keys(allowed).map((name) => [name, 403])))

  const headers = { authorization: 'Bearer alice' }
  const place = url.replace('http', 'ws')
  for (const path of ['/agents/secret/uamp', '/agents/secret/v1/realtime', '/agents/secret/omnia', '/agents/secret/acp'])
    expect(await closed(new WebSocket(place + path, { headers })), path).toBe(403)
  // Named in the request, and not by the path.
  expect(await closed(new WebSocket(`${place}/omnia?agent=secret`, { headers }))).toBe(1011)
  expect(await closed(new WebSocket(`${place}/v1/realtime?model=secret`, { headers }))).not.toBe(1000)
  const wire = await overWebSocket(url, { token: 'alice' })
  await expect(wire.open({ agent: 'secret' })).rejects.toMatchObject({ refusal: { error: { code: 'forbidden' } } })
  const realtimeWire = await connect(url, { path: '/v1/realtime?model=demo', headers })
  expect((await realtimeWire.respond()).at(-1)?.type).toBe('response.done')
  const client = await Client.connect(overSocket(url, { headers }))
  await client.initialize()
  const other = await client.ask('session/new', { cwd: '/', mcpServers: [], _meta: { uamp: { agent: 'secret' } } })
  expect(other['error'].code).toBe(-32003)
  expect([...asked].toSorted()).toEqual(['call', 'read'])
})

test('a session that was begun with more rights is not gone on with after they are taken away', async () => {
  const { url, post } = await start()
  const created = await post('/events', [{ type: 'session.create', agent: 'secret' }], 'root')
  const { session_id: session } = (await created.json()) as { session_id: string }
  const say = [{ type: 'input.text', text: 'x' }, { type: 'response.create' }]
  expect((await post('/events', say, 'root', { 'x-session-id': session })).status).toBe(202)
  expect((await post('/events', say, 'alice', { 'x-session-id': session })).status).toBe(403)
  const stream = await fetch(`${url}/events/stream?session_id=${session}`, { headers: { authorization: 'Bearer alice' } })
  expect(stream.status).toBe(403)
  const wire = await overWebSocket(url, { token: 'alice' })
  await expect(wire.follow(session, 0)).rejects.toMatchObject({ refusal: { error: { code: 'forbidden' } } })
  const client = await Client.connect(overSocket(url, { headers: { authorization: 'Bearer alice' } }))
  await client.initialize()
  expect((await client.ask('session/load', { sessionId: session, cwd: '/', mcpServers: [] }))['error']).toMatchObject({ code: -32003 })

  const response = (await (await post('/v1/responses', { model: 'secret', input: 'x' }, 'root')).json()) as { id: string }
  const get = (token: string) => fetch(`${url}/v1/responses/${response.id}`, { headers: { authorization: `Bearer ${token}` } })
  expect((await get('root')).status).toBe(200)
  expect((await get('alice')).status).toBe(403)
})

test('a tool is called directly by those who may', async () => {
  const { post, asked } = await start()
  const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'add', arguments: { a: 1, b: 2 } } }
  expect(await (await post('/acp', call)).json()).toMatchObject({
    error: { code: -32003, message: 'This token may not run tools of demo' },
  })
  expect(await (await post('/acp', call, 'root')).json()).toMatchObject({ result: { isError: false } })
  expect([...asked].toSorted()).toEqual(['call', 'tool'])
})

test('a token opens a session of its owner on any connection, and never makes what is there somebody else’s', async () => {
  const { post, connect: open } = await start()
  for (const first of [{ authorization: 'Bearer alice' }, undefined]) {
    const socket = open('/uamp', first ? { headers: first } : {})
    const heard: { type: string; session_id?: string; error?: { code: string; message: string } }[] = []
    socket.on('message', (data: Buffer) => heard.push(JSON.parse(data.toString())))
    await new Promise((resolve) => socket.once('open', resolve))
    const ask = async (event: object) => {
      const from = heard.length
      socket.send(JSON.stringify({ uamp_version: '1.0', ...event }))
      await expect.poll(() => heard.slice(from).find(({ type }) => /^session\.(created|error|updated)$/.test(type))).toBeTruthy()
      return heard.slice(from).find(({ type }) => /^session\.(created|error|updated)$/.test(type))
    }
    if (!first) expect(await ask({ type: 'session.create', token: 'alice' })).toMatchObject({ type: 'session.created' })
    const own = await ask({ type: 'session.create' })
    expect(own).toMatchObject({ type: 'session.created' })
    const others = await ask({ type: 'session.create', token: 'bob' })
    expect(others).toMatchObject({ type: 'session.created' })
    const refused = {
      type: 'session.error',
      error: { code: 'unauthorized', message: 'The token belongs to someone else: open a session of its own with it' },
    }
    // The connection is Alice's, and so is her session; Bob's is his.
    expect(await ask({ type: 'session.update', token: 'bob' })).toMatchObject(refused)
    expect(await ask({ type: 'session.update', token: 'bob', session_id: own?.session_id })).toMatchObject(refused)
    expect(await ask({ type: 'session.update', token: 'alice', session_id: others?.session_id })).toMatchObject(refused)
    expect(await ask({ type: 'session.update', token: 'alice' })).toMatchObject({ type: 'session.updated' })
    socket.terminate()
  }
  const created = await post('/events', [{ type: 'session.create', token: 'bob' }])
  expect(created.status).toBe(201)
  const { session_id: session } = (await created.json()) as { session_id: string }
  const typing = [{ type: 'input.typing', is_typing: true, session_id: session }]
  expect((await post('/events', typing)).status).toBe(404)
  expect((await post('/events', typing, 'bob')).status).toBe(202)
})

test('where callers without a token are let in, the first token says whose the connection is', async () => {
  const { connect: open } = await testServer({
    agents: [demo()],
    transports: [events()],
    tokens: { alice: 'wonderland-7b1f9c04', bob: 'builder-0123456789ab' },
    anonymous: true,
  })
  const socket = open('/uamp')
  const heard: { type: string; error?: { code: string } }[] = []
  socket.on('message', (data: Buffer) => heard.push(JSON.parse(data.toString())))
  await new Promise((resolve) => socket.once('open', resolve))
  const refresh = (token: string) => socket.send(JSON.stringify({ type: 'session.update', uamp_version: '1.0', token }))
  const create = (token?: string) =>
    socket.send(JSON.stringify({ type: 'session.create', uamp_version: '1.0', session: { modalities: ['text'] }, ...(token && { token }) }))
  create('wonderland-7b1f9c04')
  await expect.poll(() => heard.filter(({ type }) => type === 'session.created').length).toBe(1)
  create('builder-0123456789ab')
  await expect.poll(() => heard.filter(({ type }) => type === 'session.created').length).toBe(2)
  refresh('builder-0123456789ab')
  await expect.poll(() => heard.find(({ type }) => type === 'session.error')).toMatchObject({ error: { code: 'unauthorized' } })
  create()
  await expect.poll(() => heard.filter(({ type }) => type === 'session.created').length).toBe(3)
  socket.terminate()
})
