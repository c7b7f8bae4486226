import { expect, test } from 'vitest'
import { llmAgent, modelOf } from '../../src/agents/llm/index.ts'
import type { Draft } from '../../src/protocol/events.ts'
import { scriptedProvider, type ScriptedTurn } from '../../src/testing/scripted-provider.ts'
import { startServer } from '../support/server.ts'
import { say, textOf } from '../support/talk.ts'
import { verifies } from '../support/verifies.ts'
import { overWebSocket } from '../support/wire.ts'
import { call, said, stopped } from './provider.ts'

const schema = { type: 'object', properties: { n: { type: 'number' } }, required: ['n'], additionalProperties: false }
const format = { type: 'json_schema', json_schema: { name: 'number', schema } }

async function ask(turns: readonly ScriptedTurn[], response_format: object = format, checkOutput = true) {
  const provider = scriptedProvider(turns)
  const agent = llmAgent({
    name: 'bot',
    model: modelOf(provider, 'm'),
    checkOutput,
    tools: [{ name: 'look', run: () => 'seven' }],
  })
  const wire = await overWebSocket((await startServer(agent)).url)
  await wire.open({ session: { modalities: ['text'], response_format } })
  const events = await say(wire, 'go')
  return { provider, events, text: textOf(events), end: events.at(-1) }
}

verifies(['uamp:response:format-json', 'uamp:response:format-session'], 'an answer that fits is passed on', async () => {
  const { provider, text } = await ask([[said('{"n"'), said(':7}')]])
  expect(text).toBe('{"n":7}')
  expect(provider.requests[0]?.config.response_format).toEqual(format)
})

test.each([
  ['a word too much', 'Sure! {"n":7}', 'It is not JSON'],
  ['a field that is missing', '{}', '"n" is missing'],
  ['a field of another type', '{"n":"7"}', '"n" must be a number, but is a string'],
])('%s: the model is told, and asked once more', async (_, wrong, reason) => {
  const { provider, text, end } = await ask([[said(wrong)], [said('{"n":7}')]])
  expect(text).toBe('{"n":7}')
  expect(end?.['response'].output).toEqual([{ type: 'text', text: '{"n":7}' }])
  expect(provider.requests[1]?.messages.slice(-2).map(({ role, content }) => [role, content])).toEqual([
    ['assistant', wrong],
    ['user', expect.stringContaining(reason)],
  ])
})

test('wrong twice is an error, and nothing of it is sent', async () => {
  const { text, end } = await ask([[said('no')], [said('never')]])
  expect(text).toBe('')
  expect(end).toMatchObject({
    type: 'response.error',
    error: { code: 'provider_error', message: expect.stringContaining('It is not JSON') },
  })
})

test('JSON in a block of Markdown is taken out of it', async () => {
  expect((await ask([[said('```json\n{"n":7}\n```')]])).text).toBe('{"n":7}')
})

test('what is said beside a call is no part of the answer', async () => {
  const { text, provider } = await ask([[said('Let me look.'), call('c1', 'look', {})], [said('{"n":7}')]])
  expect(text).toBe('{"n":7}')
  expect(provider.requests[1]?.messages.at(-2)?.content).toBe('Let me look.')
})

test('a refusal, and an answer that was cut off, are passed on as they are', async () => {
  const refusal: Draft = { type: 'response.delta', delta: { type: 'text', text: 'I will not.', refusal: true } }
  const refused = await ask([[refusal]])
  expect([refused.text, refused.end?.type]).toEqual(['I will not.', 'response.done'])
  const cut = await ask([[said('{"n":'), stopped('length')]])
  expect([cut.text, cut.end?.['response'].extensions]).toEqual(['{"n":', { uamp: { stop_reason: 'length' } }])
})

test('json_object is any object', async () => {
  expect((await ask([[said('[1]')], [said('{"a":1}')]], { type: 'json_object' })).text).toBe('{"a":1}')
})

test('unchecked, it is streamed as it comes', async () => {
  const { text, events } = await ask([[said('not '), said('JSON')]], format, false)
  expect(text).toBe('not JSON')
  expect(events.filter(({ type }) => type === 'response.delta')).toHaveLength(2)
})
