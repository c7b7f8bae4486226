/** An agent that is offline, as callers of each protocol are told of it. */
import { expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { Client, overSocket } from '../acp/wire.ts'
import { OmniaClient } from '../omnia/omnia-client.ts'
import { counter } from '../support/agents.ts'
import { verifies } from '../support/verifies.ts'
import { overWebSocket } from '../support/wire.ts'
import { bareEnd } from './bare.ts'
import { CALLER, host, LAPTOP, startHost } from './hosts.ts'

const local = defineAgent('local', async function* () {
  yield 'I live here'
})

const authorization = `Bearer ${CALLER}`

/** A host whose agent `counter` was there, and has left. `leave` ends it. */
async function start() {
  const server = await startHost([local])
  const connected = await host(server.url, counter)
  return { url: server.url, leave: () => connected.close() }
}

const message = { role: 'ROLE_USER', parts: [{ text: '3' }], messageId: 'm' }
const old = { role: 'user', parts: [{ kind: 'text', text: '3' }], messageId: 'm' }
const run = {
  threadId: 't',
  runId: 'r',
  state: {},
  messages: [{ id: '1', role: 'user', content: '3' }],
  tools: [],
  context: [],
  forwardedProps: {},
}
const completion = { model: 'counter', messages: [{ role: 'user', content: '3' }] }
const events = [
  { type: 'session.create', event_id: 'c', uamp_version: '1.0', session: { modalities: ['text'] } },
  { type: 'input.text', event_id: 'i', text: '3' },
  { type: 'response.create', event_id: 'r' },
]
const OFFLINE = 'The agent "counter" is offline'
const openAi = { error: { message: OFFLINE, type: 'invalid_request_error', code: 'model_not_found' } }
const info = (metadata: object) => [{ reason: 'AGENT_OFFLINE', metadata }]

/** What is sent to each protocol over HTTP, and what is answered. An error of JSON-RPC is an answer with 200. */
const FORMS: Readonly<Record<string, { path: string; body: object; headers?: Record<string, string>; status?: number; refused: object }>> =
  {
    Completions: { path: '/chat/completions', body: completion, refused: openAi },
    'Completions, streamed': { path: '/chat/completions', body: { ...completion, stream: true }, refused: openAi },
    Responses: { path: '/responses', body: { model: 'counter', input: '3' }, refused: openAi },
    'Responses, streamed': { path: '/responses', body: { model: 'counter', input: '3', stream: true }, refused: openAi },
    'A2A 1.0': {
      status: 200,
      path: '/a2a',
      body: { jsonrpc: '2.0', id: 1, method: 'SendMessage', params: { message } },
      headers: { 'a2a-version': '1.0' },
      refused: { error: { code: -32603, message: OFFLINE, data: info({ agent: 'counter', retry_after: '5' }) } },
    },
    'A2A 1.0, streamed': {
      status: 200,
      path: '/a2a',
      body: { jsonrpc: '2.0', id: 1, method: 'SendStreamingMessage', params: { message } },
      headers: { 'a2a-version': '1.0' },
      refused: { error: { code: -32603, message: OFFLINE, data: info({ agent: 'counter', retry_after: '5' }) } },
    },
    'A2A 0.3': {
      status: 200,
      path: '/a2a',
      body: { jsonrpc: '2.0', id: 1, method: 'message/send', params: { message: old } },
      refused: { error: { code: -32603, message: OFFLINE, data: { reason: 'AGENT_OFFLINE', agent: 'counter', retry_after: 5 } } },
    },
    'AG-UI': {
      path: '/ag-ui',
      body: run,
      refused: { error: { code: 'agent_offline', message: OFFLINE, details: { agent: 'counter', retry_after: 5 } } },
    },
    ACP: {
      status: 200,
      path: '/acp',
      body: { jsonrpc: '2.0', id: 1, method: 'prompt/submit', params: { messages: [{ role: 'user', content: '3' }] } },
      refused: { error: { code: -32002, message: OFFLINE, data: { code: 'agent_offline', agent: 'counter', retry_after: 5 } } },
    },
    'UAMP events': {
      path: '/events',
      body: events,
      refused: { error: { code: 'agent_offline', message: OFFLINE, details: { agent: 'counter', retry_after: 5 } } },
    },
  }

for (const [protocol, { path, body, headers = {}, status = 404, refused }] of Object.entries(FORMS)) {
  verifies('connect.offline', `${protocol}: an agent that is offline, and when to come again`, async () => {
    const { url, leave } = await start()
    const ask = () =>
      fetch(`${url}/agents/counter${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization, ...headers },
        body: JSON.stringify(body),
      })
    const before = await ask()
    expect(before.status).toBeLessThan(300)
    await before.text()
    await leave()
    const response = await ask()
    expect(response.status).toBe(status)
    if (status === 404) expect(response.headers.get('retry-after')).toBe('5')
    const text = await response.text()
    expect(JSON.parse(text.replace(/^(event: .*\n)?data: /, ''))).toMatchObject(refused)
  })
}

verifies('connect.offline', 'it is listed as offline', async () => {
  const { url, leave } = await start()
  const listed = async () => ((await (await fetch(`${url}/agents`)).json()) as { agents: object[] }).agents
  expect(await listed()).toContainEqual({ name: 'counter', path: '/agents/counter', online: true })
  await leave()
  expect(await listed()).toContainEqual({ name: 'counter', path: '/agents/counter', online: false })
})

verifies('connect.offline', 'UAMP events over a socket: a new session, and one that was open', async () => {
  const { url, leave } = await start()
  const wire = await overWebSocket(url, { token: CALLER })
  await wire.open({ agent: 'counter' })
  await leave()
  const error = { code: 'agent_offline', message: OFFLINE, details: { agent: 'counter', retry_after: 5 } }
  await wire.send({ type: 'input.text', text: '3' })
  expect(await wire.send({ type: 'response.create' })).toMatchObject({ ...error, as: 'response.error' })
  await expect(wire.open({ agent: 'counter' })).rejects.toMatchObject({ refusal: { type: 'session.error', error } })
  wire.close()
})

verifies('connect.offline', 'Realtime: a new session, and one that was open', async () => {
  const { url, leave } = await start()
  const connect = () => bareEnd(url, '/v1/realtime?model=counter', { authorization })
  const wire = await connect()
  await wire.first('session.created')
  await leave()
  const item = { type: 'message', role: 'user', content: [{ type: 'input_text', text: '3' }] }
  wire.send({ type: 'conversation.item.create', item }, { type: 'response.create' })
  const error = { type: 'invalid_request_error', code: 'model_not_found', message: OFFLINE, retry_after: 5 }
  expect((await wire.first('error'))['error']).toMatchObject(error)
  const late = await connect()
  expect((await late.first('error'))['error']).toMatchObject(error)
})

verifies('connect.offline', 'Responses over a socket', async () => {
  const { url, leave } = await start()
  await leave()
  const wire = await bareEnd(url, '/agents/counter/v1/responses', { authorization })
  wire.send({ type: 'response.create', model: 'counter', input: '3' })
  expect(await wire.first('error')).toMatchObject({
    status: 404,
    error: { code: 'model_not_found', message: OFFLINE },
    headers: { 'retry-after': '5' },
  })
})

verifies('connect.offline', 'ACP over a socket: a new session, and one that was open', async () => {
  const { url, leave } = await start()
  const client = await Client.connect(overSocket(`${url}/agents/counter`, { headers: { authorization } }))
  await client.initialize()
  const session = await client.open()
  await leave()
  const error = { code: -32002, message: OFFLINE, data: { code: 'agent_offline', agent: 'counter', retry_after: 5 } }
  expect(await client.say(session, '3')).toMatchObject({ error })
  expect(await client.ask('session/new', { cwd: '/', mcpServers: [] })).toMatchObject({ error })
})

verifies('connect.offline', 'Omnia: a new session, and one that was open', async () => {
  const { url, leave } = await start()
  const options = { path: '/omnia?agent=counter', headers: { authorization } }
  const client = await OmniaClient.open(url, options)
  await leave()
  const error = { code: 'AGENT_UNAVAILABLE', message: OFFLINE, details: { code: 'agent_offline', agent: 'counter', retry_after: 5 } }
  expect(await client.fails({ type: 'message', session_id: client.sessionId, content: '3' })).toMatchObject(error)
  const late = new OmniaClient(new WebSocket(url.replace('http', 'ws') + options.path, { headers: { authorization } }))
  expect((await late.next('error'))['error']).toMatchObject(error)
})

/** The streams of protocols that have no headers to say it in by then. */
const STREAMS: Readonly<Record<string, { path: string; body: object; headers?: Record<string, string>; ends: RegExp }>> = {
  Completions: { path: '/chat/completions', body: { ...completion, stream: true }, ends: /"code":"model_not_found".*"retry_after":5/ },
  Responses: {
    path: '/responses',
    body: { model: 'counter', input: '3', stream: true },
    ends: /response\.failed.*"code":"model_not_found".*"retry_after":5/,
  },
  A2A: {
    path: '/a2a',
    body: { jsonrpc: '2.0', id: 1, method: 'SendStreamingMessage', params: { message } },
    headers: { 'a2a-version': '1.0' },
    ends: /TASK_STATE_FAILED.*"metadata":\{"code":"agent_offline","retry_after":5\}/,
  },
  'AG-UI': { path: '/ag-ui', body: run, ends: /RUN_ERROR.*"code":"agent_offline".*"retry_after":5/ },
}

for (const [protocol, { path, body, headers = {}, ends }] of Object.entries(STREAMS)) {
  verifies('connect.offline', `${protocol}: an agent that goes offline in the middle of its answer`, async () => {
    const { url } = await startHost([local])
    const end = await bareEnd(url)
    await end.offer('counter', LAPTOP)
    const response = fetch(`${url}/agents/counter${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization, ...headers },
      body: JSON.stringify(body),
    })
    end.say(await end.request(), 'the beginning')
    await end.settled()
    end.cut()
    const text = await (await response).text()
    expect(text).toContain('the beginning')
    expect(text).toMatch(ends)
  })
}

