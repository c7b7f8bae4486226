import { describe, expect, onTestFinished, test } from 'vitest'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { text } from '../../src/core/agent-kit/drafts.ts'
import { UampError } from '../../src/protocol/errors.ts'
import { packageVersion } from '../../src/serve/package-version.ts'
import { coin, left, settled } from '../support/money.ts'
import { endless } from '../support/agents.ts'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'
import { caller, careful, demo, paid } from './agents.ts'
import { Client, overHttp, overSocket, overStdio, type Heard } from './wire.ts'

const HELLO = { messages: [{ role: 'user', content: 'Hello' }] }

async function post(url: string, message: object, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(`${url}/acp`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ jsonrpc: '2.0', ...message }),
  })
}

verifies(['acp-uamp.initialize', 'acp-uamp.submit', 'acp-uamp.tools'], 'one request after the other', async () => {
  const { url } = await startServer(demo())
  const ask = async (method: string, params: object = {}): Promise<Heard> =>
    (await (await post(url, { id: 1, method, params })).json()) as Heard
  expect(await ask('initialize')).toEqual({
    jsonrpc: '2.0',
    id: 1,
    result: {
      protocolVersion: '1.0',
      serverInfo: { name: 'demo', version: packageVersion() },
      capabilities: { streaming: true, tools: true },
    },
  })
  expect((await ask('initialize', { protocolVersion: '1.0' }))['result'].protocolVersion).toBe('1.0')
  expect(await ask('prompt/submit', HELLO)).toEqual({ jsonrpc: '2.0', id: 1, result: { status: 'complete', content: 'You said: Hello' } })
  expect((await ask('chat/submit', HELLO))['result']).toEqual({ status: 'complete', content: 'You said: Hello' })
  expect((await ask('tools/list'))['result'].tools).toContainEqual({
    name: 'add',
    description: 'The sum of two numbers',
    inputSchema: { type: 'object', properties: { a: { type: 'number' }, b: { type: 'number' } }, required: ['a', 'b'] },
  })
  expect((await ask('tools/call', { name: 'add', arguments: { a: 1, b: 2 } }))['result']).toEqual({
    content: [{ type: 'text', text: '{"sum":3}' }],
    isError: false,
  })
  expect((await ask('tools/call', { name: 'add', arguments: { a: 'x' } }))['result']).toMatchObject({ isError: true })
  expect((await ask('tools/call', { name: 'nothing' }))['error'].code).toBe(-32602)
  expect((await ask('capabilities'))['result']).toMatchObject({ streaming: true, tools: true, agent: { id: 'demo' } })
  expect((await ask('prompt/submit', { messages: [] }))['error'].code).toBe(-32602)
  expect((await ask('prompt/submit', { messages: [{ role: 'user', content: '/error of_its_own' }] }))['error']).toMatchObject({
    code: -32603,
  })
  expect((await post(url, { method: 'prompt/submit', params: HELLO })).status).toBe(202)
})

const IMAGE = { type: 'image', data: 'iVBORw0KGgo=', mimeType: 'image/png' }

/** Says which kinds of content it heard, and gives the last item back. */
const mirror = defineAgent('mirror', async function* ({ messages }) {
  const items = messages.at(-1)?.content_items ?? []
  yield text(items.map((item) => (item.type === 'text' ? item.text : item.type)).join(','))
  const [image] = items.filter(({ type }) => type === 'image')
  if (image?.type === 'image') yield { type: 'response.delta', delta: image }
})

verifies('acp-uamp.submit', 'content in parts was refused, and media of an answer were lost', async () => {
  const { url } = await startServer(mirror)
  const submit = (content: unknown, headers = {}) =>
    post(url, { id: 1, method: 'prompt/submit', params: { messages: [{ role: 'user', content }] } }, headers)
  const link = { type: 'resource_link', uri: 'file:///a.ts', name: 'a.ts' }
  const content = [{ type: 'text', text: 'look' }, link, IMAGE]
  expect(((await (await submit(content)).json()) as Heard)['result']).toEqual({
    status: 'complete',
    content: 'look,[a.ts](file:///a.ts),image',
    parts: [IMAGE],
  })
  const streamed = await (await submit([IMAGE], { accept: 'text/event-stream' })).text()
  expect(streamed).toContain(`"params":{"content":"","role":"assistant","parts":[${JSON.stringify(IMAGE)}]}`)
  for (const wrong of [[{ type: 'image', data: '!', mimeType: 'image/png' }], [{ type: 'smell' }], 5]) {
    const { error } = (await (await submit(wrong)).json()) as Heard
    expect(error).toMatchObject({ code: -32602, data: { field: expect.stringContaining('messages.0.content') as string } })
  }
})

