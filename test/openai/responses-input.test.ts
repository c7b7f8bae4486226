import { expect, test } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { text } from '../../src/core/agent-kit/drafts.ts'
import type { Message } from '../../src/protocol/message.ts'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'
import { client, textOf, type Json } from './responses-wire.ts'

const PNG = 'iVBORw0KGgo='

/** What an agent is given for an input. */
async function given(input: unknown): Promise<Message[]> {
  let seen: readonly Message[] = []
  const agent = defineAgent('seer', async function* ({ messages }) {
    seen = messages
    yield text('seen')
  })
  const { url } = await startServer(agent)
  const { status, body } = await client(url).ask({ input })
  expect([status, body['error'] ?? null]).toEqual([200, null])
  return [...seen]
}

verifies('openai-responses.input-text', 'texts and messages of all roles, in the easy and the typed form', async () => {
  expect(await given('hello')).toEqual([{ role: 'user', content: 'hello' }])
  expect(
    await given([
      { role: 'developer', content: 'd' },
      { type: 'message', role: 'system', content: [{ type: 'input_text', text: 's' }] },
      {
        role: 'user',
        content: [
          { type: 'input_text', text: 'a' },
          { type: 'input_text', text: 'b' },
        ],
      },
      {
        type: 'message',
        id: 'msg_1',
        status: 'completed',
        role: 'assistant',
        content: [
          { type: 'output_text', text: 'said', annotations: [] },
          { type: 'refusal', refusal: 'no' },
        ],
      },
      { role: 'assistant', content: 'and' },
      { role: 'user', content: 'last' },
    ]),
  ).toMatchObject([
    { role: 'system', content: 'd' },
    { role: 'system', content: 's' },
    {
      role: 'user',
      content: 'ab',
      content_items: [
        { type: 'text', text: 'a' },
        { type: 'text', text: 'b' },
      ],
    },
    {
      role: 'assistant',
      content_items: [
        { type: 'text', text: 'said' },
        { type: 'text', text: 'no', refusal: true },
        { type: 'text', text: 'and' },
      ],
    },
    { role: 'user', content: 'last' },
  ])
})

verifies('openai-responses.input-media', 'images, files and audio', async () => {
  const content = [
    { type: 'input_image', image_url: `data:image/png;base64,${PNG}`, detail: 'low' },
    { type: 'input_image', image_url: 'https://example.com/a.png', file_id: null },
    { type: 'input_file', filename: 'a.pdf', file_data: `data:application/pdf;base64,${PNG}` },
    { type: 'input_file', file_url: 'https://example.com/b.csv', filename: 'b.csv' },
    { type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } },
  ]
  const items = [
    { type: 'image', image: PNG, format: 'png', detail: 'low' },
    { type: 'image', image: { url: 'https://example.com/a.png' } },
    { type: 'file', file: PNG, filename: 'a.pdf', mime_type: 'application/pdf' },
    { type: 'file', file: { url: 'https://example.com/b.csv' }, filename: 'b.csv', mime_type: 'text/csv' },
    { type: 'audio', audio: 'AAAA', format: 'wav' },
  ]
  expect(await given([{ role: 'user', content }])).toMatchObject([{ role: 'user', content_items: items }])
})

verifies('openai-responses.input-media', 'media is listed as it was sent', async () => {
  const { url } = await startServer(demo())
  const api = client(url)
  const content = [
    { type: 'input_text', text: 'look' },
    { type: 'input_image', image_url: `data:image/png;base64,${PNG}`, detail: 'low' },
    { type: 'input_file', filename: 'a.pdf', file_data: `data:application/pdf;base64,${PNG}` },
    { type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } },
  ]
  const { body } = await api.ask({ input: [{ role: 'user', content }] })
  expect((await api.items(body['id'] as string)).body['data']).toMatchObject([{ type: 'message', role: 'user', content }])
})

