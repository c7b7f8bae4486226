import { expect } from 'vitest'
import { run, user } from '../ag-ui/wire.ts'
import { say, textOf } from '../support/talk.ts'
import { verifies } from '../support/verifies.ts'
import type { Heard } from '../support/wire.ts'
import { behind, done, peer, said, type Answer } from './ag-ui-peer.ts'

const outputOf = (events: readonly Heard[]): unknown => events.at(-1)?.['response'].output
const errorOf = (events: readonly Heard[]): unknown => events.at(-1)?.['error']

/** What becomes of one answer of the peer. */
async function heard(...answers: readonly Answer[]) {
  const there = await peer(...answers)
  const { wire } = await behind(there.url)
  return { ...there, events: await say(wire, 'go') }
}

verifies('ag-ui-remote.events', 'a run is over with RUN_FINISHED, also on a connection that is not closed', async () => {
  const { events, gone } = await heard({ stays: [...said('m', 'Hello'), done] })
  expect(textOf(events)).toBe('Hello')
  expect(events.at(-1)?.type).toBe('response.done')
  await gone
})

verifies('ag-ui-remote.events', 'a server that went on chattering behind the end of a run kept it from ending', async () => {
  const { events, gone } = await heard({ stays: [...said('m', 'Hello'), done], again: { type: 'CUSTOM', name: 'alive', value: 1 } })
  expect(textOf(events)).toBe('Hello')
  expect(events.at(-1)?.type).toBe('response.done')
  await gone
})

verifies('ag-ui-remote.events', 'a second run in one stream is told, and its end counts', async () => {
  const interrupted = { type: 'RUN_FINISHED', outcome: { type: 'interrupt', interrupts: [{ id: 'i', reason: 'confirmation' }] } }
  const { events } = await heard([...said('m', 'one'), interrupted, { type: 'RUN_STARTED', runId: 'second' }, ...said('n', 'two'), done])
  expect(textOf(events)).toBe('one\n\ntwo')
  expect(events.at(-1)?.type).toBe('response.done')
})

verifies('ag-ui-remote.error', 'an error behind the end of a run fails the response', async () => {
  const { events } = await heard([...said('m', 'one'), done, { type: 'RUN_ERROR', message: 'late', code: 'late' }])
  expect(errorOf(events)).toMatchObject({ code: 'late', message: 'late' })
})

for (const status of [500, 429, 503])
  verifies('ag-ui-remote.error', `a run that was refused with ${status} is not begun a second time`, async () => {
    const { inputs, events } = await heard({ status, body: { detail: 'no' } }, [...said('m', 'twice'), done])
    expect(events.at(-1)?.type).toBe('response.error')
    expect(inputs).toHaveLength(1)
  })

const PICK = {
  id: 'i1',
  reason: 'acme:pick_flight',
  message: 'Which flight?',
  responseSchema: { type: 'object', properties: { flight: { type: 'string' } }, required: ['flight'] },
  expiresAt: '2100-01-01T00:00:00Z',
  metadata: { k: 1 },
}
const ANSWERS = [{ status: 'resolved', payload: { flight: 'LH1' } }, { status: 'resolved', payload: 'LH1' }, { status: 'cancelled' }]
for (const interrupt of [PICK, { ...PICK, reason: 'input_required' }])
  for (const answer of ANSWERS)
    verifies(
      'ag-ui-remote.interrupt',
      `${interrupt.reason} reaches a client of AG-UI, and ${JSON.stringify(answer)} the agent`,
      async () => {
        const { url, inputs } = await peer(
          [{ type: 'RUN_FINISHED', outcome: { type: 'interrupt', interrupts: [interrupt] } }],
          [...said('m', 'Thanks'), done],
        )
        const { here } = await behind(url)
        const input = { threadId: 't' }
        const first = await run(here.url, [user('go')], { input })
        const { id, ...asked } = first.end['outcome'].interrupts[0] as { id: string }
        expect({ ...asked, id: 'i1' }).toEqual(interrupt)
        const second = await run(here.url, [user('go')], { input: { ...input, resume: [{ interruptId: id, ...answer }] } })
        expect(second.end).toMatchObject({ type: 'RUN_FINISHED', outcome: { type: 'success' } })
        expect(inputs[1]?.resume).toEqual([{ interruptId: 'i1', ...answer }])
      },
    )

verifies('ag-ui-remote.thinking', 'thoughts of two messages are apart, and what belongs to a text is no thought', async () => {
  const { events } = await heard([
    { type: 'REASONING_START', messageId: 'r' },
    { type: 'REASONING_MESSAGE_CHUNK', messageId: 'r', delta: 'one' },
    { type: 'REASONING_MESSAGE_CHUNK', delta: ' thought' },
    { type: 'REASONING_END', messageId: 'r' },
    { type: 'REASONING_MESSAGE_CHUNK', messageId: 'q', delta: 'another' },
    ...said('m', 'Fine'),
    { type: 'REASONING_ENCRYPTED_VALUE', subtype: 'message', entityId: 'm', encryptedValue: 'secret' },
    done,
  ])
  expect(outputOf(events)).toEqual([
    { type: 'thinking', thinking: 'one thought\n\nanother' },
    { type: 'text', text: 'Fine', encrypted_value: 'secret' },
  ])
  expect(events.find(({ type }) => type === 'x.reasoning.encrypted')).toMatchObject({ value: 'secret', subtype: 'message' })
})