verifies('acp-uamp.submit', 'as server-sent events', async () => {
  const { url } = await startServer(demo())
  const response = await post(url, { id: 'r-2', method: 'prompt/submit', params: HELLO }, { accept: 'text/event-stream' })
  expect(response.headers.get('content-type')).toContain('text/event-stream')
  const told = [...(await response.text()).matchAll(/^data: (.*)$/gm)].map(([, data]) => JSON.parse(data as string) as Heard)
  expect(told).toEqual([
    { jsonrpc: '2.0', method: 'prompt/started', params: { requestId: 'r-2' } },
    ...['You', ' said:', ' Hello'].map((content) => ({
      jsonrpc: '2.0',
      method: 'prompt/progress',
      params: { content, role: 'assistant' },
    })),
    { jsonrpc: '2.0', id: 'r-2', result: { status: 'complete', content: 'You said: Hello' } },
  ])
})

verifies(['acp-uamp.submit', 'acp-uamp.initialize'], 'over WebSocket, at both paths, and none of it to clients of ACP itself', async () => {
  const { url } = await startServer(demo())
  for (const path of ['/acp', '/acp/stream', '/agents/demo/acp/stream']) {
    const client = await Client.connect(overSocket(url, { path }))
    await client.ask('initialize')
    const { result } = await client.ask('prompt/submit', HELLO)
    expect(result).toEqual({ status: 'complete', content: 'You said: Hello' })
    expect(client.heard.filter(({ method }) => method !== undefined).map(({ method }) => method as string)).toEqual([
      'prompt/started',
      'prompt/progress',
      'prompt/progress',
      'prompt/progress',
    ])
  }
  const official = await Client.connect(overStdio([demo()]))
  await official.initialize()
  expect((await official.ask('prompt/submit', HELLO))['result']).toEqual({ status: 'complete', content: 'You said: Hello' })
  expect((await official.ask('tools/list'))['result'].tools).toHaveLength(3)
  expect(official.heard.filter(({ method }) => method !== undefined)).toEqual([])
})

verifies('acp-uamp.submit', 'who leaves stops the agent', async () => {
  const { agent, stopped } = endless()
  const { url } = await startServer(agent)
  const client = await Client.connect(overSocket(url, { path: '/acp/stream' }))
  client.begin('prompt/submit', HELLO)
  await client.next(({ method }) => method === 'prompt/progress')
  client.close()
  await stopped
})

test('many prompts at once on one connection are no leak of listeners', async () => {
  const warnings: Error[] = []
  const warned = (warning: Error) => warnings.push(warning)
  process.on('warning', warned)
  onTestFinished(() => void process.off('warning', warned))
  const { url } = await startServer(demo())
  const client = await Client.connect(overSocket(url, { path: '/acp/stream' }))
  const answers = await Promise.all(Array.from({ length: 30 }, () => client.ask('prompt/submit', HELLO)))
  for (const { result } of answers) expect(result).toEqual({ status: 'complete', content: 'You said: Hello' })
  expect(warnings).toEqual([])
})

verifies('acp-uamp.submit', 'who leaves a stream of server-sent events stops the agent too', async () => {
  const { agent, stopped } = endless()
  const { url } = await startServer(agent)
  const response = await post(url, { id: 1, method: 'prompt/submit', params: HELLO }, { accept: 'text/event-stream' })
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
  let heard = ''
  while (!heard.includes('prompt/progress')) heard += (await reader?.read())?.value ?? ''
  await reader?.cancel()
  await stopped
})

verifies('acp-uamp.tools', 'a tool is called directly only if it says that it may be', async () => {
  const { tool, runs } = careful()
  const agent = caller([{ ...tool, needsApproval: false }])
  const { url } = await startServer(agent)
  const message = { id: 1, method: 'tools/call', params: { name: 'delete_all' } }
  const told = { code: -32003, message: '"delete_all" cannot be called directly: ask the agent to use it' }
  expect(((await (await post(url, message)).json()) as Heard)['error']).toMatchObject(told)
  const socket = await Client.connect(overSocket(url))
  await socket.initialize()
  expect((await socket.ask('tools/call', { name: 'delete_all' }))['error']).toMatchObject(told)
  const stdio = await Client.connect(overStdio([agent]))
  expect((await stdio.ask('tools/call', { name: 'delete_all' }))['error']).toMatchObject(told)
  expect(runs()).toBe(0)
})

verifies('acp-uamp.tools', 'a tool that must be allowed is not run beside a conversation', async () => {
  const { tool, runs } = careful()
  const { url } = await startServer(caller([{ ...tool, direct: true }]))
  const answer = (await (await post(url, { id: 1, method: 'tools/call', params: { name: 'delete_all' } })).json()) as Heard
  expect(answer['result'].isError).toBe(true)
  expect(runs()).toBe(0)
})

test('a tool that is called directly tells no secret of the server when it fails', async () => {
  const secret = 'a-secret-of-the-server-itself'
  const { tool } = careful()
  const failing = {
    ...tool,
    needsApproval: false,
    direct: true,
    run: () => Promise.reject(new UampError('provider_error', `No: ${secret}`)),
  }
  const { url } = await startServer(caller([failing]), { tokens: { someone: secret }, allowAnonymous: true })
  const answer = (await (await post(url, { id: 1, method: 'tools/call', params: { name: 'delete_all' } })).json()) as Heard
  expect(answer['result']).toMatchObject({ isError: true, content: [{ text: expect.stringContaining('No: [redacted]') }] })
})

