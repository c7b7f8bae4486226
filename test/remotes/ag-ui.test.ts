import { expect } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { remoteAgUi } from '../../src/remotes/ag-ui/index.ts'
import { everything } from '../ag-ui/agents.ts'
import { startServer } from '../support/server.ts'
import { say, textOf } from '../support/talk.ts'
import { verifies } from '../support/verifies.ts'
import { overWebSocket, type Heard } from '../support/wire.ts'
import { behind, done, peer, said, type Answer } from './ag-ui-peer.ts'
import { begin, plain } from './plain.ts'

const PICK = { type: 'function', function: { name: 'pick', description: 'Picks', parameters: { type: 'object', properties: {} } } }

/** The demo on one server, and on another one the same demo behind AG-UI. */
async function pair(agent = demo()) {
  const there = await startServer(agent)
  const here = await startServer(remoteAgUi({ name: 'far', url: `${there.url}/ag-ui` }))
  return { there, here }
}

const SAME = [
  'hello there',
  '/count 5',
  '/tool add {"a":1,"b":2}',
  '/tool slow {"ms":20}',
  '/tool nothing',
  '/progress 2',
  '/image',
  '/file',
  '/video',
  '/json',
  '/state',
  '/error rate_limited',
  '/error of_its_own',
  '/big 200000',
  '/help',
]
for (const command of SAME)
  verifies('ag-ui-remote.events', `${command} behind a remote is what it is directly`, async () => {
    const { there, here } = await pair()
    const [direct, remote] = await Promise.all([overWebSocket(there.url), overWebSocket(here.url)])
    await Promise.all([direct.open(), remote.open()])
    expect(shown(await say(remote, command))).toEqual(shown(await say(direct, command)))
  })

/** What AG-UI carries: not the stage of a thought, nor in how many pieces something comes. */
function shown(events: readonly Heard[]): unknown[] {
  return plain(events.filter(({ type, delta }) => type !== 'usage.delta' && delta?.tool_call?.arguments !== ''))
}

verifies('ag-ui-remote.events', 'an agent that says everything', async () => {
  const { there, here } = await pair(everything)
  const [direct, remote] = await Promise.all([overWebSocket(there.url), overWebSocket(here.url)])
  await Promise.all([direct.open(), remote.open()])
  const types = (events: readonly Heard[]) => events.map(({ type, delta }) => (type === 'response.delta' ? `delta ${delta.type}` : type))
  const [there_, here_] = [
    types(await say(direct, 'go')),
    types((await say(remote, 'go')).filter(({ delta }) => delta?.tool_call?.arguments !== '')),
  ]
  expect(here_.filter((type) => type !== 'tool.call_done')).toEqual(there_)
})

verifies('ag-ui-remote.events', 'the conversation, instructions, tools and state go along', async () => {
  const { url, inputs } = await peer([...said('m', 'one'), done], [...said('n', 'two'), done])
  const { wire } = await behind(url, {
    session: { modalities: ['text'], instructions: 'Be kind', tools: [PICK], extensions: { uamp: { state: { a: 1 } } } },
  })
  await say(wire, 'first')
  expect(textOf(await say(wire, 'second'))).toBe('two')
  expect(inputs[1]?.messages.map(({ role, content }) => [role, content])).toEqual([
    ['system', 'Be kind'],
    ['user', 'first'],
    ['assistant', 'one'],
    ['user', 'second'],
  ])
  expect(inputs[1]).toMatchObject({ protocolVersion: '1.0', tools: [{ name: 'pick', description: 'Picks' }], state: { a: 1 }, context: [] })
  expect(inputs[1]?.threadId).not.toBe(inputs[0]?.threadId)
})

