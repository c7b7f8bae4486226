import { expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { llmAgent } from '../../src/agents/llm/index.ts'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { openaiCompatible } from '../../src/providers/openai-compatible/index.ts'
import { remoteA2a } from '../../src/remotes/a2a/index.ts'
import { startUpstream } from '../providers/upstream/index.ts'
import { startServer } from '../support/server.ts'
import { overWebSocket } from '../support/wire.ts'
import { say } from '../support/talk.ts'

const TRACE = '0af7651916cd43dd8448eb211c80319c'
const TRACEPARENT = `00-${TRACE}-b7ad6b7169203331-01`

const failing = () =>
  defineAgent('failing', async function* () {
    throw new Error('a secret place in the code')
  })

const messages = [{ role: 'user', content: 'Hello' }]

/** One way to ask an agent over each protocol that is a request and its answer. */
const ASK: readonly (readonly [string, string, object])[] = [
  ['completions', '/v1/chat/completions', { model: 'failing', messages }],
  ['completions, streamed', '/v1/chat/completions', { model: 'failing', messages, stream: true }],
  ['completions, stored', '/v1/chat/completions', { model: 'failing', messages, store: true }],
  ['responses', '/v1/responses', { model: 'failing', input: 'Hello' }],
  ['responses, streamed', '/v1/responses', { model: 'failing', input: 'Hello', stream: true }],
  [
    'a2a',
    '/a2a',
    {
      jsonrpc: '2.0',
      id: 1,
      method: 'message/send',
      params: { message: { kind: 'message', messageId: 'm', role: 'user', parts: [{ kind: 'text', text: 'Hello' }] } },
    },
  ],
  ['ag-ui', '/ag-ui', { threadId: 't', runId: 'r', messages: [{ id: 'm', role: 'user', content: 'Hello' }], tools: [], context: [] }],
  ['events', '/events', [{ type: 'session.create' }, { type: 'input.text', text: 'Hello' }, { type: 'response.create' }]],
  ['acp', '/acp', { jsonrpc: '2.0', id: 1, method: 'prompt/submit', params: { messages } }],
]

test.each(ASK)('%s: the id of a request is in its answer and in the log line of what failed', async (_, path, body) => {
  const { url, logged } = await startServer(failing())
  const headers = { 'content-type': 'application/json', 'x-request-id': 'mine-1', traceparent: TRACEPARENT }
  const answer = await fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body) })
  await answer.text()
  expect(answer.headers.get('x-request-id')).toBe('mine-1')
  await expect.poll(() => logged.find(({ message }) => message === 'The agent failed')).toBeDefined()
  const line = logged.find(({ message }) => message === 'The agent failed')
  expect(line?.fields).toMatchObject({ request_id: 'mine-1', trace_id: TRACE })
})

test('an id that is not sane is replaced, and the answer tells by what', async () => {
  const { url, logged } = await startServer(failing())
  const ids = new Set<string>()
  for (const id of ['', 'a b', 'x'.repeat(129), '<script>', 'ümlaut']) {
    const answer = await fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'x-request-id': id },
      body: JSON.stringify({ model: 'failing', messages }),
    })
    const told = answer.headers.get('x-request-id') ?? ''
    expect(told).toMatch(/^req_[0-9a-f]{16}-\d+$/)
    expect(logged.at(-1)?.fields).toMatchObject({ request_id: told })
    ids.add(told)
  }
  expect(ids.size).toBe(5)
})

test('a traceparent that is not one is not passed on', async () => {
  const { url, logged } = await startServer(failing())
  for (const traceparent of ['00-0-0-01', `00-${'0'.repeat(32)}-b7ad6b7169203331-01`, `ff-${TRACE}-b7ad6b7169203331-01`]) {
    await fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { traceparent },
      body: JSON.stringify({ model: 'failing', messages }),
    })
    expect(logged.at(-1)?.fields).not.toHaveProperty('trace_id')
  }
})

test('a connection has one id, which its client is told in the upgrade', async () => {
  const { url, logged } = await startServer(failing())
  const socket = new WebSocket(`${url.replace('http', 'ws')}/uamp`, ['uamp'], { headers: { 'x-request-id': 'mine-2' } })
  const told = await new Promise((resolve) =>
    socket.once('upgrade', ({ headers }: { headers: Record<string, unknown> }) => resolve(headers['x-request-id'])),
  )
  socket.close()
  expect(told).toBe('mine-2')
  const wire = await overWebSocket(url)
  await wire.open()
  const [end] = (await say(wire, 'Hello')).slice(-1)
  await say(wire, 'again')
  const lines = logged.filter(({ message }) => message === 'The agent failed')
  expect(lines).toHaveLength(2)
  const [id] = lines.map(({ fields }) => fields?.['request_id'])
  expect(id).toMatch(/^req_/)
  expect(lines[1]?.fields).toMatchObject({ request_id: id })
  // Whoever is told of an error that only the log explains is told where to look.
  expect(end).toMatchObject({ type: 'response.error', error: { code: 'internal', details: { request_id: id } } })
})

test('a model is asked with the id and the trace of the request, and a remote agent passes both on', async () => {
  const upstream = await startUpstream()
  const provider = openaiCompatible({ name: 'some', baseUrl: `${upstream.url}/compatible/v1`, apiKey: 'key', retries: 0 })
  const behind = await startServer(llmAgent({ name: 'model', model: { provider, model: 'echo' } }))
  const before = await startServer(remoteA2a({ name: 'remote', url: behind.url }))
  const headers = { 'content-type': 'application/json', 'x-request-id': 'mine-3', traceparent: TRACEPARENT, tracestate: 'a=b' }
  const answer = await fetch(`${before.url}/v1/chat/completions`, {
    method: 'POST',
    headers,
    body: JSON.stringify({ model: 'remote', messages }),
  })
  expect(answer.status).toBe(200)
  const asked = upstream.requests.at(-1)
  expect(asked?.headers).toMatchObject({ 'x-request-id': 'mine-3', traceparent: expect.stringContaining(TRACE), tracestate: 'a=b' })
})