verifies('acp-uamp.payment-asked', 'a prompt that must be paid for, and the same one with a token', async () => {
  const server = await startServer(paid)
  const client = await Client.connect(overSocket(server.url))
  await client.initialize()
  const session = await client.open()
  const accepts = [{ scheme: 'token', amount: '0.01', currency: 'USD' }]
  expect((await client.say(session, 'one'))['error']).toMatchObject({ code: -32402, data: { accepts } })
  expect((await client.say(session, 'one', { payment_token: await coin(server, '0.01') }))['result']).toMatchObject({
    stopReason: 'end_turn',
  })
  // It went on where it was: the question was put once.
  expect(client.text).toBe('paid with a token for one, message 1')
  expect((await client.say(session, 'two', { _meta: { 'uamp/payment_token': await coin(server, '0.01') } }))['result']).toMatchObject({
    stopReason: 'end_turn',
  })
  expect(client.text).toContain('paid with a token for two')
  expect((await client.say(session, 'three'))['error'].code).toBe(-32402)
  expect((await client.say(session, 'four', { payment_token: await coin(server, '0.01') }))['result']).toMatchObject({
    stopReason: 'end_turn',
  })
  expect(client.text).toContain('paid with a token for four')
})

verifies(
  'acp-uamp.payment-asked',
  'of two prompts at once that take the place of an unpaid one, one is asked and one is refused',
  async () => {
    const server = await startServer(paid)
    const client = await Client.connect(overSocket(server.url))
    await client.initialize()
    const session = await client.open()
    expect((await client.say(session, 'one'))['error'].code).toBe(-32402)
    const both = await Promise.all([client.say(session, 'two'), client.say(session, 'three')])
    expect(both.map(({ error }) => error.code as number)).toEqual([-32402, -32600])
    expect((await client.say(session, 'two', { payment_token: await coin(server, '0.01') }))['result']).toMatchObject({
      stopReason: 'end_turn',
    })
    expect(client.text).toContain('paid with a token for two')
  },
)

describe.each([
  ['load', 'WebSocket', overSocket],
  ['resume', 'WebSocket', overSocket],
  ['load', 'HTTP', overHttp],
] as const)('session/%s over %s', (method, _, connect) => {
  const back = async (url: string, sessionId: string): Promise<Client> => {
    const client = await Client.connect(connect(url))
    await client.initialize()
    expect((await client.ask(`session/${method}`, { sessionId, cwd: '/project', mcpServers: [] }))['error']).toBeUndefined()
    return client
  }

  verifies('acp-uamp.payment-asked', 'a prompt that waits for money is paid from the next connection', async () => {
    const server = await startServer(paid)
    const lost = await Client.connect(connect(server.url))
    await lost.initialize()
    const session = await lost.open()
    expect((await lost.say(session, 'one'))['error'].code).toBe(-32402)
    lost.close()
    const poor = await back(server.url, session)
    const refused = await poor.say(session, 'one', { payment_token: await coin(server, '0.001') })
    expect(refused['error']).toMatchObject({ code: -32402, data: { accepts: [{ amount: '0.01' }] } })
    poor.close()
    const client = await back(server.url, session)
    const token = await coin(server, '0.01')
    expect((await client.say(session, 'one', { payment_token: token }))['result']).toMatchObject({ stopReason: 'end_turn' })
    expect(client.text).toContain('paid with a token for one, message 1')
    expect(await left(server, token)).toBe('0.00')
  })

  verifies('acp-uamp.payment-asked', 'another prompt takes the place of one that waits for money', async () => {
    const server = await startServer(paid)
    const lost = await Client.connect(connect(server.url))
    await lost.initialize()
    const session = await lost.open()
    expect((await lost.say(session, 'one'))['error'].code).toBe(-32402)
    lost.close()
    const client = await back(server.url, session)
    const token = await coin(server, '0.01')
    expect((await client.say(session, 'two', { payment_token: token }))['result']).toMatchObject({ stopReason: 'end_turn' })
    expect(client.text).toContain('paid with a token for two')
    await settled(server, [token])
  })
})

verifies('acp-uamp.payment-asked', 'the older methods are paid for too', async () => {
  const server = await startServer(paid)
  const { url } = server
  const ask = async (params: object, headers = {}): Promise<Heard> =>
    (await (await post(url, { id: 1, method: 'prompt/submit', params: { ...HELLO, ...params } }, headers)).json()) as Heard
  expect((await ask({}))['error']).toMatchObject({ code: -32402, data: { accepts: [{ amount: '0.01' }] } })
  expect((await ask({ payment_token: await coin(server, '0.01') }))['result'].content).toContain('paid with a token')
  expect((await ask({}, { 'x-payment': await coin(server, '0.01') }))['result'].content).toContain('paid with a token')
})
