/**
 * REST of A2A 0.3 is ProtoJSON of `a2a.v1`, but its specification writes the shapes of JSON-RPC (§7.1), and both are sent: this makes
 * one of the other. Names may also be those of the Protocol Buffer definition. What is wrong is left for the schema to tell.
 */
import { isRecord } from '../../../protocol/json.ts'

type Fields = Record<string, unknown>

/** The first of these names that there is. */
function field(value: Fields, ...names: readonly string[]): unknown {
  for (const name of names) if (value[name] != null) return value[name]
  return undefined
}

const ROLES: Readonly<Record<string, string>> = { ROLE_USER: 'user', ROLE_AGENT: 'agent', '1': 'user', '2': 'agent' }

function part(value: unknown): unknown {
  if (!isRecord(value) || value['kind'] !== undefined || value['type'] !== undefined) return value
  const { text, file, data, metadata } = value
  if (text !== undefined) return { kind: 'text', text, metadata }
  if (isRecord(file)) return { kind: 'file', file: content(file), metadata }
  if (data !== undefined) return { kind: 'data', data: isRecord(data) && 'data' in data ? data['data'] : data, metadata }
  return value
}

function content(file: Fields): Fields {
  return {
    name: file['name'],
    mimeType: field(file, 'mimeType', 'mime_type'),
    uri: field(file, 'fileWithUri', 'file_with_uri', 'uri'),
    bytes: field(file, 'fileWithBytes', 'file_with_bytes', 'bytes'),
  }
}

function message(value: unknown): unknown {
  if (!isRecord(value)) return value
  const parts = field(value, 'content', 'parts')
  const role = value['role']
  return {
    kind: value['kind'],
    messageId: field(value, 'messageId', 'message_id'),
    role: typeof role === 'string' || typeof role === 'number' ? (ROLES[role] ?? role) : role,
    parts: Array.isArray(parts) ? parts.map(part) : parts,
    contextId: field(value, 'contextId', 'context_id'),
    taskId: field(value, 'taskId', 'task_id'),
    metadata: value['metadata'],
    extensions: value['extensions'],
    referenceTaskIds: field(value, 'referenceTaskIds', 'reference_task_ids'),
  }
}

/** A number that is not set is 0 in ProtoJSON, and one that is 0 may be left out: all of the history, then. */
function configuration(value: unknown): unknown {
  if (!isRecord(value)) return value
  return {
    acceptedOutputModes: field(value, 'acceptedOutputModes', 'accepted_output_modes'),
    historyLength: field(value, 'historyLength', 'history_length') || undefined,
    pushNotificationConfig: field(value, 'pushNotification', 'push_notification', 'pushNotificationConfig'),
    // False is left out as well, and the official client leaves it out.
    blocking: value['blocking'] ?? false,
  }
}

/** `POST /v1/message:send` and `:stream`. */
export function toMessageSendParams(body: unknown): unknown {
  if (!isRecord(body)) return body
  const settings = body['configuration']
  return {
    message: message(field(body, 'message', 'request')),
    configuration: settings == null ? undefined : configuration(settings),
    metadata: body['metadata'],
  }
}

/**
 * `POST /v1/tasks/{id}/pushNotificationConfigs`: the specification has `{config}`, the Protocol Buffer definition the configuration
 * itself, and the official client sends that.
 */
export function toSetPushParams(taskId: string, body: unknown): unknown {
  if (!isRecord(body)) return { taskId, pushNotificationConfig: body }
  const config = isRecord(body['config']) ? body['config'] : body
  const inner = field(config, 'pushNotificationConfig', 'push_notification_config') ?? config
  if (!isRecord(inner)) return { taskId, pushNotificationConfig: inner }
  const id = inner['id'] || field(body, 'configId', 'config_id')
  return { taskId, pushNotificationConfig: { ...inner, id } }
}
