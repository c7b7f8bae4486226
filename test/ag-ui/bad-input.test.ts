import { expect } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'
import { post, refusal, run, user } from './wire.ts'

const good = { threadId: 't', runId: 'r', messages: [user('u1', 'Hello')] }
const call = { id: 'a1', role: 'assistant', toolCalls: [{ id: 'c1', type: 'function', function: { name: 'x', arguments: '{}' } }] }

const BAD: readonly [name: string, body: unknown, status: number, says: string][] = [
  ['no JSON', '{"threadId":', 400, 'not JSON'],
  ['a list', [], 400, 'must be'],
  ['no thread', { ...good, threadId: undefined }, 400, '"threadId"'],
  ['an empty thread', { ...good, threadId: '' }, 400, '"threadId"'],
  ['no run', { ...good, runId: undefined }, 400, '"runId"'],
  ['a number as run', { ...good, runId: 7 }, 400, '"runId"'],
  ['no messages', { ...good, messages: undefined }, 400, '"messages"'],
  ['a message without an id', { ...good, messages: [{ role: 'user', content: 'x' }] }, 400, '"messages[0].id"'],
  ['a role that nobody has', { ...good, messages: [{ id: '1', role: 'robot', content: 'x' }] }, 400, '"messages[0].role"'],
  ['a message without content', { ...good, messages: [{ id: '1', role: 'user' }] }, 400, '"messages[0].content"'],
  ['an unknown part', { ...good, messages: [user('1', [{ type: 'smell', source: {} }])] }, 400, 'messages[0].content'],
  ['a part without data', { ...good, messages: [user('1', [{ type: 'binary', mimeType: 'image/png' }])] }, 400, 'messages[0].content[0]'],
  [
    'a file of elsewhere',
    { ...good, messages: [user('1', [{ type: 'image', source: { type: 'file', value: 'file-1', provider: 'openai' } }])] },
    400,
    'messages[0].content[0]',
  ],
  ['a result for no call', { ...good, messages: [user('1'), { id: '2', role: 'tool', toolCallId: 'c9', content: 'x' }] }, 400, '"c9"'],
  ['a version to come', { ...good, protocolVersion: '2.0' }, 400, '"1.0"'],
  ['a version of nothing', { ...good, protocolVersion: 'latest' }, 400, '"1.0"'],
  ['a bad name of a tool', { ...good, tools: [{ name: 'no spaces', description: '' }] }, 400, '"tools[0].name"'],
  ['a bad decision', { ...good, resume: [{ interruptId: 'x', status: 'maybe' }] }, 400, 'resume'],
  ['a bad detach', { ...good, forwardedProps: { uamp: { detach: 'yes' } } }, 400, '"forwardedProps.uamp.detach"'],
  ['too deep', { ...good, state: JSON.parse('['.repeat(80) + ']'.repeat(80)) as unknown }, 400, 'levels'],
]

for (const [name, body, status, says] of BAD) {
  verifies(['ag-ui.input', 'ag-ui.version'], `${name} is refused, and nothing else is touched`, async () => {
    const { url, logged } = await startServer(demo())
    const response = await fetch(`${url}/ag-ui`, { method: 'POST', body: typeof body === 'string' ? body : JSON.stringify(body) })
    expect(await refusal(response)).toMatchObject({ status, message: expect.stringContaining(says) })
    expect(logged.filter(({ level }) => level === 'error')).toEqual([])
    expect((await run(url, [user('u1', 'Hello')], { input: { threadId: 't', runId: 'r' } })).said).toBe('You said: Hello')
  })
}

verifies('ag-ui.input', 'null is the same as nothing', async () => {
  const { url } = await startServer(demo())
  const nothing = { parentRunId: null, state: null, tools: null, context: null, forwardedProps: null, resume: null, protocolVersion: null }
  const messages = [
    { ...user('u1', '/history'), name: null },
    { ...call, content: null },
    { id: 't', role: 'tool', toolCallId: 'c1', content: 'y', error: null },
  ]
  const { said } = await run(url, messages, { input: nothing })
  expect(said.split('\n')).toEqual(['user: /history', 'assistant: [call x {}]', 'tool: y'])
})

verifies('ag-ui.input', 'a run that says nothing is a run', async () => {
  const { url } = await startServer(demo())
  expect((await run(url, [])).types).toContain('RUN_FINISHED')
})

verifies('ag-ui.version', 'the refusal of a version names those that are spoken', async () => {
  const { url } = await startServer(demo())
  const { code, details } = await refusal(await post(url, 'x', { input: { protocolVersion: '3' } }))
  expect({ code, details }).toEqual({ code: 'version_mismatch', details: { client_version: '3', supported_versions: ['1.0', '0.0'] } })
  for (const protocolVersion of ['1', '1.0', '1.7', '0.0.59']) {
    expect((await run(url, 'Hello', { input: { protocolVersion } })).said).toBe('You said: Hello')
  }
})
