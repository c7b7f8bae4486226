// @ts-check
import { entry, get, post, request, socket } from './entry.js'

const COMMON = /** @type {const} */ ({ form: 'openai' })
const TOOL = {
  type: 'function',
  function: {
    name: 'mine',
    description: 'x',
    parameters: { type: 'object', properties: { a: { type: 'number' } }, required: ['a'] },
    strict: true,
  },
}
const CHAT = {
  model: 'demo',
  messages: [
    { role: 'system', content: 'Be brief' },
    {
      role: 'user',
      content: [
        { type: 'text', text: 'hello' },
        { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=', detail: 'low' } },
        { type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } },
        { type: 'file', file: { filename: 'a.txt', file_data: 'data:text/plain;base64,YQ==' } },
      ],
    },
    { role: 'assistant', content: 'hi', tool_calls: [{ id: 'c1', type: 'function', function: { name: 'mine', arguments: '{"a":1}' } }] },
    { role: 'tool', tool_call_id: 'c1', content: '2' },
    { role: 'user', content: 'and?' },
  ],
  temperature: 1,
  top_p: 1,
  n: 1,
  stop: ['x'],
  max_tokens: 100,
  max_completion_tokens: 100,
  presence_penalty: 0,
  logit_bias: { 1: 1 },
  user: 'u',
  seed: 1,
  tools: [TOOL],
  tool_choice: 'auto',
  parallel_tool_calls: true,
  response_format: {
    type: 'json_schema',
    json_schema: { name: 'x', schema: { type: 'object', properties: { a: { type: 'string' } } }, strict: true },
  },
  stream: false,
  stream_options: { include_usage: true },
  metadata: { a: 'b' },
  modalities: ['text'],
}
const STREAMED = {
  model: 'demo',
  messages: [{ role: 'user', content: '/count 20' }],
  stream: true,
  stream_options: { include_usage: true },
  store: true,
  n: 2,
}
/** @param {string} text @param {object} [more] */
const ask = (text, more) => ({ model: 'asker', messages: [{ role: 'user', content: text }], ...more })

const FLAT = { type: 'function', name: 'mine', description: 'x', parameters: { type: 'object', properties: {} }, strict: false }
const CREATE = {
  model: 'demo',
  input: [
    { role: 'user', content: 'hello' },
    {
      type: 'message',
      role: 'user',
      content: [
        { type: 'input_text', text: 'x' },
        { type: 'input_image', image_url: 'data:image/png;base64,iVBORw0KGgo=', detail: 'auto' },
        { type: 'input_file', filename: 'a.txt', file_data: 'data:text/plain;base64,YQ==' },
        { type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } },
      ],
    },
    { type: 'function_call', call_id: 'c1', name: 'mine', arguments: '{}' },
    { type: 'function_call_output', call_id: 'c1', output: 'x' },
    { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'x' }] },
    { role: 'user', content: 'so?' },
  ],
  instructions: 'Be brief',
  tools: [FLAT, { type: 'web_search' }],
  tool_choice: 'auto',
  parallel_tool_calls: true,
  text: { format: { type: 'json_schema', name: 'x', schema: { type: 'object' }, strict: false } },
  reasoning: { effort: 'low' },
  max_output_tokens: 100,
  temperature: 1,
  top_p: 1,
  metadata: { a: 'b' },
  truncation: 'auto',
  include: ['reasoning.encrypted_content'],
  store: true,
}
const SHORT = { model: 'demo', input: 'hello' }

