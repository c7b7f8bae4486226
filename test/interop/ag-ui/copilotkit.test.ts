import { HttpAgent } from 'ag-ui-059'
import { beforeAll, expect, test, vi } from 'vitest'
import { demo } from '../../../src/agents/demo/index.ts'
import { sseParser } from '../../../src/wire/sse-parse.ts'
import { startServer } from '../../support/server.ts'
import type { Heard } from './clients.ts'

const BASE = '/api/copilotkit'

beforeAll(() => {
  vi.stubEnv('COPILOTKIT_TELEMETRY_DISABLED', 'true')
  vi.stubEnv('DO_NOT_TRACK', '1')
})

/** A CopilotKit runtime in this process, in front of our server. */
async function copilotKit(url: string) {
  const { CopilotRuntime, createCopilotEndpoint } = await import('@copilotkit/runtime/v2')
  const agent = new HttpAgent({ url: `${url}/ag-ui` })
  const runtime = new CopilotRuntime({ agents: { default: agent as never } })
  const app = createCopilotEndpoint({ runtime, basePath: BASE })
  return async (method: 'run' | 'connect', body: object, headers: Record<string, string> = {}) => {
    const input = { state: {}, tools: [], context: [], forwardedProps: {}, messages: [], ...body }
    const response = await app.request(`${BASE}/agent/default/${method}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(input),
    })
    expect(response.status).toBe(200)
    return sseParser()(await response.text()).map(({ data }) => JSON.parse(data) as Heard)
  }
}

const user = (id: string, content: string) => ({ id, role: 'user', content })
const said = (events: readonly Heard[]) => events.map(({ delta }) => (typeof delta === 'string' ? delta : '')).join('')

test('a CopilotKit runtime runs every kind of answer', async () => {
  const { url } = await startServer(demo())
  const call = await copilotKit(url)
  const shown: [said: string, end: string, shows: string][] = [
    ['Hello', 'RUN_FINISHED', 'TEXT_MESSAGE_CONTENT'],
    ['/think cats', 'RUN_FINISHED', 'REASONING_MESSAGE_CONTENT'],
    ['/tool add {"a":1,"b":2}', 'RUN_FINISHED', 'TOOL_CALL_RESULT'],
    ['/state', 'RUN_FINISHED', 'STATE_DELTA'],
    ['/progress 2', 'RUN_FINISHED', 'ACTIVITY_SNAPSHOT'],
    ['/image', 'RUN_FINISHED', 'ACTIVITY_SNAPSHOT'],
    ['/error teapot', 'RUN_ERROR', 'RUN_ERROR'],
  ]
  for (const [text, end, shows] of shown) {
    const id = crypto.randomUUID()
    const events = await call('run', { threadId: id, runId: id, messages: [user('u1', text)] })
    expect(events[0]?.type, text).toBe('RUN_STARTED')
    expect(events.at(-1)?.type, text).toBe(end)
    expect(
      events.map(({ type }) => type),
      text,
    ).toContain(shows)
  }
})

test('a CopilotKit page goes on with a tool of its own, resumes an interrupt, and finds its thread again', async () => {
  const { url } = await startServer(demo())
  const call = await copilotKit(url)
  const tools = [{ name: 'color', description: 'Changes the colour', parameters: { type: 'object', properties: {} } }]
  const threadId = crypto.randomUUID()
  const first = user('u1', '/tool color {"to":"red"}')
  const events = await call('run', { threadId, runId: 'r1', messages: [first], tools })
  const { toolCallId, parentMessageId: id } = events.find(({ type }) => type === 'TOOL_CALL_START') as Heard
  const toolCalls = [{ id: toolCallId, type: 'function', function: { name: 'color', arguments: '{"to":"red"}' } }]
  const messages = [first, { id, role: 'assistant', toolCalls }, { id: 't1', role: 'tool', toolCallId, content: 'red' }]
  expect(said(await call('run', { threadId, runId: 'r2', messages, tools }))).toBe('color answered: red')

  const other = crypto.randomUUID()
  const asked = await call('run', { threadId: other, runId: 'r3', messages: [user('u2', '/approve it')] })
  const { interrupts } = asked.at(-1)?.['outcome'] as { interrupts: { id: string }[] }
  const resume = [{ interruptId: interrupts[0]?.id, status: 'resolved', payload: { approved: true } }]
  expect(said(await call('run', { threadId: other, runId: 'r4', messages: [user('u2', '/approve it')], resume }))).toBe('Approved: it')

  const again = await call('connect', { threadId, runId: 'r5' })
  expect(said(again.filter(({ type }) => type === 'TEXT_MESSAGE_CONTENT'))).toBe('color answered: red')
})

test('a CopilotKit runtime hands on who calls', async () => {
  const { url } = await startServer(demo(), { tokens: { page: 'secret-0123456789abcdef' } })
  const call = await copilotKit(url)
  const events = await call(
    'run',
    { threadId: 't', runId: 'r', messages: [user('u1', 'Hello')] },
    { authorization: 'Bearer secret-0123456789abcdef' },
  )
  expect(said(events)).toBe('You said: Hello')
})