verifies('ag-ui-remote.chunks', 'chunks of text, thoughts and calls', async () => {
  const { url } = await peer([
    { type: 'REASONING_MESSAGE_CHUNK', messageId: 'r', delta: 'Let ' },
    { type: 'REASONING_MESSAGE_CHUNK', delta: 'me see' },
    { type: 'TEXT_MESSAGE_CHUNK', messageId: 'm', role: 'assistant', delta: 'One' },
    { type: 'TEXT_MESSAGE_CHUNK', delta: ' two' },
    { type: 'TOOL_CALL_CHUNK', toolCallId: 'c', toolCallName: 'look', parentMessageId: 'm', delta: '{"a"' },
    { type: 'TOOL_CALL_CHUNK', delta: ':1}' },
    { type: 'TOOL_CALL_RESULT', messageId: 't', toolCallId: 'c', content: 'seen' },
    { type: 'TEXT_MESSAGE_CHUNK', messageId: 'n', delta: 'three' },
    { type: 'TEXT_MESSAGE_CHUNK', messageId: 'o', delta: 'four' },
    done,
  ])
  const { wire } = await behind(url)
  const events = await say(wire, 'go')
  expect(output(events)).toEqual([
    { type: 'thinking', thinking: 'Let me see' },
    { type: 'text', text: 'One two' },
    { type: 'tool_call', tool_call: { id: 'c', name: 'look', arguments: '{"a":1}' } },
    { type: 'tool_result', tool_result: { call_id: 'c', result: 'seen', status: 'completed', is_error: false } },
    { type: 'text', text: 'three\n\nfour' },
  ])
})

verifies('ag-ui-remote.thinking', 'the thinking events of 0.0.x, and reasoning with its signature', async () => {
  const { url } = await peer([
    { type: 'THINKING_START', title: 'Hm' },
    { type: 'THINKING_TEXT_MESSAGE_START' },
    { type: 'THINKING_TEXT_MESSAGE_CONTENT', delta: 'Old' },
    { type: 'THINKING_TEXT_MESSAGE_END' },
    { type: 'THINKING_END' },
    ...said('m', 'between'),
    { type: 'REASONING_START', messageId: 'r' },
    { type: 'REASONING_MESSAGE_START', messageId: 'r', role: 'reasoning' },
    { type: 'REASONING_MESSAGE_CONTENT', messageId: 'r', delta: 'New' },
    { type: 'REASONING_ENCRYPTED_VALUE', subtype: 'message', entityId: 'r', encryptedValue: 'signed' },
    { type: 'REASONING_MESSAGE_END', messageId: 'r' },
    { type: 'REASONING_END', messageId: 'r' },
    done,
  ])
  const { wire } = await behind(url)
  expect(output(await say(wire, 'go'))).toEqual([
    { type: 'thinking', thinking: 'Old' },
    { type: 'text', text: 'between' },
    { type: 'thinking', thinking: 'New', signature: 'signed' },
  ])
})

verifies(['ag-ui-remote.events', 'ag-ui-remote.meta'], 'what nobody knows, drafts, and an answer that is only in a snapshot', async () => {
  const { url } = await peer([
    { type: 'META', metaType: 'thumbs_up', payload: 1 },
    { type: 'NEWER_THAN_US', a: 1 },
    { type: 'TEXT_MESSAGE_START', messageId: 'u', role: 'user' },
    { type: 'TEXT_MESSAGE_CONTENT', messageId: 'u', delta: 'not mine' },
    { type: 'TEXT_MESSAGE_END', messageId: 'u' },
    { type: 'MESSAGES_SNAPSHOT', messages: [{ id: 'a', role: 'assistant', content: 'Here it is' }] },
    { type: 'RUN_FINISHED', outcome: 'success', usage: [{ inputTokens: 3, outputTokens: 2 }, { inputTokens: 1 }] },
  ])
  const { wire } = await behind(url)
  const events = await say(wire, 'go')
  expect(textOf(events)).toBe('Here it is')
  expect(events.filter(({ type }) => type === 'x.custom' || type === 'x.raw')).toMatchObject([
    { name: 'meta.thumbs_up', value: 1 },
    { event: { type: 'NEWER_THAN_US', a: 1 } },
    { event: { type: 'TEXT_MESSAGE_CHUNK', messageId: 'u', role: 'user', delta: 'not mine' }, source: 'ag-ui' },
  ])
  expect(events.at(-1)?.['response'].usage).toMatchObject({ input_tokens: 4, output_tokens: 2 })
})

