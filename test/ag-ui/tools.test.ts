import { expect } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'
import { twice } from './agents.ts'
import { messagesOf, post, refusal, run, user } from './wire.ts'

const tools = [{ name: 'pick', description: 'Picks one', parameters: { type: 'object', properties: {} } }]
const tool = (id: string, toolCallId: string, content: unknown, more: object = {}) => ({ id, role: 'tool', toolCallId, content, ...more })

verifies(['ag-ui.client-tools', 'ag-ui.order'], 'a call of the page ends the run, and the next one brings the result', async () => {
  const { url } = await startServer(demo())
  const first = user('u1', '/tool pick {"from":2}')
  const { events, end, types } = await run(url, [first], { input: { threadId: 't', tools } })
  expect(types.slice(1)).toEqual(['TOOL_CALL_START', 'TOOL_CALL_ARGS', 'TOOL_CALL_END', 'RUN_FINISHED'])
  const [call] = messagesOf(events) as [{ toolCalls: { id: string }[] }]
  const id = call.toolCalls[0]?.id as string
  expect(end).toMatchObject({ outcome: { type: 'success', pendingToolCallIds: [id] } })
  const next = await run(url, [first, call, tool('t1', id, 'the second')], { input: { threadId: 't', tools } })
  expect(next.said).toBe('pick answered: the second')
  expect(next.types).not.toContain('TOOL_CALL_RESULT')
  const third = await run(url, [first, call, tool('t1', id, 'the second'), ...messagesOf(next.events), user('u2', '/history')], {
    input: { threadId: 't', tools },
  })
  expect(third.said.split('\n')).toEqual([
    'user: /tool pick {"from":2}',
    'assistant: [call pick {"from":2}]',
    'tool: the second',
    'assistant: pick answered: the second',
    'user: /history',
  ])
})

verifies('ag-ui.profile', 'pages of 0.0.x took a run with an open call for the end of the turn, and never ran it', async () => {
  const { url } = await startServer(demo())
  const input = { tools, protocolVersion: undefined }
  expect((await run(url, '/tool pick', { input })).end).not.toHaveProperty('outcome')
  expect((await run(url, '/tool add {"a":1,"b":2}', { input })).end['outcome']).toEqual({ type: 'success' })
})

verifies('ag-ui.client-tools', 'several calls are answered at once, also with media and failures', async () => {
  const { url } = await startServer(twice)
  const input = { threadId: 't', tools }
  const { events, end } = await run(url, [user('u1')], { input })
  expect(end['outcome'].pendingToolCallIds).toEqual(['call-a', 'call-b'])
  const before = [user('u1'), ...messagesOf(events)]
  const missing = await post(url, [...before, tool('t1', 'call-a', 'one')], { input })
  expect(await refusal(missing)).toMatchObject({ status: 400, message: expect.stringContaining('call-b') })
  const parts = [
    { type: 'text', text: 'two' },
    { type: 'image', source: { type: 'data', value: 'aGk=', mimeType: 'image/png' } },
  ]
  const results = [tool('t1', 'call-a', parts), tool('t2', 'call-b', '', { error: 'nobody there' })]
  expect((await run(url, [...before, ...results], { input })).said).toBe('two, nobody there!')
})

verifies('ag-ui.client-tools', 'whoever says something else instead is answered', async () => {
  const { url } = await startServer(demo())
  const first = user('u1', '/tool pick')
  const { events } = await run(url, [first], { input: { threadId: 't', tools } })
  const { said } = await run(url, [first, ...messagesOf(events), user('u2', 'never mind')], { input: { threadId: 't', tools } })
  expect(said).toBe('You said: never mind')
})

verifies('ag-ui.client-tools', 'a result and something more in one run', async () => {
  const { url } = await startServer(demo())
  const first = user('u1', '/tool pick')
  const { events } = await run(url, [first], { input: { threadId: 't', tools } })
  const [call] = messagesOf(events) as [{ toolCalls: { id: string }[] }]
  const more = [first, call, tool('t1', call.toolCalls[0]?.id as string, 'this'), user('u2', '/history')]
  const { said } = await run(url, more, { input: { threadId: 't', tools } })
  expect(said.split('\n')).toEqual(['user: /tool pick', 'assistant: [call pick {}]', 'tool: this', 'user: /history'])
})

verifies('ag-ui.client-tools', 'a result and something more, without what is there already', async () => {
  const { url } = await startServer(demo())
  const { events } = await run(url, [user('u1', '/tool pick')], { input: { threadId: 't', tools } })
  const [call] = messagesOf(events) as [{ toolCalls: { id: string }[] }]
  const more = [tool('t1', call.toolCalls[0]?.id as string, 'this'), user('u2', '/history')]
  const { said } = await run(url, more, { input: { threadId: 't', tools } })
  expect(said.split('\n')).toEqual(['user: /tool pick', 'assistant: [call pick {}]', 'tool: this', 'user: /history'])
})

verifies('ag-ui.client-tools', 'what a page changed while a tool of it ran counts with the result', async () => {
  const { url } = await startServer(demo())
  const first = await run(url, [user('u0', 'one')], { input: { threadId: 't', tools } })
  const said = messagesOf(first.events)
  const { events } = await run(url, [user('u0', 'one'), ...said, user('u1', '/tool pick')], { input: { threadId: 't', tools } })
  const [call] = messagesOf(events) as [{ toolCalls: { id: string }[] }]
  const changed = [user('u0', 'edited'), ...said, user('u1', '/tool pick'), call, tool('t1', call.toolCalls[0]?.id as string, 'this')]
  const answered = await run(url, changed, { input: { threadId: 't', tools } })
  expect(answered.said).toBe('pick answered: this')
  const all = [...changed, ...messagesOf(answered.events), user('u2', '/history')]
  expect((await run(url, all, { input: { threadId: 't', tools } })).said.split('\n')[0]).toBe('user: edited')
})

verifies('ag-ui.client-tools', 'of two results of a call the later one counts', async () => {
  const { url } = await startServer(demo())
  const calls = [{ id: 'c1', type: 'function', function: { name: 'remove', arguments: '{}' } }]
  const list = [
    user('u1', 'x'),
    { id: 'a1', role: 'assistant', toolCalls: calls },
    tool('t1', 'c1', '{"approved":true}'),
    tool('t2', 'c1', 'REMOVED'),
  ]
  expect((await run(url, [...list, user('u2', '/history')])).said.split('\n')).toEqual([
    'user: x',
    'assistant: [call remove {}]',
    'tool: REMOVED',
    'user: /history',
  ])
})
