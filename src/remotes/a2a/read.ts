/**
 * Reads what an A2A agent sent, whatever its generation. Hardly any field is required, because agents in the field leave out many.
 */
import { isRecord, recordsIn } from '../../protocol/json.ts'
import { standardBase64, type Part } from '../../wire/a2a/parts.ts'
import { SPELLED } from '../../wire/a2a/states.ts'
import { struct, text, texts } from '../../wire/fields.ts'
import type { Artifact, Message, State, Status, Struct, Told } from './model.ts'

const STATES: ReadonlySet<string> = new Set(Object.values(SPELLED))

/** `wrapped`: REST of 0.3, which has the data of a part inside another `data`. */
export interface ReadOptions {
  readonly wrapped?: boolean
}

type Read = (value: Struct, options: ReadOptions) => Told

/** 1.0 names an event by the member that it is in. `msg` is what REST of 0.3 may call a message. */
const BY_MEMBER: Readonly<Record<string, Read>> = {
  task: readTask,
  statusUpdate: readStatusUpdate,
  artifactUpdate: readArtifactUpdate,
  message: readSaid,
  msg: readSaid,
}

/** 0.2 and 0.3 name an event by `kind`. */
const BY_KIND = new Map<unknown, Read>([
  ['task', readTask],
  ['status-update', readStatusUpdate],
  ['artifact-update', readArtifactUpdate],
  ['message', readSaid],
])

/** Undefined for a value that is no known event. */
export function readTold(value: unknown, options: ReadOptions = {}): Told | undefined {
  if (!isRecord(value)) return undefined
  for (const [member, read] of Object.entries(BY_MEMBER)) {
    const inner = value[member]
    if (isRecord(inner)) return read(inner, options)
  }
  return (BY_KIND.get(value['kind']) ?? readUnnamed)(value, options)
}

/** A bare task, which answers a request for one; or an event of 0.1, which has `final` or a single artifact. */
function readUnnamed(value: Struct, options: ReadOptions): Told | undefined {
  if (isRecord(value['artifact'])) return readArtifactUpdate(value, options)
  if (isRecord(value['status'])) return 'final' in value ? readStatusUpdate(value, options) : readTask(value, options)
  return Array.isArray(value['parts']) ? readSaid(value, options) : undefined
}

function ofTask(value: Struct): { taskId: string | undefined; contextId: string | undefined; metadata: Struct | undefined } {
  const { taskId, id, contextId, sessionId, metadata } = value
  return { taskId: text(taskId) ?? text(id), contextId: text(contextId) ?? text(sessionId), metadata: struct(metadata) }
}

function readTask(value: Struct, options: ReadOptions): Told {
  return {
    kind: 'task',
    ...ofTask(value),
    status: readStatus(value['status'], options),
    artifacts: recordsIn(value['artifacts']).map((artifact, index) => readArtifact(artifact, { ...options, index })),
    history: recordsIn(value['history']).map((message) => readMessage(message, options)),
  }
}

function readSaid(value: Struct, options: ReadOptions): Told {
  return { kind: 'message', message: readMessage(value, options) }
}

function readStatusUpdate(value: Struct, options: ReadOptions): Told {
  return { kind: 'status', ...ofTask(value), status: readStatus(value['status'], options) }
}

function readArtifactUpdate(value: Struct, options: ReadOptions): Told {
  const artifact = isRecord(value['artifact']) ? value['artifact'] : {}
  // In 0.1 it is a field of the artifact.
  const append = (value['append'] ?? artifact['append']) === true
  return { kind: 'artifact', ...ofTask(value), artifact: readArtifact(artifact, { ...options, index: 0 }), append }
}

function readStatus(value: unknown, options: ReadOptions): Status {
  const status = isRecord(value) ? value : {}
  const message = status['message'] ?? status['update']
  return { state: readState(status['state']), message: isRecord(message) ? readMessage(message, options) : undefined }
}

function readState(value: unknown): State {
  const state =
    typeof value === 'string'
      ? value
          .replace(/^TASK_STATE_/, '')
          .toLowerCase()
          .replaceAll('_', '-')
      : ''
  if (state === 'cancelled') return 'canceled'
  return STATES.has(state) ? (state as State) : 'unknown'
}

/** In 0.1 an artifact has a number instead of an id. */
function readArtifact(value: Struct, { index, ...options }: ReadOptions & { readonly index: number }): Artifact {
  const { artifactId, name, description, parts, metadata } = value
  const number = typeof value['index'] === 'number' ? value['index'] : index
  return {
    id: text(artifactId) ?? `#${number}`,
    name: text(name),
    description: text(description),
    parts: readParts(parts, options),
    metadata: struct(metadata),
  }
}

function readMessage(value: Struct, options: ReadOptions): Message {
  const { messageId, role, parts, content, taskId, contextId, metadata, extensions } = value
  return {
    id: text(messageId),
    role: role === 'user' || role === 'ROLE_USER' ? 'user' : 'agent',
    parts: readParts(parts ?? content, options),
    taskId: text(taskId),
    contextId: text(contextId),
    metadata: struct(metadata),
    extensions: texts(extensions),
  }
}

function readParts(value: unknown, options: ReadOptions): Part[] {
  return recordsIn(value).flatMap((part) => readPart(part, options) ?? [])
}

function readPart(part: Struct, { wrapped }: ReadOptions): Part | undefined {
  if (typeof part['text'] === 'string') return { text: part['text'] }
  if (isRecord(part['file'])) return readFile(part['file'])
  const { raw, url, data } = part
  const about = named(part['filename'], part['mediaType'])
  if (typeof raw === 'string') return { raw: standardBase64(raw), ...about }
  if (typeof url === 'string') return { url, ...about }
  if (data === undefined) return undefined
  return { data: wrapped && isRecord(data) && isRecord(data['data']) ? data['data'] : data, ...about }
}

/** A file of 0.x, by the names of JSON-RPC or REST. */
function readFile(file: Struct): Part | undefined {
  const bytes = file['bytes'] ?? file['fileWithBytes']
  const uri = file['uri'] ?? file['fileWithUri']
  const about = named(file['name'], file['mimeType'])
  if (typeof bytes === 'string') return { raw: standardBase64(bytes), ...about }
  return typeof uri === 'string' ? { url: uri, ...about } : undefined
}

function named(filename: unknown, mediaType: unknown): Pick<Part, 'filename' | 'mediaType'> {
  const [name, type] = [text(filename), text(mediaType)]
  return { ...(name !== undefined && { filename: name }), ...(type !== undefined && { mediaType: type }) }
}
