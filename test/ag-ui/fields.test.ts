import { expect, test } from 'vitest'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { done } from '../../src/core/agent-kit/done.ts'
import { text } from '../../src/core/agent-kit/drafts.ts'
import { demo } from '../../src/agents/demo/index.ts'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'
import { joins, messagesOf, post, replay, run, user } from './wire.ts'

verifies('ag-ui.timestamp', 'events have the time at which they were written, and a replay invents none', async () => {
  const { url } = await startServer(demo())
  const before = Date.now()
  const { times, types, ids } = await run(url, '/think of it', { input: { runId: 'r' } })
  expect(types).toContain('TEXT_MESSAGE_CONTENT')
  expect(times).toHaveLength(ids.length)
  for (const [index, time] of times.entries()) {
    expect(Number.isInteger(time)).toBe(true)
    expect(time).toBeGreaterThanOrEqual(times[index - 1] ?? before)
    expect(time).toBeLessThanOrEqual(Date.now())
  }
  expect(new Set((await replay(url, 'r')).times)).toEqual(new Set([undefined]))
})

verifies('ag-ui.run-input', 'who asks for it is told what it sent, also in a replay, and never its payment', async () => {
  const { url } = await startServer(demo())
  const forwardedProps = { mine: 1, uamp: { input: true, payment_token: 'coin-0123456789' } }
  const messages = [user('u1', 'Hello')]
  const sent = { threadId: 't', runId: 'r', protocolVersion: '1.0', state: { a: 1 }, tools: [], context: [] }
  const told = await run(url, messages, { input: { ...sent, forwardedProps } })
  expect(told.events[0]?.['input']).toEqual({ ...sent, messages, forwardedProps: { mine: 1, uamp: { input: true } } })
  expect((await replay(url, 'r')).text).toBe(told.text)
  expect((await run(url, 'Hello')).events[0]).not.toHaveProperty('input')
  const large = await run(url, 'x'.repeat(300_000), { input: { forwardedProps } })
  expect(large.events[0]).not.toHaveProperty('input')
})

verifies('ag-ui.result', 'the result of a run', async () => {
  const agent = defineAgent('gives', async function* () {
    yield text('See the result.')
    yield done({ extensions: { 'ag-ui': { result: { total: 3 } } } })
  })
  const { url } = await startServer(agent)
  expect((await run(url, 'go')).end).toMatchObject({ type: 'RUN_FINISHED', result: { total: 3 } })
})

/** Encrypts why it said and called something, and then says what it has of that. */
const secretive = defineAgent('secretive', async function* (turn) {
  if (turn.messages.at(-1)?.content === 'show') {
    const items = turn.messages.flatMap(({ content_items = [] }) => content_items)
    const values = items.map((item) =>
      item.type === 'tool_call' ? item.tool_call.encrypted_value : item.type === 'text' ? item.encrypted_value : undefined,
    )
    const calls = turn.messages.flatMap(({ tool_calls = [] }) => tool_calls.map(({ encrypted_value }) => encrypted_value))
    return yield text(JSON.stringify([values.filter(Boolean), calls]))
  }
  yield text('Wait.')
  yield { type: 'x.reasoning.encrypted', value: 'why I said it' }
  yield { type: 'response.delta', delta: { type: 'tool_call', tool_call: { id: 'c1', name: 'look', arguments: '{}' } } }
  yield { type: 'x.reasoning.encrypted', value: 'why I looked', entity_id: 'c1', subtype: 'tool-call' }
  yield { type: 'response.delta', delta: { type: 'tool_result', tool_result: { call_id: 'c1', result: 'seen' } } }
})

const KNOWN = JSON.stringify([['why I said it', 'why I looked'], ['why I looked']])

verifies('ag-ui.encrypted', 'encrypted values of a message and of a call are told, kept, and told to whoever joins', async () => {
  const { url } = await startServer(secretive)
  const input = { threadId: 't' }
  const first = await run(url, [user('u1')], { input })
  const [message, call] = first.events.filter(({ type }) => type === 'REASONING_ENCRYPTED_VALUE')
  const { messageId } = first.events.find(({ type }) => type === 'TEXT_MESSAGE_START') as unknown as { messageId: string }
  expect(message).toMatchObject({ subtype: 'message', entityId: messageId, encryptedValue: 'why I said it' })
  expect(call).toMatchObject({ subtype: 'tool-call', entityId: 'c1', encryptedValue: 'why I looked' })
  expect((await run(url, [user('u1'), ...messagesOf(first.events), user('u2', 'show')], { input })).said).toBe(KNOWN)
  const joined = await run(url, [user('u3', 'show')], { input: { ...input, ...joins } })
  const { messages } = joined.events.find(({ type }) => type === 'MESSAGES_SNAPSHOT') as unknown as { messages: object[] }
  expect(messages[1]).toMatchObject({ encryptedValue: 'why I said it', toolCalls: [{ id: 'c1', encryptedValue: 'why I looked' }] })
})

