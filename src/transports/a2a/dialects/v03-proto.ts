/**
 * REST of A2A 0.3. It is ProtoJSON of `a2a.v1`, but the specification writes the shapes of JSON-RPC (§7.1), and clients send both, also
 * with the names of the Protocol Buffer definition. Requests are made into those of JSON-RPC, whose schema refuses what is wrong.
 */
import { fieldsOf, isRecord } from '../../../protocol/json.ts'
import { protoPart } from '../../../wire/a2a/parts.ts'
import type { Message, PushConfig, SendResult, StreamEvent, Task } from '../model.ts'
import type { Dialect } from '../operations.ts'
import { fromProtoNames } from '../schema.ts'
import { fromPushConfig, v03 } from './v03.ts'
import { artifactUpdateIn, statusUpdateIn, taskIn, type Words } from './words.ts'

export const v03Proto: Dialect = {
  version: '0.3',
  read: {
    send: (params, newId) => v03.read.send(toMessageSendParams(params), newId),
    get(params) {
      const { id, historyLength: length } = fieldsOf(fromProtoNames(params))
      return v03.read.get({ id, historyLength: typeof length === 'string' && /^-?\d{1,9}$/.test(length) ? Number(length) : length })
    },
    list: v03.read.list,
    task: v03.read.task,
    setPush: (params) => v03.read.setPush(toSetPushParams(params)),
    getPush: (params) => v03.read.getPush(configNamed(params)),
    deletePush: (params) => v03.read.deletePush(configNamed(params)),
    listPush: (params) => v03.read.listPush({ id: fieldsOf(params)['taskId'] }),
  },
  write: {
    sent: protoResult,
    task: protoTask,
    page: ({ tasks }) => tasks.map(protoTask),
    events: () => (event) => [protoEvent(event)],
    push: protoPush,
    pushes: ({ configs }) => ({ configs: configs.map(protoPush), nextPageToken: '' }),
    deleted: null,
  },
}

/** The path has the names of 1.0. */
function configNamed(params: unknown): object {
  const { taskId, id } = fieldsOf(params)
  return { id: taskId, pushNotificationConfigId: id }
}

type Fields = Record<string, unknown>

const ROLES: Readonly<Record<string, string>> = { ROLE_USER: 'user', ROLE_AGENT: 'agent', '1': 'user', '2': 'agent' }

function part(value: unknown): unknown {
  if (!isRecord(value) || value['kind'] !== undefined || value['type'] !== undefined) return value
  const { text, file, data, metadata } = value
  if (text !== undefined) return { kind: 'text', text, metadata }
  if (isRecord(file)) return { kind: 'file', file: fileIn(file), metadata }
  if (data !== undefined) return { kind: 'data', data: isRecord(data) && 'data' in data ? data['data'] : data, metadata }
  return value
}

function fileIn({ fileWithUri, fileWithBytes, uri, bytes, ...about }: Fields): Fields {
  return { ...about, uri: fileWithUri ?? uri, bytes: fileWithBytes ?? bytes }
}

function message(value: unknown): unknown {
  if (!isRecord(value)) return value
  const { role, content, ...rest } = value
  const parts = content ?? rest['parts']
  return {
    ...rest,
    role: typeof role === 'string' || typeof role === 'number' ? (ROLES[role] ?? role) : role,
    parts: Array.isArray(parts) ? parts.map(part) : parts,
  }
}

function configuration(value: unknown): unknown {
  if (!isRecord(value)) return value
  const { historyLength, pushNotification, blocking, ...rest } = value
  return {
    ...rest,
    // ProtoJSON writes 0 for a number that is not set, so 0 means all of the history.
    historyLength: historyLength || undefined,
    pushNotificationConfig: pushNotification ?? rest['pushNotificationConfig'],
    // ProtoJSON leaves out what is false, and so does the official client.
    blocking: blocking ?? false,
  }
}

/** `POST /v1/message:send` and `:stream`. */
export function toMessageSendParams(params: unknown): object {
  const { message: said, request, configuration: settings, metadata } = fieldsOf(fromProtoNames(params))
  return {
    message: message(said ?? request),
    configuration: settings == null ? undefined : configuration(settings),
    metadata,
  }
}

/**
 * `POST /v1/tasks/{id}/pushNotificationConfigs`: the specification has `{config}`, the Protocol Buffer definition the configuration
 * itself, and the official client sends that.
 */
export function toSetPushParams(params: unknown): object {
  const { taskId, ...body } = fieldsOf(fromProtoNames(params))
  const config = isRecord(body['config']) ? body['config'] : body
  const inner = config['pushNotificationConfig'] ?? config
  if (!isRecord(inner)) return { taskId, pushNotificationConfig: inner }
  return { taskId, pushNotificationConfig: { ...inner, id: inner['id'] || body['configId'] } }
}

const WORDS: Words = {
  message: protoMessage,
  artifact: ({ parts, ...rest }) => ({ ...rest, parts: parts.map(protoPart) }),
  // 0.3 writes it with two l.
  state: (state) => (state === 'TASK_STATE_CANCELED' ? 'TASK_STATE_CANCELLED' : state),
}

export function protoMessage({ parts, ...rest }: Message): object {
  return { ...rest, content: parts.map(protoPart) }
}

export function protoTask(task: Task): object {
  return taskIn(WORDS, task)
}

function protoResult(result: SendResult): object {
  return 'task' in result ? { task: protoTask(result.task) } : { message: protoMessage(result.message) }
}

export function protoEvent(event: StreamEvent): object {
  if ('task' in event || 'message' in event) return protoResult(event)
  if ('statusUpdate' in event) return { statusUpdate: statusUpdateIn(WORDS, event.statusUpdate) }
  return { artifactUpdate: artifactUpdateIn(WORDS, event.artifactUpdate) }
}

/** A config is named by its path. */
export function protoPush(config: PushConfig): object {
  const { taskId, id } = config
  return { name: `tasks/${taskId}/pushNotificationConfigs/${id}`, pushNotificationConfig: fromPushConfig(config) }
}
