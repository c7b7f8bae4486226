// @ts-check
import { entry, get, post, request } from './entry.js'

const WEBHOOK = '$webhook'
const V1 = { 'a2a-version': '1.0' }
const STREAM = { accept: 'text/event-stream' }

/** @param {string} text @param {object} [more] */
const message = (text, more) => ({ messageId: 'm1', role: 'ROLE_USER', parts: [{ text }], ...more })
const RICH = {
  message: {
    messageId: 'm2',
    role: 'ROLE_USER',
    parts: [
      { text: 'hello', metadata: { a: 1 } },
      { raw: 'YQ==', mediaType: 'text/plain', filename: 'a.txt' },
      { url: 'http://127.0.0.1:1/x.png', mediaType: 'image/png' },
      { data: { a: [1, null] } },
    ],
    contextId: '$context',
    metadata: { a: 'b' },
    extensions: ['https://example.invalid/ext'],
    referenceTaskIds: ['$task'],
  },
  configuration: {
    acceptedOutputModes: ['text/plain'],
    historyLength: 5,
    returnImmediately: true,
    taskPushNotificationConfig: { url: WEBHOOK, token: 't', authentication: { scheme: 'Bearer', credentials: 'c' } },
  },
  metadata: { a: 'b' },
}
const PUSH = { id: 'p1', url: WEBHOOK, token: 'x', authentication: { scheme: 'Bearer', credentials: 'y' } }

/** @param {string} method @param {unknown} params @param {Readonly<Record<string, string>>} [headers] */
const rpc = (method, params, headers = V1) => post('/a2a', { jsonrpc: '2.0', id: 1, method, params }, headers)

/** @param {string} text */
const old = (text) => ({
  kind: 'message',
  messageId: 'm3',
  role: 'user',
  parts: [
    { kind: 'text', text },
    { kind: 'file', file: { name: 'a', mimeType: 'text/plain', bytes: 'YQ==' } },
    { kind: 'data', data: { a: 1 } },
  ],
})
const V03 = { 'a2a-version': '0.3' }
const CONFIG_03 = {
  taskId: '$task',
  pushNotificationConfig: { id: 'p2', url: WEBHOOK, token: 't', authentication: { schemes: ['Bearer'], credentials: 'c' } },
}
const SENT_03 = {
  message: old('hello'),
  configuration: {
    acceptedOutputModes: ['text'],
    blocking: true,
    historyLength: 1,
    pushNotificationConfig: CONFIG_03.pushNotificationConfig,
  },
  metadata: {},
}
const SENT_01 = {
  id: 'task-01',
  sessionId: 's',
  message: { role: 'user', parts: [{ type: 'text', text: 'hello' }] },
  historyLength: 2,
  acceptedOutputModes: ['text'],
  pushNotification: { url: WEBHOOK },
}

const REQUESTS = [
  rpc('SendMessage', RICH),
  rpc('SendMessage', { message: message('/count 5') }),
  rpc('SendStreamingMessage', { message: message('/count 20 2') }, { ...V1, ...STREAM }),
  rpc('GetTask', { id: '$task', historyLength: 3 }),
  rpc('ListTasks', {
    contextId: '$context',
    status: 'TASK_STATE_COMPLETED',
    pageSize: 5,
    pageToken: '$page',
    historyLength: 1,
    statusTimestampAfter: '2025-10-28T10:30:00.000Z',
    includeArtifacts: true,
  }),
  rpc('CancelTask', { id: '$waiting', metadata: {} }),
  rpc('SubscribeToTask', { id: '$waiting' }, { ...V1, ...STREAM, 'last-event-id': '1' }),
  rpc('CreateTaskPushNotificationConfig', { taskId: '$task', ...PUSH }),
  rpc('GetTaskPushNotificationConfig', { taskId: '$task', id: 'p1' }),
  rpc('ListTaskPushNotificationConfigs', { taskId: '$task', pageSize: 2, pageToken: '' }),
  rpc('DeleteTaskPushNotificationConfig', { taskId: '$task', id: 'p1' }),
  rpc('GetExtendedAgentCard', {}),
  rpc('GetTask', { id: '$foreignTask' }),
  rpc('message/send', SENT_03, V03),
  rpc('message/stream', SENT_03, { ...V03, ...STREAM }),
  rpc('tasks/get', { id: '$task', historyLength: 1 }, V03),
  rpc('tasks/cancel', { id: '$waiting' }, V03),
  rpc('tasks/resubscribe', { id: '$task' }, { ...V03, ...STREAM }),
  rpc('tasks/pushNotificationConfig/set', CONFIG_03, V03),
  rpc('tasks/pushNotificationConfig/get', { id: '$task', pushNotificationConfigId: 'p2' }, V03),
  rpc('tasks/pushNotificationConfig/list', { id: '$task' }, V03),
  rpc('tasks/pushNotificationConfig/delete', { id: '$task', pushNotificationConfigId: 'p2' }, V03),
  rpc('agent/getAuthenticatedExtendedCard', undefined, V03),
  rpc('tasks/send', SENT_01, {}),
  rpc('tasks/sendSubscribe', SENT_01, STREAM),
  rpc('tasks/pushNotification/set', { id: 'task-01', pushNotificationConfig: { url: WEBHOOK } }, {}),
  rpc('tasks/pushNotification/get', { id: 'task-01' }, {}),
]
const RPC = /** @type {const} */ ({ form: 'rpc' })
const REST = /** @type {const} */ ({ form: 'status' })
const REST_03 = /** @type {const} */ ({ form: 'status03' })
const TASKS = /** @type {const} */ ({ form: 'tasks' })
const at = (/** @type {string} */ path) => `/a2a/rest${path}`
const at03 = (/** @type {string} */ path) => `/a2a/rest/v1${path}`
const PROTO = {
  message: {
    messageId: 'm4',
    role: 'ROLE_USER',
    content: [{ text: 'hello' }, { file: { fileWithBytes: 'YQ==', mimeType: 'text/plain' } }, { data: { data: { a: 1 } } }],
  },
  configuration: { blocking: true },
}

