// @ts-check
import { entry, get, post, socket } from './entry.js'

const TOOL = {
  type: 'function',
  function: { name: 'mine', description: 'A tool of the client', parameters: { type: 'object', properties: { a: { type: 'string' } } } },
}
const SESSION = {
  type: 'session.create',
  uamp_version: '1.0',
  session: {
    modalities: ['text', 'audio'],
    instructions: 'Be brief',
    tools: [TOOL],
    response_format: { type: 'json_schema', json_schema: { name: 'x', schema: { type: 'object', properties: { a: { type: 'string' } } } } },
    extensions: { a: 1 },
  },
  client_capabilities: {
    id: 'fuzz',
    provider: 'x',
    modalities: ['text'],
    supports_streaming: true,
    supports_thinking: true,
    supports_caching: false,
    extensions: { uamp: { events: 'all' } },
  },
  metadata: { a: 'b' },
}
const TEXT = { type: 'input.text', text: 'hello', role: 'user', context: { a: 1 } }
const MESSAGES = {
  type: 'input.text',
  text: 'hi',
  messages: [
    { role: 'user', content: 'a' },
    { role: 'assistant', content: 'b' },
  ],
}
const IMAGE = { type: 'input.image', image: 'iVBORw0KGgo=', format: 'png', detail: 'low', content_id: 'c1' }
const AUDIO = { type: 'input.audio', audio: 'AAAAAAAA', format: 'pcm16', is_final: true }
const FILE = { type: 'input.file', file: 'YSxi', filename: 'a.csv', mime_type: 'text/csv', description: 'x' }
const VIDEO = { type: 'input.video', video: { url: 'http://127.0.0.1:1/v.mp4' }, format: 'mp4' }
const CREATE = {
  type: 'response.create',
  response: { modalities: ['text'], instructions: 'x', tools: [TOOL], extensions: {} },
  response_format: { type: 'text' },
}
const COMMON = /** @type {const} */ ({ form: 'uamp' })
const OF = { 'x-session-id': '$session' }
const STREAM = { accept: 'text/event-stream' }

/** A conversation by WebSocket. @param {string} text @param {readonly unknown[]} [more] */
const talk = (text, more = []) => [SESSION, { ...TEXT, text }, CREATE, ...more]

const SOCKETS = [
  talk('hello', [{ type: 'ping' }, IMAGE, AUDIO, FILE, VIDEO, CREATE, { type: 'session.end', reason: 'over' }]),
  talk('/count 100 5', [{ type: 'response.cancel', response_id: '$turn' }, { type: 'response.cancel' }, CREATE]),
  talk('/approve it', [
    { type: 'x.approval.response', approval_id: '$approval', approved: true, option: 'a', reason: 'b' },
    { type: 'ping' },
  ]),
  [
    { ...SESSION, agent: 'asker' },
    { ...TEXT, text: 'call' },
    CREATE,
    { type: 'tool.result', call_id: '$call', result: '{"a":1}', is_error: false, content_items: [{ type: 'text', text: 'x' }] },
  ],
  [
    { ...SESSION, agent: 'asker' },
    { ...TEXT, text: 'pay' },
    CREATE,
    { type: 'payment.submit', payment: { scheme: 'token', network: 'x', token: 't', amount: '1', proof: { a: 1 } } },
  ],
  [{ ...SESSION, agent: 'asker' }, { ...TEXT, text: 'plan' }, CREATE],
  [
    SESSION,
    { type: 'session.update', session: { instructions: 'Be long', tools: [] } },
    { type: 'capabilities.query', model: 'demo' },
    { type: 'client.capabilities', capabilities: SESSION.client_capabilities },
    MESSAGES,
    CREATE,
  ],
  [
    SESSION,
    { type: 'input.typing', is_typing: true, chat_id: 'c' },
    { type: 'message.read', chat_id: 'c', user_id: 'u', last_read_at: 1 },
    { type: 'voice.invite', voice: {}, offer: { sdp: 'x' } },
    { type: 'voice.accept', answer: {} },
    { type: 'voice.decline', reason: 'x' },
    { type: 'voice.end', duration_ms: 5 },
  ],
  // Of what was never asked, what is somebody else's, and what has not been yet.
  [
    SESSION,
    { type: 'tool.result', call_id: 'none', result: '1' },
    { type: 'x.approval.response', approval_id: 'none', approved: true },
    { type: 'payment.submit', payment: { scheme: 'declined' } },
    { type: 'response.cancel', response_id: 'none' },
    CREATE,
    CREATE,
  ],
  [
    { type: 'session.resume', session_id: '$session', after: 999_999_999_999 },
    { ...SESSION, extensions: { uamp: { resume: { session_id: '$session', after: 999_999_999_999 } } } },
    { ...TEXT, session_id: '$foreignSession' },
    { ...CREATE, session_id: '$session' },
  ],
  [
    SESSION,
    SESSION,
    SESSION,
    { ...TEXT, session_id: '$session' },
    { ...CREATE, session_id: '$session' },
    { type: 'session.end', session_id: '$session' },
    { ...TEXT, session_id: '$session' },
  ],
]

/** @type {readonly import('./entry.js').Entry[]} */
export const events = [
  entry('POST /events', post('/events', SESSION), COMMON),
  entry('POST /events', post('/events', [SESSION, TEXT, CREATE], STREAM), COMMON),
  entry('POST /events', post('/events', [SESSION, IMAGE, AUDIO, FILE, VIDEO, TEXT, CREATE], STREAM), COMMON),
  entry('POST /events', post('/events', [TEXT, CREATE], { ...OF, ...STREAM }), COMMON),
  entry('POST /events', post('/events', { type: 'ping' }), COMMON),
  entry(
    'POST /events',
    [
      post('/events', SESSION),
      post('/events', [{ ...TEXT, text: '/count 50 5' }, CREATE], OF),
      post('/events', { type: 'response.cancel' }, OF),
      post('/events', { type: 'session.end' }, OF),
      post('/events', [TEXT, CREATE], OF),
    ],
    COMMON,
  ),
  entry(
    'POST /events',
    [
      post('/events', { ...SESSION, agent: 'asker' }),
      post('/events', [{ ...TEXT, text: 'ask' }, CREATE], { ...OF, ...STREAM }),
      post('/events', { type: 'x.approval.response', approval_id: '$approval', approved: false }, OF),
      get('/events/stream?session_id=$session&extensions=all'),
    ],
    COMMON,
  ),
  entry('GET /events/stream', get('/events/stream', { ...OF, 'last-event-id': '0' }), COMMON),
  entry('GET /events/stream', get('/events/stream?session_id=$session&after=head&extensions=all'), COMMON),
  entry('GET /events/stream', get('/events/stream?session_id=$session&after=999999999999'), COMMON),
  entry('GET /schemas/events.json', get('/schemas/events.json'), { ...COMMON, isPublic: true }),
  ...['/uamp', '/ws'].flatMap((path) => SOCKETS.map((frames) => socket(path, frames, { takesToken: true }))),
  socket('/uamp', talk('hello'), { takesToken: true, headers: { 'sec-websocket-protocol': 'uamp' } }),
  socket('/uamp', talk('hello'), {
    takesToken: true,
    headers: { 'sec-websocket-extensions': 'permessage-deflate; client_max_window_bits' },
  }),
]