verifies('ag-ui.encrypted', 'encrypted values that only the client has reach the agent', async () => {
  const { url } = await startServer(secretive)
  const toolCalls = [{ id: 'c1', type: 'function', function: { name: 'look', arguments: '{}' }, encryptedValue: 'why I looked' }]
  const assistant = { id: 'a1', role: 'assistant', content: 'Wait.', encryptedValue: 'why I said it', toolCalls }
  const messages = [user('u1'), assistant, { id: 't1', role: 'tool', toolCallId: 'c1', content: 'seen' }, user('u2', 'show')]
  expect((await run(url, messages)).said).toBe(KNOWN)
  const bad = await post(url, [user('u1'), { ...assistant, encryptedValue: 1 }])
  expect(bad.status).toBe(400)
  await bad.text()
})

/** Signs a thought, and then says which thoughts it has. */
const thinker = defineAgent('thinker', async function* (turn) {
  if (turn.messages.at(-1)?.content === 'show') {
    const items = turn.messages.flatMap(({ content_items = [] }) => content_items)
    return yield text(JSON.stringify(items.flatMap((item) => (item.type === 'thinking' ? [[item.thinking, item.signature]] : []))))
  }
  yield { type: 'thinking', content: 'Hm.', signature: 'sealed' }
  yield text('Yes.')
})

verifies('ag-ui.reasoning', 'a signed thought is told, kept, told to whoever joins, and taken from who brings it', async () => {
  const { url } = await startServer(thinker)
  const input = { threadId: 't' }
  const THOUGHT = JSON.stringify([['Hm.', 'sealed']])
  const first = await run(url, [user('u1', 'go')], { input })
  const started = first.events.find(({ type }) => type === 'REASONING_MESSAGE_START') as unknown as { messageId: string; role: string }
  expect(started.role).toBe('reasoning')
  expect(first.events.filter(({ type }) => type === 'REASONING_ENCRYPTED_VALUE')).toEqual([
    expect.objectContaining({ subtype: 'message', entityId: started.messageId, encryptedValue: 'sealed' }),
  ])
  const joined = await run(url, [user('u2', 'show')], { input: { ...input, ...joins } })
  expect(joined.said).toBe(THOUGHT)
  const { messages } = joined.events.find(({ type }) => type === 'MESSAGES_SNAPSHOT') as unknown as { messages: object[] }
  expect(messages).toContainEqual(expect.objectContaining({ role: 'reasoning', content: 'Hm.', encryptedValue: 'sealed' }))
  const reasoning = { id: 'r1', role: 'reasoning', content: 'Hm.', encryptedValue: 'sealed' }
  const brought = [user('u1', 'go'), reasoning, { id: 'a1', role: 'assistant', content: 'Yes.' }, user('u2', 'show')]
  expect((await run(url, brought, { input: { threadId: 'other' } })).said).toBe(THOUGHT)
})

test('thoughts of an answer that was stopped stay before what the user said next', async () => {
  const { url } = await startServer(
    defineAgent('teller', async function* ({ messages }) {
      yield text(
        messages
          .map(({ role, content, content_items: items = [] }) => `${role} ${content}${items[0]?.type === 'thinking' ? '[Hm.]' : ''}`)
          .join(', '),
      )
    }),
  )
  const reasoning = { id: 'r1', role: 'reasoning', content: 'Hm.' }
  const answer = { id: 'a1', role: 'assistant', content: 'Yes.' }
  expect((await run(url, [user('u1', 'go'), reasoning, user('u2', 'stop')])).said).toBe('user go, assistant [Hm.], user stop')
  const longer = [user('u1', 'go'), reasoning, user('u2', 'again'), answer, user('u3', 'thanks')]
  expect((await run(url, longer)).said).toBe('user go, assistant [Hm.], user again, assistant Yes., user thanks')
})
