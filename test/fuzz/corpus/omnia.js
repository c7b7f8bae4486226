// @ts-check
import { omniaFrame } from '../mutate/frames.js'
import { entry, get, post, request, socket } from './entry.js'

const COMMON = /** @type {const} */ ({ form: 'omnia' })
const TOOL = { type: 'function', function: { name: 'mine', description: 'x', parameters: { type: 'object', properties: {} } } }
const UPLOAD = { filename: 'a.txt', mime_type: 'text/plain', size_bytes: 5 }
/** Without its secret an upload is refused before its body is read. */
const UPLOAD_URL = '/media/upload/$upload?tenant=default&key=$uploadKey'
const RICH = {
  type: 'message',
  content: 'look',
  parts: [
    { type: 'text', text: 'hello' },
    { type: 'image', media: { data: 'iVBORw0KGgo=', mime_type: 'image/png', detail: 'low' } },
    { type: 'file', media: { storage_ref: '$upload', mime_type: 'text/plain', filename: 'a.txt', size_bytes: 5 } },
    { type: 'audio', media: { url: 'http://127.0.0.1:1/a.wav', mime_type: 'audio/wav', duration_ms: 5 } },
  ],
  metadata: { a: 'b' },
  consent_grants: ['x'],
  session_consent_grants: ['y'],
  ext: { tools: [TOOL] },
}
/** @param {string} content */
const say = (content) => ({ type: 'message', content })
const SOUND = omniaFrame({ meta: { codec: 'pcm16', sample_rate: 16_000, channels: 1 }, payload: Buffer.alloc(3200, 7) })

const CONVERSATIONS = [
  [say('hello'), RICH, { type: 'upload_request', upload_request: UPLOAD }, { type: 'hangup' }],
  [
    say('/approve x'),
    { type: 'tool_call_ack', tool_call_ack: { call_id: '$call' } },
    { type: 'tool_result', tool_result: { call_id: '$call', result: true } },
    { type: 'tool_call_nack', tool_call_nack: { call_id: 'none', reason: 'x' } },
  ],
  [
    SOUND,
    omniaFrame({ meta: {}, payload: Buffer.alloc(3200), sequence: 1, flags: 4 }),
    omniaFrame({ flags: 2, sequence: 7, payload: Buffer.alloc(100) }),
    omniaFrame({ type: 2 }),
    omniaFrame({ flags: 1, payload: Buffer.alloc(50) }),
    { type: 'hangup' },
  ],
  [
    say('/count 100 5'),
    say('another'),
    { type: 'tool_result', tool_result: { call_id: 'none', result: {}, error: 'x' } },
    { type: 'message', session_id: '$foreignSession', content: 'x' },
  ],
  [say('/audio 1'), say('/image'), say('/file'), say('/video'), say('/tool clock')],
]

/** @type {readonly import('./entry.js').Entry[]} */
export const omnia = [
  ...CONVERSATIONS.flatMap((frames) => [
    socket('/omnia?agent=demo', frames, { form: 'omnia' }),
    socket('/omnia?agent=demo&binary=true&resume=$omnia', frames, { form: 'omnia' }),
    socket('/?agent=asker', frames, { form: 'omnia', covers: ['WS /'] }),
    socket('/api/agents/default/demo/ws', frames, { form: 'omnia', covers: ['WS /api/agents/:namespace/:name/ws'] }),
  ]),
  socket('/omnia?agent=demo&resume=$foreignSession', [say('hello')], { form: 'omnia' }),
  entry('POST /media/request-upload', post('/media/request-upload', { session_id: '$omnia', ...UPLOAD }), COMMON),
  entry(
    'POST /media/request-upload',
    [
      post('/media/request-upload', { session_id: '$omnia', ...UPLOAD }),
      request('PUT', UPLOAD_URL, { body: Buffer.from('hello'), headers: { 'content-type': 'text/plain' } }),
      request('PUT', UPLOAD_URL, { body: Buffer.from('again') }),
      post('/media/confirm-upload/$upload'),
      get('/media/info/$omnia/$upload'),
      get('/media/download/$omnia/$upload', { range: 'bytes=1-3' }),
    ],
    {
      ...COMMON,
      // The upload needs no token; that the others do is seen where each is asked for alone.
      isPublic: true,
      covers: [
        'POST /media/request-upload',
        'PUT /media/upload/:id',
        'POST /media/confirm-upload/:id',
        'GET /media/info/:session/:id',
        'GET /media/download/:session/:id',
      ],
    },
  ),
  entry('PUT /media/upload/:id', request('PUT', UPLOAD_URL, { body: Buffer.alloc(100_000, 'x') }), { ...COMMON, isPublic: true }),
  entry('PUT /media/upload/:id', request('PUT', '/media/upload/$upload', { body: Buffer.alloc(100_000, 'x') }), {
    ...COMMON,
    isPublic: true,
  }),
  entry('POST /media/confirm-upload/:id', post('/media/confirm-upload/$upload'), COMMON),
  entry('GET /media/info/:session/:id', get('/media/info/$omnia/$upload'), COMMON),
  entry('GET /media/download/:session/:id', get('/media/download/$omnia/$upload'), COMMON),
]