/** @type {readonly import('./entry.js').Entry[]} */
export const a2a = [
  ...['/.well-known/agent-card.json', '/.well-known/agent.json'].map((path) => entry(`GET ${path}`, get(path), { ...RPC, isPublic: true })),
  ...REQUESTS.map((each) => entry('POST /a2a', each, RPC)),
  entry('POST /a2a/', { .../** @type {import('./entry.js').Request} */ (REQUESTS[1]), target: '/a2a/' }, RPC),
  // A task that waits, answered by two at once, cancelled, and looked at.
  entry(
    'POST /a2a',
    [
      rpc('SendMessage', { message: message('/approve x', { messageId: 'm5' }) }),
      rpc('SendMessage', { message: message('yes', { taskId: '$task', contextId: '$context', messageId: 'm6' }) }),
      rpc('CancelTask', { id: '$task' }),
      rpc('GetTask', { id: '$task' }),
    ],
    RPC,
  ),
  entry(
    'POST /a2a',
    post(
      '/a2a',
      [
        { jsonrpc: '2.0', id: 'a', method: 'GetTask', params: { id: '$task' } },
        { jsonrpc: '2.0', method: 'GetTask' },
      ],
      V1,
    ),
    RPC,
  ),
  entry('POST /a2a/rest/*', post(at('/message:send'), RICH, V1), REST),
  entry('POST /a2a/rest/*', post(at('/message:stream'), { message: message('/count 10') }, { ...V1, ...STREAM }), REST),
  entry('POST /a2a/rest/*', post(at('/demo/message:send'), { message: message('hi') }, V1), REST),
  entry('GET /a2a/rest/*', get(at('/tasks?pageSize=2&status=TASK_STATE_COMPLETED&includeArtifacts=true&contextId=$context'), V1), REST),
  entry('GET /a2a/rest/*', get(at('/tasks/$task?historyLength=2'), V1), REST),
  entry('GET /a2a/rest/*', get(at('/tasks/$waiting:subscribe'), { ...V1, ...STREAM }), REST),
  entry('POST /a2a/rest/*', post(at('/tasks/$waiting:cancel'), {}, V1), REST),
  entry('GET /a2a/rest/*', get(at('/extendedAgentCard'), V1), REST),
  entry(
    'POST /a2a/rest/*',
    [
      post(at('/tasks/$task/pushNotificationConfigs'), PUSH, V1),
      get(at('/tasks/$task/pushNotificationConfigs'), V1),
      get(at('/tasks/$task/pushNotificationConfigs/p1'), V1),
    ],
    REST,
  ),
  entry('DELETE /a2a/rest/*', request('DELETE', at('/tasks/$task/pushNotificationConfigs/p1'), { headers: V1 }), REST),
  entry('POST /a2a/rest/v1/*', post(at03('/message:send'), PROTO), REST_03),
  entry('POST /a2a/rest/v1/*', post(at03('/message:stream'), PROTO, STREAM), REST_03),
  entry('GET /a2a/rest/v1/*', get(at03('/tasks/$task?historyLength=1')), REST_03),
  entry('GET /a2a/rest/v1/*', get(at03('/tasks')), REST_03),
  entry('GET /a2a/rest/v1/*', get(at03('/card')), REST_03),
  entry('GET /a2a/rest/v1/*', get(at03('/tasks/$task:subscribe'), STREAM), REST_03),
  entry('POST /a2a/rest/v1/*', post(at03('/tasks/$waiting:cancel'), {}), REST_03),
  entry(
    'POST /a2a/rest/v1/*',
    post(at03('/tasks/$task/pushNotificationConfigs'), { config: { name: 'x', pushNotificationConfig: PUSH } }),
    REST_03,
  ),
  entry('GET /a2a/rest/v1/*', get(at03('/tasks/$task/pushNotificationConfigs/p1')), REST_03),
  entry('DELETE /a2a/rest/v1/*', request('DELETE', at03('/tasks/$task/pushNotificationConfigs/p1')), REST_03),
  entry('GET /agent/authenticatedExtendedCard', get('/agent/authenticatedExtendedCard'), REST_03),
  entry(
    'POST /tasks',
    post('/tasks', {
      id: 'early',
      message: { role: 'user', parts: [{ type: 'text', text: '/count 3' }] },
      contextId: '$context',
      metadata: {},
    }),
    TASKS,
  ),
  entry(
    'POST /tasks',
    post('/tasks', {
      messages: [
        { role: 'user', parts: [{ type: 'text', text: 'a' }] },
        { role: 'user', parts: [{ type: 'data', data: [1], mimeType: 'x/y' }] },
      ],
    }),
    TASKS,
  ),
  entry('GET /tasks', get('/tasks?limit=2&after=$page'), TASKS),
  entry('GET /tasks/:id', get('/tasks/$task'), TASKS),
  entry('GET /tasks/:id/artifacts', get('/tasks/$task/artifacts'), TASKS),
  entry(
    'DELETE /tasks/:id',
    [
      post('/tasks', { message: { role: 'user', parts: [{ type: 'text', text: '/count 100 10' }] } }),
      request('DELETE', '/tasks/$task'),
      get('/tasks/$task'),
    ],
    { ...TASKS, covers: ['DELETE /tasks/:id'] },
  ),
]