verifies('ag-ui-remote.tools', 'calls are put to our client, and the next run brings the results', async () => {
  const call = (toolCallId: string, toolCallName: string) => [
    { type: 'TOOL_CALL_START', toolCallId, toolCallName, parentMessageId: 'm' },
    { type: 'TOOL_CALL_ARGS', toolCallId, delta: '{}' },
    { type: 'TOOL_CALL_END', toolCallId },
  ]
  const { url, inputs } = await peer(
    [
      ...call('c1', 'pick'),
      ...call('c2', 'theirs'),
      { type: 'TOOL_CALL_RESULT', messageId: 't', toolCallId: 'c2', content: 'done there' },
      done,
    ],
    [...said('n', 'thanks'), done],
  )
  const { wire } = await behind(url, { session: { modalities: ['text'], tools: [PICK] } })
  const answer = await begin(wire, 'go')
  const asked = await wire.next('tool.call')
  expect(asked).toMatchObject({ call_id: 'c1', name: 'pick' })
  await wire.send({ type: 'tool.result', call_id: 'c1', result: 'this one' })
  expect(textOf(await answer.end())).toBe('thanks')
  const [first, second] = inputs
  expect(second?.threadId).toBe(first?.threadId)
  expect(second?.messages.slice(1)).toMatchObject([
    {
      id: 'm',
      role: 'assistant',
      toolCalls: [
        { id: 'c1', type: 'function', function: { name: 'pick', arguments: '{}' } },
        { id: 'c2', function: { name: 'theirs' } },
      ],
    },
    { role: 'tool', toolCallId: 'c2', content: 'done there' },
    { role: 'tool', toolCallId: 'c1', content: 'this one' },
  ])
})

verifies('ag-ui-remote.tools', 'over two servers, with a page at the end: each asks the next', async () => {
  const { here } = await pair()
  const wire = await overWebSocket(here.url)
  await wire.open({ session: { modalities: ['text'], tools: [PICK] } })
  const answer = await begin(wire, '/tool pick {"from":3}')
  const { call_id } = await wire.next('tool.call')
  await wire.send({ type: 'tool.result', call_id, result: 'the third' })
  expect(textOf(await answer.end())).toBe('pick answered: the third')
})

const PAYLOADS: readonly [schema: object | undefined, payload: unknown][] = [
  [undefined, { approved: true }],
  [{ type: 'boolean' }, true],
  [{ type: 'object', properties: { accepted: { type: 'boolean' } } }, { accepted: true }],
  [{ type: 'object', properties: { note: { type: 'string' }, approved: { type: 'boolean' } } }, { approved: true }],
]
for (const [responseSchema, payload] of PAYLOADS)
  verifies('ag-ui-remote.interrupt', `an approval resumes with ${JSON.stringify(payload)}`, async () => {
    const interrupts = [{ id: 'i1', reason: 'confirmation', message: 'Really?', ...(responseSchema && { responseSchema }) }]
    const { url, inputs } = await peer(
      [{ type: 'RUN_FINISHED', outcome: { type: 'interrupt', interrupts } }],
      [...said('m', 'Then so'), done],
    )
    const { wire } = await behind(url)
    const answer = await begin(wire, 'go')
    const { approval_id, message } = await wire.next('x.approval.request')
    expect(message).toBe('Really?')
    await wire.send({ type: 'x.approval.response', approval_id, approved: true })
    expect(textOf(await answer.end())).toBe('Then so')
    expect(inputs[1]?.resume).toEqual([{ interruptId: 'i1', status: 'resolved', payload }])
  })

verifies('ag-ui-remote.interrupt', 'approvals and payments over two servers', async () => {
  const { here } = await pair()
  const wire = await overWebSocket(here.url)
  await wire.open()
  const answer = await begin(wire, '/approve it')
  const { approval_id } = await wire.next('x.approval.request')
  await wire.send({ type: 'x.approval.response', approval_id, approved: false, reason: 'no' })
  expect(textOf(await answer.end())).toBe('Denied: it (no)')
  const requirements = { amount: '1', currency: 'USD' }
  const interrupts = [{ id: 'p', reason: 'uamp:payment_required', metadata: { uamp: { requirements } } }]
  const { url, inputs } = await peer([{ type: 'RUN_FINISHED', outcome: { type: 'interrupt', interrupts } }], [...said('m', 'Paid'), done])
  const { wire: other } = await behind(url)
  const paid = await begin(other, 'go')
  expect(await other.next('payment.required')).toMatchObject({ requirements })
  await other.send({ type: 'payment.submit', payment: { scheme: 'token', token: 'coin' } })
  expect(textOf(await paid.end())).toBe('Paid')
  expect(inputs[1]?.resume).toMatchObject([{ interruptId: 'p', payload: { payment_token: 'coin' } }])
})

