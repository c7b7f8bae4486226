/** What clients of A2A can do, in every generation and binding. */
import type { Operation } from './operation.ts'
import type { Asks } from './rule.ts'
import { WEBHOOK, type Request, type ThingKind } from './world.ts'

/** What an operation asks for, and what it is about. All bindings agree on that. */
interface Method {
  readonly asks: Asks
  readonly thing?: ThingKind
  readonly once?: true
}

const METHODS = {
  SendMessage: { asks: 'call' },
  SendStreamingMessage: { asks: 'call' },
  GetTask: { asks: 'read', thing: 'task' },
  ListTasks: { asks: 'read' },
  CancelTask: { asks: 'cancel', thing: 'waiting', once: true },
  SubscribeToTask: { asks: 'read', thing: 'waiting' },
  CreateTaskPushNotificationConfig: { asks: 'call', thing: 'task' },
  GetTaskPushNotificationConfig: { asks: 'read', thing: 'task' },
  ListTaskPushNotificationConfigs: { asks: 'read', thing: 'task' },
  DeleteTaskPushNotificationConfig: { asks: 'cancel', thing: 'task', once: true },
  GetExtendedAgentCard: { asks: 'read' },
} as const satisfies Record<string, Method>

type Name = keyof typeof METHODS

const newId = (): string => crypto.randomUUID()
const V1 = { 'a2a-version': '1.0' }
const V03 = { 'a2a-version': '0.3' }
const message = () => ({ messageId: newId(), role: 'ROLE_USER', parts: [{ text: 'Hello' }] })
const message03 = () => ({ kind: 'message', messageId: newId(), role: 'user', parts: [{ kind: 'text', text: 'Hello' }] })
const message01 = () => ({ id: newId(), message: { role: 'user', parts: [{ type: 'text', text: 'Hello' }] } })
const config03 = { id: 'p1', url: WEBHOOK }

type Params = (id: string) => object | undefined

/** The parameters of 1.0. */
const PARAMS: Readonly<Record<Name, Params>> = {
  SendMessage: () => ({ message: message() }),
  SendStreamingMessage: () => ({ message: message() }),
  GetTask: (id) => ({ id }),
  ListTasks: () => ({}),
  CancelTask: (id) => ({ id }),
  SubscribeToTask: (id) => ({ id }),
  CreateTaskPushNotificationConfig: (taskId) => ({ taskId, id: 'p1', url: WEBHOOK }),
  GetTaskPushNotificationConfig: (taskId) => ({ taskId, id: 'p1' }),
  ListTaskPushNotificationConfigs: (taskId) => ({ taskId }),
  DeleteTaskPushNotificationConfig: (taskId) => ({ taskId, id: 'p1' }),
  GetExtendedAgentCard: () => ({}),
}

/** The methods before 1.0: which operation each is, and its parameters. */
const EARLIER: Readonly<Record<string, readonly [operation: Name, params: Params]>> = {
  'message/send': ['SendMessage', () => ({ message: message03() })],
  'message/stream': ['SendStreamingMessage', () => ({ message: message03() })],
  'tasks/get': ['GetTask', (id) => ({ id })],
  'tasks/cancel': ['CancelTask', (id) => ({ id })],
  'tasks/resubscribe': ['SubscribeToTask', (id) => ({ id })],
  'tasks/pushNotificationConfig/set': ['CreateTaskPushNotificationConfig', (taskId) => ({ taskId, pushNotificationConfig: config03 })],
  'tasks/pushNotificationConfig/get': ['GetTaskPushNotificationConfig', (id) => ({ id, pushNotificationConfigId: 'p1' })],
  'tasks/pushNotificationConfig/list': ['ListTaskPushNotificationConfigs', (id) => ({ id })],
  'tasks/pushNotificationConfig/delete': ['DeleteTaskPushNotificationConfig', (id) => ({ id, pushNotificationConfigId: 'p1' })],
  'agent/getAuthenticatedExtendedCard': ['GetExtendedAgentCard', () => undefined],
  'tasks/send': ['SendMessage', message01],
  'tasks/sendSubscribe': ['SendStreamingMessage', message01],
  'tasks/pushNotification/set': ['CreateTaskPushNotificationConfig', (id) => ({ id, pushNotificationConfig: config03 })],
  'tasks/pushNotification/get': ['GetTaskPushNotificationConfig', (id) => ({ id })],
}

/** Methods of JSON-RPC that have a verdict. */
export const RPC_METHODS: readonly string[] = [...Object.keys(METHODS), ...Object.keys(EARLIER)]

const rpc = (path: string, method: string, params: object | undefined, headers: Readonly<Record<string, string>>): Request => ({
  method: 'POST',
  path,
  headers,
  body: { jsonrpc: '2.0', id: 1, method, params },
})

