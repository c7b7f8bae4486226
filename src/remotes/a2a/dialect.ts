/** How each generation and binding is asked. */
import { isRecord } from '../../protocol/json.ts'
import type { HttpRequest } from '../../core/ports/http.ts'
import { partIn, protoPart } from '../../wire/a2a/parts.ts'
import { present } from '../../wire/fields.ts'
import { failureIn, toError } from './errors.ts'
import type { Outgoing, Told } from './model.ts'
import { readTold } from './read.ts'

/** 0.2 and 0.3 are asked alike. */
export type Version = '1.0' | '0.3' | '0.1'

/** One address of the agent, and what is spoken there. */
export interface Interface {
  readonly url: string
  readonly binding: 'JSONRPC' | 'HTTP+JSON'
  readonly version: Version
  readonly tenant?: string | undefined
}

export type Ask = Pick<HttpRequest, 'url' | 'method' | 'headers'> & { readonly body?: string }

interface SendOptions {
  readonly stream: boolean
  /** The media types that the agent answers with, as its card says. */
  readonly outputModes: readonly string[]
}

export interface Dialect {
  readonly version: Version
  send(message: Outgoing, options: SendOptions): Ask
  get(taskId: string): Ask
  cancel(taskId: string): Ask
  /** In the order in which they are tried: over REST the specification names two methods. */
  subscribe(taskId: string): readonly Ask[]
  /** What an answer or an event says; undefined where it is none. Throws the error that it tells of. */
  read(value: unknown, name: string): Told | undefined
}

export function dialectOf(of: Interface): Dialect {
  return of.binding === 'JSONRPC' ? jsonRpc(of) : rest(of)
}

/** Only the last message of the history is ever looked at. */
const HISTORY = 1
const JSON_TYPE = { 'content-type': 'application/json' }
/** A2A 1.0 §3.6.1: every request has it. Older generations know no such header. */
const VERSIONS = { '1.0': { 'a2a-version': '1.0' }, '0.3': {}, '0.1': {} }

const METHODS = {
  '1.0': { send: 'SendMessage', stream: 'SendStreamingMessage', get: 'GetTask', cancel: 'CancelTask', subscribe: 'SubscribeToTask' },
  '0.3': { send: 'message/send', stream: 'message/stream', get: 'tasks/get', cancel: 'tasks/cancel', subscribe: 'tasks/resubscribe' },
  '0.1': { send: 'tasks/send', stream: 'tasks/sendSubscribe', get: 'tasks/get', cancel: 'tasks/cancel', subscribe: 'tasks/resubscribe' },
}

function jsonRpc({ url, version, tenant }: Interface): Dialect {
  const methods = METHODS[version]
  const headers = { ...JSON_TYPE, ...VERSIONS[version] }
  let id = 0
  const ask = (method: string, params: object): Ask => {
    const request = { jsonrpc: '2.0', id: ++id, method, params: { ...params, ...(tenant !== undefined && { tenant }) } }
    return { url, method: 'POST', headers, body: JSON.stringify(request) }
  }
  return {
    version,
    send: (message, options) => ask(options.stream ? methods.stream : methods.send, sendParams(version, message, options)),
    get: (taskId) => ask(methods.get, { id: taskId, historyLength: HISTORY }),
    cancel: (taskId) => ask(methods.cancel, { id: taskId }),
    subscribe: (taskId) => [ask(methods.subscribe, { id: taskId })],
    read(value, name) {
      if (!isRecord(value)) return undefined
      if (value['error'] != null) throw toError(name, failureIn(value) ?? { reason: undefined, message: undefined })
      return readTold(value['result'])
    },
  }
}

function rest({ url, version, tenant }: Interface): Dialect {
  const base = url.replace(/\/+$/, '') + (version === '1.0' ? '' : '/v1') + (tenant === undefined ? '' : `/${encodeURIComponent(tenant)}`)
  const headers = { ...JSON_TYPE, ...VERSIONS[version] }
  const task = (taskId: string): string => `${base}/tasks/${encodeURIComponent(taskId)}`
  const post = (to: string, body: object = {}): Ask => ({ url: to, method: 'POST', headers, body: JSON.stringify(body) })
  return {
    version,
    send(message, options) {
      const params = version === '1.0' ? sendParams(version, message, options) : protoParams(message, options)
      return post(`${base}/message:${options.stream ? 'stream' : 'send'}`, params)
    },
    get: (taskId) => ({ url: `${task(taskId)}?historyLength=${HISTORY}`, method: 'GET', headers: VERSIONS[version] }),
    cancel: (taskId) => post(`${task(taskId)}:cancel`),
    // A2A 1.0 §11.3.2 says POST, its proto GET.
    subscribe: (taskId) => [
      post(`${task(taskId)}:subscribe`),
      { url: `${task(taskId)}:subscribe`, method: 'GET', headers: VERSIONS[version] },
    ],
    read(value, name) {
      const failure = isRecord(value) && value['error'] != null ? failureIn(value) : undefined
      if (failure) throw toError(name, failure)
      return readTold(value, { wrapped: version !== '1.0' })
    },
  }
}

/** An agent that does not stream is asked not to wait either, so that we learn the id of its task and can cancel it. */
function sendParams(version: Version, message: Outgoing, { stream, outputModes }: SendOptions): object {
  const { messageId, parts, contextId, taskId, metadata } = message
  if (version === '1.0') {
    return { message: { role: 'ROLE_USER', parts, ...fieldsOf(message) }, ...(!stream && { configuration: { returnImmediately: true } }) }
  }
  if (version === '0.3') {
    const said = { kind: 'message', role: 'user', parts: parts.map(partIn('kind')), ...fieldsOf(message) }
    return { message: said, configuration: settings03({ stream, outputModes }) }
  }
  return {
    // In 0.1 the client names the task.
    id: taskId ?? messageId,
    ...(contextId !== undefined && { sessionId: contextId }),
    message: { role: 'user', parts: parts.map(partIn('type')), ...(metadata && { metadata }) },
    acceptedOutputModes: outputModes,
  }
}

/** REST of 0.3 is the JSON of protocol buffers, with other names than its JSON-RPC. */
function protoParams(message: Outgoing, options: SendOptions): object {
  const content = message.parts.map(protoPart)
  return { message: { role: 'ROLE_USER', content, ...fieldsOf(message) }, configuration: settings03(options) }
}

function fieldsOf({ parts: _, ...fields }: Outgoing): object {
  return present(fields)
}

function settings03({ stream, outputModes }: SendOptions): object {
  return { acceptedOutputModes: outputModes, ...(!stream && { blocking: false }) }
}