verifies('openai-responses.input-items', 'what an assistant thought, said and called in a row is one message', async () => {
  expect(
    await given([
      { role: 'user', content: 'go' },
      { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'hm' }], encrypted_content: 'c2ln' },
      { type: 'function_call', id: 'fc_1', call_id: 'c1', name: 'one', arguments: '{}', status: 'completed' },
      { type: 'function_call', call_id: 'c2', name: 'two', arguments: '{"a":1}' },
      { type: 'function_call_output', call_id: 'c1', output: 'ONE' },
      {
        type: 'function_call_output',
        call_id: 'c2',
        output: [
          { type: 'input_text', text: 'TWO' },
          { type: 'input_image', image_url: `data:image/png;base64,${PNG}` },
        ],
      },
      { type: 'reasoning', summary: [], content: [{ type: 'reasoning_text', text: 'so' }] },
      { type: 'mcp_call', id: 'mcp_1', server_label: 's', name: 'three', arguments: '{}', output: 'THREE' },
      { type: 'image_generation_call', id: 'ig_1', status: 'completed', result: PNG, output_format: 'png' },
    ]),
  ).toMatchObject([
    { role: 'user', content: 'go' },
    {
      role: 'assistant',
      content_items: [{ type: 'thinking', thinking: 'hm', signature: 'c2ln' }, { type: 'tool_call' }, { type: 'tool_call' }],
      tool_calls: [
        { id: 'c1', name: 'one', arguments: '{}' },
        { id: 'c2', name: 'two', arguments: '{"a":1}' },
      ],
    },
    { role: 'tool', tool_call_id: 'c1', content: 'ONE' },
    { role: 'tool', tool_call_id: 'c2', content: 'TWO', content_items: [{ type: 'text' }, { type: 'image', image: PNG }] },
    { role: 'assistant', content_items: [{ type: 'thinking', thinking: 'so' }, { type: 'tool_call' }], tool_calls: [{ name: 'three' }] },
    { role: 'tool', content: 'THREE' },
    { role: 'assistant', content_items: [{ type: 'image', image: PNG, format: 'png' }] },
  ])
})

for (const say of ['/think x', '/image', '/file', '/audio 0.1', '/video', '/tool add {"a":1,"b":2}']) {
  verifies('openai-responses.input-items', `${say}: sent back as input, the answer is what it was`, async () => {
    const { url } = await startServer(demo())
    const api = client(url)
    const { body: one } = await api.ask({ input: say })
    const history = async (body: object): Promise<string> => textOf((await api.ask(body)).body).replace(/ ?\[thinking[^\]]*\]/, '')
    const items = [{ role: 'user', content: say }, ...(one['output'] as object[]), { role: 'user', content: '/history' }]
    expect(await history({ input: items })).toBe(await history({ previous_response_id: one['id'], input: '/history' }))
  })
}

const message = (content: unknown): object => ({ input: [{ role: 'user', content }] })

/** Bad requests, and the field and code that each is refused with. */
const refused: readonly (readonly [name: string, body: unknown, param: string | null, code?: string])[] = [
  ['truncated JSON', '{"input":"x"', null, 'invalid_json'],
  ['not an object', '[]', null],
  ['nothing', '', null, 'invalid_json'],
  ['no input', {}, 'input', 'missing_required_parameter'],
  ['input of the wrong type', { input: 7 }, 'input'],
  ['stream: "yes"', { input: 'x', stream: 'yes' }, 'stream', 'invalid_type'],
  ['store: 1', { input: 'x', store: 1 }, 'store', 'invalid_type'],
  ['an unknown item', { input: [{ type: 'computer_call', id: '1' }] }, 'input[0].type'],
  ['an item that is no object', { input: ['x'] }, 'input[0]'],
  ['an unknown role', { input: [{ role: 'robot', content: 'x' }] }, 'input[0].role'],
  ['content of the wrong type', { input: [{ role: 'user', content: 7 }] }, 'input[0].content'],
  ['an unknown part', message([{ type: 'text', text: 'x' }]), 'input[0].content[0].type'],
  ['an image by file id', message([{ type: 'input_image', file_id: 'file-1' }]), 'input[0].content[0].file_id', 'file_not_found'],
  ['an image without a source', message([{ type: 'input_image' }]), 'input[0].content[0]', 'missing_required_parameter'],
  [
    'an image that is not base64',
    message([{ type: 'input_image', image_url: 'data:image/png;base64,!!!' }]),
    'input[0].content[0].image_url',
  ],
  ['an image of a strange scheme', message([{ type: 'input_image', image_url: 'file:///etc/passwd' }]), 'input[0].content[0].image_url'],
  ['a file by id', message([{ type: 'input_file', file_id: 'file-1' }]), 'input[0].content[0].file_id', 'file_not_found'],
  [
    'audio that is not base64',
    message([{ type: 'input_audio', input_audio: { data: '#', format: 'wav' } }]),
    'input[0].content[0].input_audio.data',
  ],
  ['a call without an id', { input: [{ type: 'function_call', name: 'f', arguments: '{}' }] }, 'input[0].call_id'],
  ['arguments that are no text', { input: [{ type: 'function_call', call_id: 'c', name: 'f', arguments: {} }] }, 'input[0].arguments'],
  ['an empty call id', { input: [{ type: 'function_call_output', call_id: '', output: 'x' }] }, 'input[0].call_id'],
  ['a tool without a name', { input: 'x', tools: [{ type: 'function' }] }, 'tools[0].name'],
  ['a tool with a strange name', { input: 'x', tools: [{ type: 'function', name: 'a b' }] }, 'tools[0].name'],
  ['too many tools', { input: 'x', tools: Array.from({ length: 129 }, () => ({ type: 'web_search' })) }, 'tools'],
  ['a format without a schema', { input: 'x', text: { format: { type: 'json_schema', name: 'n' } } }, 'text.format.schema'],
  ['an unknown format', { input: 'x', text: { format: { type: 'xml' } } }, 'text.format.type'],
  ['temperature too high', { input: 'x', temperature: 9 }, 'temperature'],
  ['no tokens at all', { input: 'x', max_output_tokens: 0 }, 'max_output_tokens'],
  ['metadata that is no object', { input: 'x', metadata: 'm' }, 'metadata'],
  ['an id of the wrong type', { input: 'x', previous_response_id: 7 }, 'previous_response_id'],
  ['an id that is too long', { input: 'x', previous_response_id: 'r'.repeat(300) }, 'previous_response_id'],
  ['an id that looks like a path', { input: 'x', previous_response_id: '../../x' }, 'previous_response_id', 'previous_response_not_found'],
  ['a conversation', { input: 'x', conversation: 'conv_1' }, 'conversation', 'unsupported_parameter'],
  ['a prompt', { input: 'x', prompt: { id: 'p' } }, 'prompt', 'unsupported_parameter'],
  ['too deep', `{"input":"x","metadata":${'{"a":'.repeat(100)}1${'}'.repeat(100)}}`, null],
]