function rpcOperations(path: string): readonly Operation[] {
  const route = `POST ${path}`
  const later = Object.entries(METHODS).map(([method, asked]): Operation => ({
    ...asked,
    route,
    what: method,
    form: 'a2a',
    request: (id) => rpc(path, method, PARAMS[method as Name](id), V1),
  }))
  const earlier = Object.entries(EARLIER).map(([method, [operation, params]]): Operation => ({
    ...METHODS[operation],
    route,
    what: method,
    form: 'a2a',
    request: (id) => rpc(path, method, params(id), {}),
  }))
  return [...later, ...earlier]
}

/** Each operation at its path: of 1.0 below `/a2a/rest`, of 0.3 below `/a2a/rest/v1`. */
const PATHS: Readonly<Record<Name, (id: string) => readonly [method: string, path: string]>> = {
  SendMessage: () => ['POST', '/message:send'],
  SendStreamingMessage: () => ['POST', '/message:stream'],
  GetTask: (id) => ['GET', `/tasks/${id}`],
  ListTasks: () => ['GET', '/tasks'],
  CancelTask: (id) => ['POST', `/tasks/${id}:cancel`],
  SubscribeToTask: (id) => ['GET', `/tasks/${id}:subscribe`],
  CreateTaskPushNotificationConfig: (id) => ['POST', `/tasks/${id}/pushNotificationConfigs`],
  GetTaskPushNotificationConfig: (id) => ['GET', `/tasks/${id}/pushNotificationConfigs/p1`],
  ListTaskPushNotificationConfigs: (id) => ['GET', `/tasks/${id}/pushNotificationConfigs`],
  DeleteTaskPushNotificationConfig: (id) => ['DELETE', `/tasks/${id}/pushNotificationConfigs/p1`],
  GetExtendedAgentCard: () => ['GET', '/extendedAgentCard'],
}

/** What is posted there. */
const BODIES: Partial<Record<Name, readonly [v1: () => object, v03: () => object]>> = {
  SendMessage: [() => ({ message: message() }), () => ({ message: { ...message(), content: [{ text: 'Hello' }] } })],
  SendStreamingMessage: [() => ({ message: message() }), () => ({ message: { ...message(), content: [{ text: 'Hello' }] } })],
  CancelTask: [() => ({}), () => ({})],
  CreateTaskPushNotificationConfig: [() => ({ id: 'p1', url: WEBHOOK }), () => ({ config: { pushNotificationConfig: config03 } })],
}

function restOperations(mount: '/a2a/rest' | '/a2a/rest/v1'): readonly Operation[] {
  const isV1 = mount === '/a2a/rest'
  return Object.entries(METHODS).map(([name, asked]): Operation => {
    const operation = name as Name
    const at = (id: string) => (operation === 'GetExtendedAgentCard' && !isV1 ? (['GET', '/card'] as const) : PATHS[operation](id))
    const body = () => BODIES[operation]?.[isV1 ? 0 : 1]()
    const [method] = at('')
    return {
      ...asked,
      route: `${method} ${mount}/*`,
      what: name,
      form: isV1 ? 'a2a rest' : 'a2a rest 0.3',
      request: (id) => ({ method, path: mount + at(id)[1], headers: isV1 ? V1 : V03, body: body() }),
    }
  })
}

const TASKS = { form: 'a2a tasks' } as const
const said01 = () => ({ message: { role: 'user', parts: [{ type: 'text', text: 'Hello' }] } })

export const A2A: readonly Operation[] = [
  ...['/.well-known/agent-card.json', '/.well-known/agent.json'].map((path): Operation => ({
    route: `GET ${path}`,
    asks: 'public',
    form: 'a2a',
    request: () => ({ method: 'GET', path }),
  })),
  ...rpcOperations('/a2a'),
  // The same endpoint, for clients that write it so.
  ...rpcOperations('/a2a/').filter(({ what }) => what === 'SendMessage' || what === 'GetTask' || what === 'tasks/cancel'),
  ...restOperations('/a2a/rest'),
  ...restOperations('/a2a/rest/v1'),
  {
    route: 'GET /agent/authenticatedExtendedCard',
    asks: 'read',
    form: 'a2a rest 0.3',
    request: () => ({ method: 'GET', path: '/agent/authenticatedExtendedCard' }),
  },
  { ...TASKS, route: 'POST /tasks', asks: 'call', request: () => ({ method: 'POST', path: '/tasks', body: said01() }) },
  { ...TASKS, route: 'GET /tasks', asks: 'read', request: () => ({ method: 'GET', path: '/tasks' }) },
  { ...TASKS, route: 'GET /tasks/:id', asks: 'read', thing: 'task', request: (id) => ({ method: 'GET', path: `/tasks/${id}` }) },
  {
    ...TASKS,
    route: 'GET /tasks/:id/artifacts',
    asks: 'read',
    thing: 'task',
    request: (id) => ({ method: 'GET', path: `/tasks/${id}/artifacts` }),
  },
  {
    ...TASKS,
    route: 'DELETE /tasks/:id',
    asks: 'cancel',
    thing: 'waiting',
    once: true,
    request: (id) => ({ method: 'DELETE', path: `/tasks/${id}` }),
  },
]