/** @param {string} base */
const responsesAt = (base) => [
  entry(`POST ${base}/input_tokens`, post(`${base}/input_tokens`, CREATE), COMMON),
  entry(`POST ${base}/compact`, post(`${base}/compact`, { ...SHORT, previous_response_id: '$response' }), COMMON),
  entry(`POST ${base}`, post(base, CREATE), COMMON),
  entry(`POST ${base}`, post(base, { ...SHORT, stream: true }), COMMON),
  entry(`POST ${base}`, post(base, { ...SHORT, store: false, input: '/tool add {"a":1,"b":2}' }), COMMON),
  entry(
    `POST ${base}`,
    [
      post(base, SHORT),
      post(base, {
        ...SHORT,
        input: [
          { type: 'item_reference', id: 'msg_x' },
          { role: 'user', content: '/history' },
        ],
        previous_response_id: '$response',
      }),
      post(base, { ...SHORT, previous_response_id: '$response', stream: true }),
    ],
    COMMON,
  ),
  entry(
    `POST ${base}`,
    [
      post(base, { ...SHORT, input: '/approve x' }),
      post(base, {
        model: 'demo',
        previous_response_id: '$response',
        input: [{ type: 'mcp_approval_response', approval_request_id: '$approval', approve: true }],
      }),
    ],
    COMMON,
  ),
  entry(
    `POST ${base}`,
    [
      post(base, { model: 'asker', input: 'call', tools: [FLAT] }),
      post(base, {
        model: 'asker',
        previous_response_id: '$response',
        input: [{ type: 'function_call_output', call_id: '$call', output: '1' }],
      }),
    ],
    COMMON,
  ),
  entry(`GET ${base}/:id`, get(`${base}/$response`), COMMON),
  entry(`GET ${base}/:id`, get(`${base}/$response?stream=true&starting_after=1&include[]=x`), COMMON),
  entry(`GET ${base}/:id/input_items`, get(`${base}/$response/input_items?limit=2&order=asc&after=x`), COMMON),
  entry(
    `POST ${base}/:id/cancel`,
    [
      post(base, { ...SHORT, input: '/count 100 10', background: true }),
      post(`${base}/$response/cancel`),
      get(`${base}/$response?stream=true`),
    ],
    { ...COMMON, covers: [`POST ${base}/:id/cancel`, `POST ${base}`] },
  ),
  entry(
    `DELETE ${base}/:id`,
    [
      post(base, SHORT),
      request('DELETE', `${base}/$response`),
      get(`${base}/$response`),
      request('DELETE', `${base}/$response`),
      post(base, { ...SHORT, previous_response_id: '$response' }),
    ],
    { ...COMMON, covers: [`DELETE ${base}/:id`] },
  ),
  entry(`GET ${base}/:id`, get(`${base}/$foreignResponse`), COMMON),
  socket(
    base,
    [
      { type: 'response.create', ...CREATE },
      { type: 'response.create', ...SHORT, stream_id: 's1', generate: true },
      { type: 'response.cancel', response_id: '$response' },
      { type: 'response.create', model: 'demo', input: 'more', previous_response_id: '$response' },
    ],
    { form: 'openai' },
  ),
]

const SESSION_GA = {
  type: 'session.update',
  session: {
    type: 'realtime',
    output_modalities: ['audio'],
    instructions: 'x',
    tools: [FLAT],
    tool_choice: 'auto',
    max_output_tokens: 'inf',
    audio: {
      input: {
        format: { type: 'audio/pcm', rate: 24000 },
        turn_detection: {
          type: 'server_vad',
          threshold: 0.5,
          prefix_padding_ms: 300,
          silence_duration_ms: 200,
          create_response: true,
          interrupt_response: true,
        },
        transcription: { model: 'x' },
      },
      output: { voice: 'alloy', speed: 1, format: { type: 'audio/pcmu' } },
    },
  },
}
const SESSION_BETA = {
  type: 'session.update',
  session: {
    modalities: ['text', 'audio'],
    voice: 'alloy',
    input_audio_format: 'pcm16',
    output_audio_format: 'g711_ulaw',
    turn_detection: null,
    tools: [FLAT],
    temperature: 0.8,
    max_response_output_tokens: 100,
  },
}
const ITEM = {
  type: 'conversation.item.create',
  previous_item_id: null,
  item: {
    id: 'item1',
    type: 'message',
    role: 'user',
    content: [
      { type: 'input_text', text: 'hello' },
      { type: 'input_audio', audio: 'AAAA' },
    ],
  },
}
const SOUND = { type: 'input_audio_buffer.append', audio: Buffer.alloc(9600, 40).toString('base64') }
const TALK = [
  ITEM,
  {
    type: 'response.create',
    response: { instructions: 'x', conversation: 'auto', metadata: { a: 'b' }, input: [{ type: 'item_reference', id: 'item1' }] },
  },
  { type: 'response.cancel', response_id: '$response' },
  SOUND,
  SOUND,
  { type: 'input_audio_buffer.commit' },
  { type: 'input_audio_buffer.clear' },
  { type: 'output_audio_buffer.clear' },
  { type: 'conversation.item.retrieve', item_id: 'item1' },
  { type: 'conversation.item.truncate', item_id: '$item', content_index: 0, audio_end_ms: 10 },
  { type: 'conversation.item.create', item: { type: 'function_call_output', call_id: 'none', output: 'x' } },
  { type: 'conversation.item.delete', item_id: 'item1' },
  { type: 'payment.submit', payment: { scheme: 'token', token: 'x' } },
  { type: 'response.create' },
]

