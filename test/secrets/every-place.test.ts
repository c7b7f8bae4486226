import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { startChild } from '../support/child.ts'
import { overSse, overWebSocket, type Connect } from '../support/wire.ts'
import { folder, found, idIn, rpc, secret } from './at-rest.ts'
import { post, talk } from './raw.ts'

const SERVER = fileURLToPath(new URL('server.js', import.meta.url))

/** A new mark for this place. */
type Mark = (place: string) => string

/** What somebody may pay with, under every name and in every depth. */
const slot = (mark: Mark, place: string) => ({
  payment_token: mark(`${place}token`),
  'x402.payment.payload': { x402Version: 1, scheme: 'exact', payload: { signature: mark(`${place}x402`) } },
  app: [{ deep: { ap2_credential: { vc: mark(`${place}ap2`) } }, payment: { scheme: 'token', token: mark(`${place}payment`) } }],
})

const capabilities = (mark: Mark, place: string) => ({
  id: 'test',
  provider: 'test',
  modalities: ['text'],
  extensions: { ...slot(mark, place), uamp: { ack: true, events: true } },
})

/** The result of a tool, and one in it. */
const result = (mark: Mark, place: string, inside: readonly object[] = []) => ({
  type: 'tool_result',
  tool_result: { call_id: 'x', result: '1', data: slot(mark, place), content_items: inside },
})

function conversation(mark: Mark, place: string) {
  const items = [result(mark, place, [result(mark, `${place}inside`)])]
  return [
    { role: 'user', content: 'earlier' },
    { role: 'tool', tool_call_id: 'x', content: 'a', content_items: items },
  ]
}

async function overEvents(connect: Connect, url: string, mark: Mark): Promise<void> {
  const wire = await connect(url)
  const slots = (place: string) => ({ extensions: slot(mark, `${place}ext`), metadata: slot(mark, `${place}meta`) })
  const session_id = await wire.open({
    payment_token: mark('create'),
    session: { modalities: ['text'], extensions: slot(mark, 'config') },
    client_capabilities: capabilities(mark, 'capabilities'),
    ...slots('create'),
  })
  const send = async (event: object): Promise<void> => expect(await wire.send({ session_id, ...event })).toBeUndefined()
  await send({ type: 'session.update', session: { extensions: slot(mark, 'update') }, payment_token: mark('update'), ...slots('update') })
  await send({ type: 'client.capabilities', capabilities: capabilities(mark, 'later'), ...slots('later') })
  const context = slot(mark, 'context')
  await send({ type: 'input.text', text: 'a tool', messages: conversation(mark, 'messages'), context, ...slots('text') })
  await send({ type: 'response.create', response: { extensions: slot(mark, 'response') }, ...slots('response') })
  await wire.next('tool.call')
  await send({ type: 'tool.result', call_id: 'call_1', result: '1', content_items: [result(mark, 'resultinside')], ...slots('result') })
  await wire.next('response.done')
  await send({ type: 'input.text', text: 'fail', messages: conversation(mark, 'failing'), ...slots('failing') })
  await send({ type: 'response.create' })
  await wire.next('response.error')
  // Nobody asks for a response to these.
  await send({ type: 'input.text', text: 'later', messages: conversation(mark, 'pending') })
  await send({ type: 'input.text', text: 'later', payment_token: mark('pending'), ...slots('pending') })
}

const message = (mark: Mark, { place, text, data }: { place: string; text: object; data: object }) => ({
  messageId: crypto.randomUUID(),
  metadata: slot(mark, `${place}message`),
  parts: [
    { ...text, metadata: slot(mark, `${place}part`) },
    { ...data, metadata: slot(mark, `${place}datapart`) },
  ],
})

const SUBMIT = (mark: Mark, place: string) => ({
  type: 'payment.submit',
  payment: { scheme: 'token', token: mark(`${place}submit`) },
})

