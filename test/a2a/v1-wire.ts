import { parseSse } from '../../src/wire/sse-parse.ts'

/** Whatever came over the wire. */
export type Wire = any // eslint-disable-line

interface Failure {
  /** Of JSON-RPC, or of HTTP where that is all there is. */
  readonly code: number
  readonly message: string
  readonly reason: string
  /** The field that is wrong. */
  readonly field: string | undefined
}

interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly result?: Wire
  readonly error?: Failure
}

export interface Told {
  readonly id: string | undefined
  readonly event: Wire
}

/** A 1.0 client of one binding, which does nothing for its user but the binding. */
export interface Api {
  call(operation: string, params: object, headers?: Given): Promise<Answer>
  /** Throws the failure if there is no stream. Leaving it closes the connection. */
  stream(operation: string, params: object, headers?: Given): AsyncGenerator<Told, void>
}

type Given = Readonly<Record<string, string>>

const V1 = { 'a2a-version': '1.0' }

export const ERROR_INFO = 'type.googleapis.com/google.rpc.ErrorInfo'
const BAD_REQUEST = 'type.googleapis.com/google.rpc.BadRequest'

function jsonRpc(base: string): Api {
  const post = (method: string, params: object, headers: Given = {}) =>
    fetch(`${base}/a2a`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...V1, ...headers },
      body: JSON.stringify({ jsonrpc: '2.0', id: 7, method, params }),
    })
  return {
    async call(operation, params, headers) {
      const response = await post(operation, params, headers)
      const { jsonrpc, id, result, error }: Wire = await response.json()
      if (jsonrpc !== '2.0' || id !== 7) throw new Error(`Not the answer to this request: ${jsonrpc} ${id}`)
      const told = { status: response.status, headers: response.headers }
      return error === undefined
        ? { ...told, result }
        : { ...told, error: { code: error.code, message: error.message, ...details(error.data) } }
    },
    async *stream(operation, params, headers) {
      for await (const { id, event } of events(await post(operation, params, headers), ({ error }) => ({
        code: error.code,
        ...details(error.data),
      }))) {
        if (event.jsonrpc !== '2.0' || event.id !== 7) throw new Error('An event without the id of its request')
        yield { id, event: event.result }
      }
    },
  }
}

function rest(base: string): Api {
  const send = (operation: string, params: object, headers: Given = {}) => {
    const { method, path, rest: fields } = routed(operation, params)
    const query = method === 'POST' ? '' : `?${new URLSearchParams(Object.entries(fields).map(([name, value]) => [name, String(value)]))}`
    return fetch(`${base}/a2a/rest${path}${query}`, {
      method,
      headers: { ...(method === 'POST' && { 'content-type': 'application/a2a+json' }), ...V1, ...headers },
      ...(method === 'POST' && { body: JSON.stringify(fields) }),
    })
  }
  return {
    async call(operation, params, headers) {
      const response = await send(operation, params, headers)
      const body: Wire = await response.json()
      const told = { status: response.status, headers: response.headers }
      if (response.ok) return { ...told, result: body }
      return { ...told, error: { code: body.error.code, message: body.error.message, ...details(body.error.details) } }
    },
    stream: async function* (operation, params, headers) {
      yield* events(await send(operation, params, headers), ({ error }) => ({ code: error.code, ...details(error.details) }))
    },
  }
}

async function* events(response: Response, failure: (body: Wire) => object): AsyncGenerator<Told, void> {
  if (response.headers.get('content-type')?.startsWith('text/event-stream') !== true || !response.body) {
    throw Object.assign(new Error('no stream'), failure(await response.json()))
  }
  for await (const { id, data } of parseSse(response.body)) yield { id, event: JSON.parse(data) as Wire }
}

function details(objects: Wire): Pick<Failure, 'reason' | 'field'> {
  const info = objects.find((object: Wire) => object['@type'] === ERROR_INFO)
  if (info.domain !== 'a2a-protocol.org') throw new Error('ErrorInfo of another domain')
  return { reason: info.reason, field: objects.find((object: Wire) => object['@type'] === BAD_REQUEST)?.fieldViolations[0].field }
}

/** A2A 1.0 §5.3. */
function routed(operation: string, params: Wire): { method: string; path: string; rest: object } {
  const { id, taskId, ...rest } = params
  const one = `/tasks/${encodeURIComponent(id)}`
  const configs = `/tasks/${encodeURIComponent(taskId)}/pushNotificationConfigs`
  switch (operation) {
    case 'SendMessage':
      return { method: 'POST', path: '/message:send', rest: params }
    case 'SendStreamingMessage':
      return { method: 'POST', path: '/message:stream', rest: params }
    case 'GetTask':
      return { method: 'GET', path: one, rest }
    case 'ListTasks':
      return { method: 'GET', path: '/tasks', rest: params }
    case 'CancelTask':
      return { method: 'POST', path: `${one}:cancel`, rest }
    case 'SubscribeToTask':
      return { method: 'POST', path: `${one}:subscribe`, rest }
    case 'CreateTaskPushNotificationConfig':
      return { method: 'POST', path: configs, rest: { ...rest, ...(id !== undefined && { id }) } }
    case 'GetTaskPushNotificationConfig':
      return { method: 'GET', path: `${configs}/${id}`, rest }
    case 'ListTaskPushNotificationConfigs':
      return { method: 'GET', path: configs, rest }
    case 'DeleteTaskPushNotificationConfig':
      return { method: 'DELETE', path: `${configs}/${id}`, rest }
    case 'GetExtendedAgentCard':
      return { method: 'GET', path: '/extendedAgentCard', rest: params }
    default:
      throw new Error(`There is no ${operation}`)
  }
}

export const BINDINGS = [
  ['JSON-RPC', jsonRpc],
  ['REST', rest],
] as const

let made = 0

/** A message of a user, with an id of its own. */
export function user(text: string, more: object = {}): Wire {
  return { messageId: `m${++made}`, role: 'ROLE_USER', parts: [{ text }], ...more }
}

export async function all(told: AsyncIterable<Told>): Promise<Wire[]> {
  const seen: Wire[] = []
  for await (const { event } of told) seen.push(event)
  return seen
}

/** The text that the artifacts of updates make, one after the other. */
export function textOf(updates: readonly Wire[]): string {
  return updates
    .flatMap(({ artifactUpdate }) => artifactUpdate?.artifact.parts ?? [])
    .map(({ text }) => text ?? '')
    .join('')
}

/** What an update is, and for a status its state. */
export function kindsOf(updates: readonly Wire[]): string[] {
  const kinds = updates.map((update) => update.statusUpdate?.status.state ?? Object.keys(update)[0])
  return kinds.filter((kind, index) => kind !== kinds[index - 1])
}