/** @type {readonly import('./entry.js').Entry[]} */
export const openai = [
  ...['/chat/completions', '/v1/chat/completions'].flatMap((path) => [
    entry(`POST ${path}`, post(path, CHAT), COMMON),
    entry(`POST ${path}`, post(path, STREAMED), COMMON),
    entry(`POST ${path}`, post(path, ask('call', { tools: [TOOL], functions: [TOOL.function], function_call: 'auto' })), COMMON),
    entry(`POST ${path}`, post(path, ask('pay', { stream: true }), { 'x-payment': 'eyJzY2hlbWUiOiJ0b2tlbiJ9' }), COMMON),
    entry(`POST ${path}`, post(path, ask('ask')), COMMON),
    entry(
      `POST ${path}`,
      post(path, {
        model: 'demo',
        messages: [{ role: 'user', content: '/audio 1' }],
        modalities: ['text', 'audio'],
        audio: { voice: 'alloy', format: 'wav' },
      }),
      COMMON,
    ),
  ]),
  ...['/chat/completions', '/v1/chat/completions'].flatMap((path) => [
    entry(`GET ${path}`, get(`${path}?limit=2&order=desc&model=demo&after=$completion&metadata[a]=b`), COMMON),
    entry(`GET ${path}/:id`, get(`${path}/$completion`), COMMON),
    entry(`POST ${path}/:id`, post(`${path}/$completion`, { metadata: { a: 'b' } }), COMMON),
    entry(`GET ${path}/:id/messages`, get(`${path}/$completion/messages?limit=2&order=asc`), COMMON),
    entry(`DELETE ${path}/:id`, [post(path, ask('x', { store: true })), request('DELETE', `${path}/$completion`)], COMMON),
  ]),
  ...['/models', '/v1/models'].flatMap((path) => [
    entry(`GET ${path}`, get(path), COMMON),
    entry(`GET ${path}/:id`, get(`${path}/demo`), COMMON),
  ]),
  entry('GET /capabilities', get('/capabilities'), { ...COMMON, isPublic: true }),
  ...['/responses', '/v1/responses'].flatMap(responsesAt),
  socket('/v1/realtime?model=demo', [SESSION_GA, ...TALK], { form: 'openai', headers: { 'sec-websocket-protocol': 'realtime' } }),
  socket('/realtime?model=demo', [SESSION_BETA, ...TALK], { form: 'openai', headers: { 'openai-beta': 'realtime=v1' } }),
  socket('/realtime', [...TALK, SESSION_GA], { form: 'openai' }),
  socket(
    '/v1/realtime?model=asker',
    [
      { ...ITEM, item: { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'call' }] } },
      { type: 'response.create' },
      { type: 'conversation.item.create', item: { type: 'function_call_output', call_id: '$call', output: '1' } },
      { type: 'response.create' },
    ],
    { form: 'openai' },
  ),
]