verifies('ag-ui-remote.events', 'messages that are told at the same time are not mixed', async () => {
  const start = (messageId: string) => ({ type: 'TEXT_MESSAGE_START', messageId })
  const content = (messageId: string, delta: string) => ({ type: 'TEXT_MESSAGE_CONTENT', messageId, delta })
  const end = (messageId: string) => ({ type: 'TEXT_MESSAGE_END', messageId })
  const mixed = [start('a'), start('b'), content('a', 'a1 '), content('b', 'b1 '), content('a', 'a2'), content('b', 'b2')]
  expect(textOf((await heard([...mixed, end('a'), content('b', ' b3'), end('b'), done])).events)).toBe('a1 a2\n\nb1 b2 b3')
  // Those that never end are told at the end.
  expect(textOf((await heard([...mixed, done])).events)).toBe('a1 a2\n\nb1 b2')
})

verifies('ag-ui-remote.chunks', 'a chunk without an id goes on with the text, not with the call between', async () => {
  const { events } = await heard([
    { type: 'TEXT_MESSAGE_CHUNK', messageId: 'm', delta: 'One' },
    { type: 'TOOL_CALL_CHUNK', toolCallId: 'c', toolCallName: 'look', delta: '{}' },
    { type: 'TEXT_MESSAGE_CHUNK', delta: ' two' },
    { type: 'TOOL_CALL_RESULT', messageId: 't', toolCallId: 'c', content: 'seen' },
    done,
  ])
  expect(textOf(events)).toBe('One two')
})

verifies('ag-ui-remote.events', 'what a subagent says is not the answer', async () => {
  const { events } = await heard([
    { type: 'SUBAGENT_STARTED', subagentRunId: 's', name: 'helper' },
    ...said('x', 'between us').map((event) => ({ ...event, subagentRunId: 's' })),
    { type: 'SUBAGENT_FINISHED', subagentRunId: 's' },
    ...said('m', 'The answer'),
    done,
  ])
  expect(textOf(events)).toBe('The answer')
  expect(events.some(({ type, event }) => type === 'x.raw' && event.delta === 'between us')).toBe(true)
})

verifies('ag-ui-remote.events', 'the result of a run is told, and is the answer where nothing else was said', async () => {
  const finished = { type: 'RUN_FINISHED', result: { answer: 42 } }
  const silent = await heard([finished])
  expect(textOf(silent.events)).toBe('{"answer":42}')
  const { url } = await peer([...said('m', 'Done'), finished])
  const { here } = await behind(url)
  const { end, said: told } = await run(here.url, [user('go')])
  expect([told, end]).toMatchObject(['Done', { type: 'RUN_FINISHED', result: { answer: 42 } }])
})

for (const type of ['text/html', 'application/vnd.ag-ui.event+proto', 'application/json'])
  verifies('ag-ui-remote.error', `an answer that is ${type} is said to be that`, async () => {
    const { events } = await heard({ type, text: '<html>' })
    expect(errorOf(events)).toMatchObject({
      code: 'provider_error',
      message: `"far" answered with ${type}, which is no stream of events: is the address right?`,
    })
  })

verifies('ag-ui-remote.error', 'an error without a word, and an event that nests too deep, are told as such', async () => {
  expect(errorOf((await heard([{ type: 'RUN_ERROR' }])).events)).toEqual({
    code: 'provider_error',
    message: '"far" failed and gave no reason',
  })
  const deep = `data: {"type":"CUSTOM","name":"deep","value":${'['.repeat(20_000)}${']'.repeat(20_000)}}\n\n`
  expect(errorOf((await heard({ type: 'text/event-stream', text: deep })).events)).toEqual({
    code: 'provider_error',
    message: '"far" sent an event of more than 64 levels',
  })
})

verifies('ag-ui-remote.tools', 'an id that is used again is another call', async () => {
  const call = (argument: string) => [
    { type: 'TOOL_CALL_START', toolCallId: 'c', toolCallName: 'look' },
    { type: 'TOOL_CALL_ARGS', toolCallId: 'c', delta: argument },
    { type: 'TOOL_CALL_END', toolCallId: 'c' },
    { type: 'TOOL_CALL_RESULT', messageId: `r${argument}`, toolCallId: 'c', content: argument },
  ]
  const { events } = await heard([...call('1'), ...call('2'), done])
  const again = expect.not.stringMatching(/^c$/) as string
  expect(outputOf(events)).toMatchObject([
    { tool_call: { id: 'c', arguments: '1' } },
    { tool_result: { call_id: 'c', result: '1' } },
    { tool_call: { id: again, arguments: '2' } },
    { tool_result: { call_id: again, result: '2' } },
  ])
})

verifies('ag-ui-remote.events', 'the context of a client is sent once', async () => {
  const { url, inputs } = await peer([...said('m', 'Fine'), done])
  const { here } = await behind(url)
  const context = [{ description: 'City', value: 'Rome' }]
  const messages = [{ id: 's', role: 'system', content: 'Be kind' }, user('go')]
  await run(here.url, messages, { input: { context } })
  expect(inputs[0]).toMatchObject({ context, messages: [{ role: 'system', content: 'Be kind' }, { content: 'go' }] })
})