verifies('openai-responses.bad-input', 'what is malformed is refused with the field that is wrong, and harms nothing', async () => {
  const { url, gateway } = await startServer(demo())
  const api = client(url)
  for (const [name, body, param, code] of refused) {
    const { status, body: answer } = await api.ask(body)
    const error = answer['error'] as Json
    expect([name, status, error['type'], error['param']]).toEqual([name, 400, 'invalid_request_error', param])
    expect(error['message'], name).toMatch(/\S/)
    if (code !== undefined) expect([name, error['code']]).toEqual([name, code])
  }
  expect(gateway.openSessions).toBe(0)
  expect((await api.ask({ input: 'still there' })).status).toBe(200)
})

verifies(
  'openai-responses.bad-input',
  'wrong methods, unknown paths, unknown ids and huge bodies are told in the form of OpenAI',
  async () => {
    const { url } = await startServer(demo(), { limits: { bodyBytes: 10_000 } })
    const api = client(url)
    const error = async (response: Response) => [response.status, ((await response.json()) as Json)['error'].type as unknown]
    expect(await error(await api.call('PUT', '', { body: {} }))).toEqual([405, 'invalid_request_error'])
    expect(await error(await api.call('POST', '/resp_1', { body: {} }))).toEqual([405, 'invalid_request_error'])
    expect(await error(await api.call('GET', '/resp_1'))).toEqual([404, 'invalid_request_error'])
    expect(await error(await api.call('GET', '/%2e%2e%2fx'))).toEqual([404, 'invalid_request_error'])
    expect(await error(await api.call('POST', '', { body: { input: 'x'.repeat(20_000) } }))).toEqual([413, 'invalid_request_error'])
  },
)

test('an answer of an odd agent is whole all the same', async () => {
  const agent = defineAgent('odd', async function* () {
    yield text('')
    yield { type: 'thinking', content: '', is_delta: true }
    yield { type: 'response.delta', delta: { type: 'tool_result', tool_result: { call_id: 'nobody', result: 'x' } } }
    yield { type: 'response.delta', delta: { type: 'tool_call', tool_call: { id: 'c', name: 'own', arguments: '' } } }
    yield { type: 'tool.call_done', call_id: 'c' }
    yield text('')
  })
  const { url } = await startServer(agent)
  const events = await client(url).stream({ input: 'x' })
  const response = events.at(-1)?.['response'] as Json
  expect(response['output']).toMatchObject([
    { type: 'reasoning', summary: [] },
    { type: 'mcp_call', name: 'own', status: 'incomplete' },
  ])
  expect(events.filter(({ type }) => type === 'response.output_item.done')).toHaveLength(2)
})
