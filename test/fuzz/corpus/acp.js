// @ts-check
import { entry, get, post, request, socket } from './entry.js'

const RPC = /** @type {const} */ ({ form: 'rpc' })
const STREAM = { accept: 'text/event-stream' }
const CONNECTION = { 'acp-connection-id': '$connection' }
const SESSION = { ...CONNECTION, 'acp-session-id': '$acpSession' }
const FOLDER = { cwd: '/project', mcpServers: [] }
const TEXT = [{ type: 'text', text: 'hello' }]
const RICH = [
  { type: 'text', text: 'look', annotations: { audience: ['user'], priority: 1 } },
  { type: 'image', data: 'iVBORw0KGgo=', mimeType: 'image/png' },
  { type: 'audio', data: 'AAAA', mimeType: 'audio/wav' },
  { type: 'resource_link', uri: 'file:///a', name: 'a', mimeType: 'text/plain', size: 1 },
  { type: 'resource', resource: { uri: 'file:///a', text: 'x', mimeType: 'text/plain' } },
]

let last = 0
/** @param {string} method @param {unknown} [params] */
const ask = (method, params) => ({ jsonrpc: '2.0', id: ++last, method, params })
/** @param {string} method @param {unknown} [params] */
const tell = (method, params) => ({ jsonrpc: '2.0', method, params })
const INITIALIZE = ask('initialize', {
  protocolVersion: 1,
  clientCapabilities: { fs: { readTextFile: true, writeTextFile: true }, terminal: true, _meta: {} },
  clientInfo: { name: 'fuzz', version: '1' },
})
/** @param {unknown} prompt */
const prompt = (prompt) => ask('session/prompt', { sessionId: '$acpSession', prompt, _meta: { a: 1 } })

const CONVERSATIONS = [
  [INITIALIZE, ask('session/new', FOLDER), prompt(TEXT), prompt(RICH), tell('session/cancel', { sessionId: '$acpSession' })],
  [
    INITIALIZE,
    ask('authenticate', { methodId: 'uamp' }),
    ask('session/new', {
      ...FOLDER,
      additionalDirectories: ['/x'],
      mcpServers: [{ type: 'http', name: 'm', url: '$webhook', headers: [{ name: 'a', value: 'b' }] }],
    }),
    prompt([{ type: 'text', text: '/tool clock' }]),
  ],
  [
    INITIALIZE,
    ask('session/new', FOLDER),
    prompt([{ type: 'text', text: '/approve x' }]),
    { jsonrpc: '2.0', id: 0, result: { outcome: { outcome: 'selected', optionId: 'allow' } } },
    { jsonrpc: '2.0', id: 1, result: { outcome: { outcome: 'cancelled' } } },
  ],
  [
    INITIALIZE,
    ask('session/new', FOLDER),
    prompt([{ type: 'text', text: '/count 100 5' }]),
    tell('session/cancel', { sessionId: '$acpSession' }),
    tell('$/cancel_request', { requestId: 3 }),
    ask('session/close', { sessionId: '$acpSession' }),
    prompt(TEXT),
  ],
  [
    INITIALIZE,
    ask('session/list', { cwd: '/project', cursor: null }),
    ask('session/load', { sessionId: '$acpSession', ...FOLDER }),
    ask('session/resume', { sessionId: '$acpSession', ...FOLDER }),
    ask('session/load', { sessionId: '$foreignSession', ...FOLDER }),
    ask('session/set_mode', { sessionId: '$acpSession', modeId: 'x' }),
    ask('session/set_config_option', { sessionId: '$acpSession', configId: 'x', value: true }),
    ask('session/delete', { sessionId: '$acpSession' }),
  ],
  // The methods of UAMP transports.
  [
    ask('initialize', { protocolVersion: '1.0' }),
    ask('tools/list'),
    ask('tools/call', { name: 'add', arguments: { a: 1, b: 2 } }),
    ask('capabilities'),
    ask('prompt/submit', { messages: [{ role: 'user', content: 'hello' }], payment_token: 't' }),
    ask('chat/submit', { messages: [{ role: 'user', content: '/count 5' }] }),
  ],
  // Answers to what nobody asked.
  [
    { jsonrpc: '2.0', id: 99, result: {} },
    { jsonrpc: '2.0', id: 99, error: { code: -1, message: 'x' } },
    INITIALIZE,
    INITIALIZE,
    prompt(TEXT),
    ask('nothing/at/all', {}),
    [INITIALIZE, INITIALIZE],
  ],
]

/** @type {readonly import('./entry.js').Entry[]} */
export const acp = [
  entry('POST /acp', post('/acp', INITIALIZE), RPC),
  entry(
    'POST /acp',
    [
      post('/acp', INITIALIZE),
      post('/acp', ask('session/new', FOLDER), CONNECTION),
      get('/acp', { ...CONNECTION, ...STREAM }),
      request('DELETE', '/acp', { headers: CONNECTION }),
      post('/acp', ask('session/list', {}), CONNECTION),
    ],
    { ...RPC, covers: ['POST /acp', 'GET /acp', 'DELETE /acp'] },
  ),
  entry('POST /acp', post('/acp', prompt(TEXT), SESSION), RPC),
  entry('POST /acp', post('/acp', tell('session/cancel', { sessionId: '$acpSession' }), SESSION), RPC),
  entry('GET /acp', get('/acp', { ...SESSION, ...STREAM, 'last-event-id': '5' }), RPC),
  entry('GET /acp', get('/acp', { ...CONNECTION, ...STREAM }), RPC),
  entry('DELETE /acp', request('DELETE', '/acp', { headers: { 'acp-connection-id': 'none' } }), RPC),
  ...(CONVERSATIONS[5] ?? []).map((message) => entry('POST /acp', post('/acp', message), RPC)),
  entry('POST /acp', post('/acp', ask('prompt/submit', { messages: [{ role: 'user', content: '/count 10' }] }), STREAM), RPC),
  ...['/acp', '/acp/stream'].flatMap((path) => CONVERSATIONS.map((frames) => socket(path, frames, { form: 'rpc' }))),
]