verifies('ag-ui-remote.interrupt', 'a proof of x402 resumes as the text that a payment_token is', async () => {
  const requirements = { amount: '1', currency: 'USD' }
  const interrupts = [{ id: 'p', reason: 'uamp:payment_required', metadata: { uamp: { requirements } } }]
  const { url, inputs } = await peer([{ type: 'RUN_FINISHED', outcome: { type: 'interrupt', interrupts } }], [...said('m', 'Paid'), done])
  const { wire } = await behind(url)
  const paid = await begin(wire, 'go')
  await wire.next('payment.required')
  const proof = { x402Version: 2, accepted: { scheme: 'exact' }, payload: { signature: '0x12' } }
  await wire.send({ type: 'payment.submit', payment: { scheme: 'exact', proof } })
  expect(textOf(await paid.end())).toBe('Paid')
  const { payment_token } = (inputs[1]?.resume?.[0] as { payload: { payment_token: string } }).payload
  expect(JSON.parse(atob(payment_token))).toEqual(proof)
})

verifies('ag-ui-remote.interrupt', 'what a yes does not answer is said, and the next message answers it', async () => {
  const interrupts = [{ id: 'i1', reason: 'input_required', message: 'Which city?' }]
  const { url, inputs } = await peer(
    [{ type: 'RUN_FINISHED', outcome: { type: 'interrupt', interrupts } }],
    [...said('m', 'Rome it is'), done],
  )
  const { wire } = await behind(url)
  const asked = await say(wire, 'go')
  expect(textOf(asked)).toBe('Which city?')
  expect(asked.at(-1)?.['response'].extensions).toEqual({ uamp: { stop_reason: 'input_required' } })
  expect(textOf(await say(wire, 'Rome'))).toBe('Rome it is')
  expect(inputs[1]?.messages.map(({ content }) => content)).toEqual(['go', 'Which city?', 'Rome'])
})

verifies('ag-ui-remote.cancel', 'a cancel closes the request', async () => {
  const { url, gone } = await peer('hang')
  const { wire } = await behind(url)
  const answer = await begin(wire, 'go')
  await wire.next('response.created')
  await wire.send({ type: 'response.cancel' })
  expect((await answer.end()).at(-1)?.type).toBe('response.cancelled')
  await gone
})

const FAILURES: readonly [name: string, answer: Answer, code: string][] = [
  ['RUN_ERROR', [...said('m', 'so far'), { type: 'RUN_ERROR', message: 'No more', code: 'quota' }], 'quota'],
  ['RUN_ERROR without a code', [{ type: 'RUN_ERROR', message: 'No more' }], 'provider_error'],
  ['a stream that is cut off', said('m', 'so far'), 'provider_error'],
  ['a refusal', { status: 422, body: { detail: 'no such field' } }, 'invalid_request'],
]
for (const [name, answer, code] of FAILURES)
  verifies('ag-ui-remote.error', `${name} fails the response`, async () => {
    const { url } = await peer(answer)
    const { wire } = await behind(url)
    expect((await say(wire, 'go')).at(-1)).toMatchObject({ type: 'response.error', error: { code } })
  })

verifies('ag-ui-remote.error', 'what is no event fails the response, and a cancel there is one here', async () => {
  const { url } = await peer([{ type: 7 }], [{ type: 'RUN_FINISHED', outcome: { type: 'cancelled' } }])
  const { wire } = await behind(url)
  expect((await say(wire, 'go')).at(-1)).toMatchObject({ type: 'response.error', error: { code: 'provider_error' } })
  expect((await say(wire, 'go')).at(-1)).toMatchObject({ type: 'response.cancelled' })
})

function output(events: readonly Heard[]): unknown {
  return events.at(-1)?.['response'].output
}