verifies('connect.offline', 'sockets: an agent that goes offline in the middle of its answer', async () => {
  const { url } = await startHost([local])
  const end = await bareEnd(url)
  await end.offer('counter', LAPTOP)
  const wire = await overWebSocket(url, { token: CALLER })
  await wire.open({ agent: 'counter' })
  await wire.send({ type: 'input.text', text: '3' })
  await wire.send({ type: 'response.create' })
  const realtime = await bareEnd(url, '/v1/realtime?model=counter', { authorization })
  const item = { type: 'message', role: 'user', content: [{ type: 'input_text', text: '3' }] }
  realtime.send({ type: 'conversation.item.create', item }, { type: 'response.create', response: { output_modalities: ['text'] } })
  const client = await Client.connect(overSocket(`${url}/agents/counter`, { headers: { authorization } }))
  await client.initialize()
  const prompt = client.say(await client.open(), '3')
  const omnia = await OmniaClient.open(url, { path: '/omnia?agent=counter', headers: { authorization } })
  const failed = omnia.fails({ type: 'message', session_id: omnia.sessionId, content: '3' })
  for (let nth = 0; nth < 4; nth++) end.say(await end.request(nth), 'the beginning')
  await end.settled()
  end.cut()
  const details = { agent: 'counter', retry_after: 5 }
  expect((await wire.next('response.error'))['error']).toMatchObject({ code: 'agent_offline', details })
  const { response } = await realtime.first('response.done')
  expect(response.status_details.error).toMatchObject({ code: 'model_not_found', retry_after: 5 })
  expect(await prompt).toMatchObject({ error: { code: -32002, data: { code: 'agent_offline', ...details } } })
  expect(await failed).toMatchObject({ code: 'AGENT_UNAVAILABLE', details: { code: 'agent_offline', ...details } })
  wire.close()
})

test('one that was never there is told apart', async () => {
  const { url } = await start()
  const response = await fetch(`${url}/agents/nobody/chat/completions`, { method: 'POST', headers: { authorization }, body: '{}' })
  expect(response.status).toBe(404)
  expect(await response.text()).not.toContain('is offline')
})
