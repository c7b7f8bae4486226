// @ts-check
import { entry, get, post } from './entry.js'

const COMMON = /** @type {const} */ ({ form: 'uamp' })
const STREAM = { accept: 'text/event-stream' }
const RUN = {
  threadId: '$thread',
  runId: 'run-$any',
  state: { a: [1, { b: null }] },
  messages: [
    { id: 'm1', role: 'system', content: 'Be brief' },
    {
      id: 'm2',
      role: 'user',
      content: [
        { type: 'text', text: 'hello' },
        { type: 'image', source: { type: 'data', value: 'iVBORw0KGgo=', mimeType: 'image/png' } },
        { type: 'binary', mimeType: 'text/plain', data: 'YQ==', filename: 'a.txt' },
      ],
    },
    {
      id: 'm3',
      role: 'assistant',
      content: 'hi',
      toolCalls: [{ id: 'c1', type: 'function', function: { name: 'mine', arguments: '{}' } }],
    },
    { id: 'm4', role: 'tool', toolCallId: 'c1', content: 'x', error: null },
    { id: 'm5', role: 'user', content: 'so?' },
  ],
  tools: [{ name: 'mine', description: 'x', parameters: { type: 'object', properties: {} } }],
  context: [{ description: 'a', value: 'b' }],
  forwardedProps: { uamp: { detach: true, payment_token: 't' } },
}
/** @param {string} text @param {object} [more] */
const say = (text, more) => ({
  threadId: 'thread-$any',
  runId: 'run-$any',
  messages: [{ id: 'u1', role: 'user', content: text }],
  tools: [],
  context: [],
  state: {},
  ...more,
})

/** @type {readonly import('./entry.js').Entry[]} */
export const agUi = [
  entry('POST /ag-ui', post('/ag-ui', RUN, STREAM), COMMON),
  entry('POST /ag-ui', post('/ag-ui', say('/state'), STREAM), COMMON),
  entry('POST /ag-ui', post('/ag-ui', say('/think x'), { accept: 'application/vnd.ag-ui.event+proto' }), COMMON),
  entry(
    'POST /ag-ui',
    [
      post('/ag-ui', say('/approve x'), STREAM),
      post(
        '/ag-ui',
        say('/approve x', {
          runId: 'second-$any',
          resume: [{ interruptId: '$interrupt', status: 'resolved', payload: { approved: true } }],
        }),
        STREAM,
      ),
    ],
    COMMON,
  ),
  entry(
    'POST /ag-ui',
    [post('/ag-ui', say('/count 100 5'), STREAM), post('/ag-ui', say('/count 100 5'), STREAM), get('/ag-ui/runs/run-$any', STREAM)],
    { ...COMMON, covers: ['POST /ag-ui', 'GET /ag-ui/runs/:runId'] },
  ),
  entry('POST /ag-ui', post('/agents/asker/ag-ui', say('call', { tools: RUN.tools }), STREAM), COMMON),
  entry('POST /ag-ui', post('/ag-ui', say('x', { resume: { interruptId: 'none', payload: true } }), STREAM), COMMON),
  entry('GET /ag-ui/runs/:runId', get('/ag-ui/runs/$run?after=0', STREAM), COMMON),
  entry('GET /ag-ui/runs/:runId', get('/ag-ui/runs/$run', { ...STREAM, 'last-event-id': '999999999999' }), COMMON),
  entry('GET /ag-ui/threads/:threadId', get('/ag-ui/threads/$thread'), COMMON),
  entry('GET /ag-ui/capabilities', get('/ag-ui/capabilities'), { ...COMMON, isPublic: true }),
]