const ways: Readonly<Record<string, (url: string, mark: Mark) => Promise<unknown>>> = {
  'events, WebSocket': (url, mark) => overEvents(overWebSocket, url, mark),
  'events, HTTP': (url, mark) => overEvents(overSse, url, mark),
  'A2A 1.0': async (url, mark) => {
    const parts = { text: { text: 'hi' }, data: { data: SUBMIT(mark, 'one') } }
    const one = { role: 'ROLE_USER', ...message(mark, { place: 'one', ...parts }) }
    const first = await post(`${url}/a2a`, rpc('SendMessage', { message: one, metadata: slot(mark, 'onerequest') }), {
      'a2a-version': '1.0',
    })
    const taskId = idIn(first, /"task":\{"id":"([^"]+)"/)
    expect(await post(`${url}/a2a`, rpc('GetTask', { id: taskId, historyLength: 10 }), { 'a2a-version': '1.0' })).toContain('uamp-digest')
  },
  'A2A 0.3': async (url, mark) => {
    const parts = { text: { kind: 'text', text: 'hi' }, data: { kind: 'data', data: SUBMIT(mark, 'three') } }
    const three = { kind: 'message', role: 'user', ...message(mark, { place: 'three', ...parts }) }
    expect(await post(`${url}/a2a`, rpc('message/send', { message: three, metadata: slot(mark, 'threerequest') }))).toContain('"result"')
    const rest = {
      role: 'ROLE_USER',
      ...message(mark, { place: 'rest', text: { text: 'hi' }, data: { data: { data: SUBMIT(mark, 'rest') } } }),
    }
    const { parts: content, ...others } = rest
    await post(`${url}/a2a/rest/v1/message:send`, { message: { ...others, content }, metadata: slot(mark, 'restrequest') })
  },
  'A2A 0.1 and /tasks': async (url, mark) => {
    const parts = { text: { type: 'text', text: 'hi' }, data: { type: 'data', data: SUBMIT(mark, 'old') } }
    const { messageId: _, ...old } = { role: 'user', ...message(mark, { place: 'old', ...parts }) }
    await post(`${url}/a2a`, rpc('tasks/send', { id: crypto.randomUUID(), message: old, metadata: slot(mark, 'oldrequest') }))
    const { messageId: __, ...plain } = { role: 'user', ...message(mark, { place: 'plain', ...parts }) }
    await post(`${url}/tasks`, { message: plain, metadata: slot(mark, 'plainrequest') })
  },
  'AG-UI': async (url, mark) => {
    const messages = [{ id: 'm', role: 'user', content: 'fail' }]
    const run = { threadId: 't', runId: 'r', tools: [], context: [], messages }
    const forwardedProps = { ...slot(mark, 'props'), uamp: { payment_token: mark('uamp') } }
    await post(`${url}/ag-ui`, { ...run, state: slot(mark, 'state'), forwardedProps }, { 'x-payment': mark('header') })
  },
  ACP: async (url, mark) => {
    const _meta = slot(mark, 'meta')
    const prompt = [{ type: 'text', text: 'fail', _meta: slot(mark, 'block') }]
    const begin = { protocolVersion: 1, clientCapabilities: { _meta: slot(mark, 'capabilities') }, _meta: slot(mark, 'initialize') }
    await talk(
      `${url}/acp`,
      [
        { jsonrpc: '2.0', id: 1, method: 'initialize', params: begin },
        { jsonrpc: '2.0', id: 2, method: 'session/new', params: { cwd: '/', mcpServers: [], _meta: slot(mark, 'new') } },
        (heard) => {
          const { id, result: made } = JSON.parse(heard) as { id?: number; result?: { sessionId: string } }
          const params = { sessionId: made?.sessionId, prompt, payment_token: mark('prompt'), _meta }
          return id === 2 ? { jsonrpc: '2.0', id: 3, method: 'session/prompt', params } : undefined
        },
      ],
      /"id":3\b/,
    )
  },
  Omnia: (url, mark) =>
    talk(`${url}/omnia?agent=bot`, [{ type: 'message', content: 'fail', metadata: slot(mark, 'metadata') }], /"type":"(done|error)"/),
  Responses: (url, mark) =>
    post(
      `${url}/v1/responses`,
      { input: 'fail', store: true, metadata: { payment_token: mark('metadata') }, other: slot(mark, 'other') },
      { 'payment-signature': mark('header') },
    ),
  Completions: (url, mark) =>
    post(
      `${url}/v1/chat/completions`,
      {
        messages: [{ role: 'user', content: 'fail' }],
        store: true,
        metadata: { payment_token: mark('metadata') },
        other: slot(mark, 'other'),
      },
      { 'x-payment-token': mark('header') },
    ),
}

test.each(Object.entries(ways))('a server that is killed leaves no payment in its folder, nor in its log: %s', async (name, pay) => {
  const data = folder()
  const server = await startChild(data, { program: [SERVER, data] })
  let log = ''
  server.process.stderr?.on('data', (chunk: Buffer) => (log += chunk.toString()))
  const marks: string[] = []
  const mark = (place: string): string => {
    marks.push(secret(name.replaceAll(/\W/g, '') + place))
    return marks.at(-1) as string
  }
  await pay(server.url, mark)
  await server.kill()
  expect(marks.length).toBeGreaterThan(2)
  expect(found(data, marks)).toEqual([])
  expect(marks.filter((each) => log.includes(each))).toEqual([])
})
