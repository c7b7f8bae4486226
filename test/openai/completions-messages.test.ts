import { expect, test } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { mirror, type Mirrored } from '../support/agents.ts'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'
import { ask, user } from './support.ts'

const PATH = '/v1/chat/completions'
const PIXEL = 'iVBORw0KGgo='

async function heard(messages: readonly unknown[], body: object = {}): Promise<Mirrored> {
  const { url } = await startServer(mirror)
  const answer = await ask(url + PATH, { messages, ...body })
  expect(answer.body.error).toBeUndefined()
  return JSON.parse(answer.body.choices[0].message.content) as Mirrored
}

verifies('openai-completions.roles', 'every role, in order', async () => {
  const call = { id: 'call_1', type: 'function', function: { name: 'weather', arguments: '{"city":"Bern"}' } }
  const { messages } = await heard([
    { role: 'system', content: 'Be brief.' },
    { role: 'developer', content: 'Be kind.', name: 'dev' },
    user('Weather?'),
    { role: 'assistant', content: null, tool_calls: [call] },
    { role: 'tool', tool_call_id: 'call_1', content: 'sun' },
    { role: 'assistant', content: 'Sunny.', reasoning_content: 'It is sunny.', refusal: null },
    { role: 'assistant', content: null, function_call: { name: 'add', arguments: '{}' } },
    { role: 'function', name: 'add', content: '3' },
    user('Thanks'),
  ])
  const toolCall = { id: 'call_1', name: 'weather', arguments: '{"city":"Bern"}' }
  const added = { id: 'add', name: 'add', arguments: '{}' }
  expect(messages).toEqual([
    { role: 'system', content: 'Be brief.' },
    { role: 'system', content: 'Be kind.', name: 'dev' },
    { role: 'user', content: 'Weather?' },
    { role: 'assistant', content: '', content_items: [{ type: 'tool_call', tool_call: toolCall }], tool_calls: [toolCall] },
    { role: 'tool', tool_call_id: 'call_1', content: 'sun' },
    {
      role: 'assistant',
      content: 'Sunny.',
      content_items: [
        { type: 'thinking', thinking: 'It is sunny.' },
        { type: 'text', text: 'Sunny.' },
      ],
    },
    { role: 'assistant', content: '', content_items: [{ type: 'tool_call', tool_call: added }], tool_calls: [added] },
    { role: 'tool', tool_call_id: 'add', content: '3' },
    { role: 'user', content: 'Thanks' },
  ])
})

verifies('openai-completions.parts', 'every kind of part', async () => {
  const { messages } = await heard([
    user([
      { type: 'text', text: 'Look: ' },
      { type: 'image_url', image_url: { url: `data:image/png;base64,${PIXEL}`, detail: 'low' } },
      { type: 'image_url', image_url: { url: 'https://example.com/cat.jpg' } },
      { type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } },
      { type: 'file', file: { file_data: 'data:application/pdf;base64,AAAA', filename: 'a.pdf' } },
      { type: 'file', file: { file_data: 'AAAA', filename: 'b.csv' } },
      { type: 'text', text: 'see?' },
    ]),
    { role: 'assistant', content: [{ type: 'refusal', refusal: 'No.' }] },
    user('ok'),
  ])
  const content_id = expect.any(String)
  expect(messages[0]).toEqual({
    role: 'user',
    content: 'Look: see?',
    content_items: [
      { type: 'text', text: 'Look: ' },
      { type: 'image', image: PIXEL, format: 'png', detail: 'low', content_id },
      { type: 'image', image: { url: 'https://example.com/cat.jpg' }, content_id },
      { type: 'audio', audio: 'AAAA', format: 'wav', content_id },
      { type: 'file', file: 'AAAA', filename: 'a.pdf', mime_type: 'application/pdf', content_id },
      { type: 'file', file: 'AAAA', filename: 'b.csv', mime_type: 'text/csv', content_id },
      { type: 'text', text: 'see?' },
    ],
  })
  expect(messages[1]?.content_items).toEqual([{ type: 'text', text: 'No.', refusal: true }])
})

verifies('openai-completions.content-items', 'content items come in, and what went out may come back', async () => {
  const image = { type: 'image', image: PIXEL, content_id: 'c1' }
  const { messages } = await heard([
    { role: 'user', content: 'ignored', content_items: [{ type: 'text', text: 'Look' }, image] },
    // As the clients build it from a stream: the text in one field, the last item in the other.
    { role: 'assistant', content: 'Here', content_items: [image] },
    user('ok'),
  ])
  expect(messages[0]).toMatchObject({ content: 'Look', content_items: [{ type: 'text', text: 'Look' }, image] })
  expect(messages[1]).toMatchObject({ content: 'Here', content_items: [{ type: 'text', text: 'Here' }, image] })
})

verifies('openai-completions.tool-choice', 'what may be called', async () => {
  const tools = [{ type: 'function', function: { name: 'weather', description: 'd', strict: true, parameters: { type: 'object' } } }]
  const offered = await heard([user('x')], { tools, tool_choice: 'required', parallel_tool_calls: false })
  expect(offered.config).toMatchObject({ tools, extensions: { openai: { tool_choice: 'required', parallel_tool_calls: false } } })
  expect((await heard([user('x')], { tools, tool_choice: 'none' })).config.tools).toBeUndefined()
  const { url } = await startServer(mirror)
  const choice = { type: 'function', function: { name: 'other' } }
  const { status, body } = await ask(url + PATH, { messages: [user('x')], tools, tool_choice: choice })
  expect([status, body.error.param]).toEqual([400, 'tool_choice'])
})

verifies('openai-completions.format', 'a schema reaches the agent', async () => {
  const schema = { type: 'object', properties: { city: { type: 'string', enum: ['Bern'] } }, required: ['city'] }
  const { url } = await startServer(demo())
  const response_format = { type: 'json_schema', json_schema: { name: 'place', strict: true, schema } }
  const { body } = await ask(url + PATH, { messages: [user('/json')], response_format })
  expect(JSON.parse(body.choices[0].message.content)).toEqual({ city: 'Bern' })
})

test('nulls where a client leaves something out are nothing', async () => {
  const nothing = Object.fromEntries(
    ['tools', 'tool_choice', 'functions', 'response_format', 'modalities', 'audio', 'stream', 'stream_options', 'n', 'model', 'store'].map(
      (field) => [field, null],
    ),
  )
  const { messages, config } = await heard([{ role: 'user', content: 'x', name: null }], nothing)
  expect([messages, config.modalities]).toEqual([[{ role: 'user', content: 'x' }], ['text']])
})
