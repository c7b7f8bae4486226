/** A2A 0.3, and 0.2, which speaks alike: its requests as those of 1.0, and answers of 1.0 in its shapes. */
import { isRecord } from '../../../protocol/json.ts'
import { partIn, SLOT, WRAPPED } from '../../../wire/a2a/parts.ts'
import { SPELLED } from '../../../wire/a2a/states.ts'
import type { Message, NewPushConfig, Part, PushConfig, SendRequest, StreamEvent, Struct, Task } from '../model.ts'
import type { Dialect } from '../operations.ts'
import { parseParams } from '../request.ts'
import { filled } from '../schema.ts'
import * as schema from './v03-schema.ts'
import { artifactUpdateIn, statusUpdateIn, taskIn, type Words } from './words.ts'

/** Tasks that a list holds: this generation knows no pages (A2A 0.3.0 §7, `tasks/list`). */
const LISTED = 100

export const v03: Dialect = {
  version: '0.3',
  read: {
    send: (params) => toSendRequest(parseParams(schema.MessageSendParams, params)),
    get(params) {
      const { id, historyLength } = parseParams(schema.TaskQueryParams, params)
      return { id, historyLength: historyLength ?? undefined }
    },
    list: () => ({ pageSize: LISTED, includeArtifacts: true }),
    task: (params) => parseParams(schema.TaskIdParams, params),
    // A config without an id is the task's only one, so the next one replaces it. The official servers did the same.
    setPush(params) {
      const { taskId, pushNotificationConfig } = parseParams(schema.SetPushParams, params)
      return { id: taskId, ...toPush(pushNotificationConfig), taskId }
    },
    getPush(params) {
      const { id, pushNotificationConfigId } = parseParams(schema.GetPushParams, params)
      return { taskId: id, id: pushNotificationConfigId || undefined }
    },
    deletePush(params) {
      const { id, pushNotificationConfigId } = parseParams(schema.DeletePushParams, params)
      return { taskId: id, id: pushNotificationConfigId }
    },
    listPush: (params) => ({ taskId: parseParams(schema.TaskIdParams, params).id }),
  },
  write: {
    sent: (result) => ('task' in result ? fromTask(result.task) : fromMessage(result.message)),
    task: fromTask,
    page: ({ tasks }) => tasks.map(fromTask),
    events: () => (event) => [fromEvent(event)],
    push: fromPush,
    pushes: ({ configs }) => configs.map(fromPush),
    deleted: null,
  },
}

export function toPart(part: schema.LoosePart): Part {
  switch (part.kind) {
    case 'text':
      return { text: part.text, ...unslotted(part.metadata) }
    case 'file':
      return { ...toFile(part.file), ...filled({ metadata: part.metadata }) }
    case 'data': {
      const { data, metadata } = part
      const mimeType = 'mimeType' in part ? part.mimeType : undefined
      if (typeof data === 'string') return { raw: data, ...filled({ mediaType: mimeType, metadata }) }
      const { [WRAPPED]: wrapped, ...rest } = metadata ?? {}
      if (wrapped !== true || !isRecord(data) || !('value' in data))
        return { data, ...filled({ mediaType: mimeType }), ...unslotted(metadata) }
      return { data: (data as Struct)['value'] ?? null, ...unslotted(Object.keys(rest).length === 0 ? undefined : rest) }
    }
  }
}

function toFile(file: schema.File): Part {
  const uri = schema.uriOf(file)
  return {
    ...(uri === undefined ? { raw: schema.bytesOf(file) ?? '' } : { url: uri }),
    ...filled({ filename: file.name, mediaType: file.mimeType }),
  }
}

/** Takes the fields out of the slot that `partIn` puts there. */
function unslotted(metadata: Struct | null | undefined): Pick<Part, 'metadata' | 'filename' | 'mediaType'> {
  const slot = metadata?.[SLOT]
  if (metadata == null || !isRecord(slot)) return filled({ metadata })
  const { filename, mediaType, ...others } = slot
  const { [SLOT]: _, ...rest } = metadata
  const left: Struct = Object.keys(others).length === 0 ? rest : { ...rest, [SLOT]: others as Struct }
  return {
    ...(typeof filename === 'string' && { filename }),
    ...(typeof mediaType === 'string' && { mediaType }),
    ...(Object.keys(left).length > 0 && { metadata: left }),
  }
}

export function toMessage({ kind: _, parts, ...fields }: schema.Message): Message {
  return { ...filled(fields), role: 'ROLE_USER', parts: parts.map(toPart) }
}

/** Several schemes are a choice; the first is taken. */
export function toPush({ authentication, ...fields }: schema.Push): Omit<NewPushConfig, 'taskId'> {
  const scheme = authentication?.schemes?.[0]
  const credentials = authentication?.credentials
  return { ...filled(fields), ...(scheme !== undefined && { authentication: { scheme, ...filled({ credentials }) } }) }
}

/** A client that does not say whether to block waits: the official servers of 0.2 and 0.3 did so, and their clients expect it. */
export function toSendRequest({ message, configuration, metadata }: schema.MessageSendParams): SendRequest {
  const { pushNotificationConfig: push, blocking, ...settings } = configuration ?? {}
  return {
    message: toMessage(message),
    generation: '0.3',
    returnImmediately: blocking === false,
    ...filled(settings),
    ...filled({ metadata }),
    ...(push && { push: toPush(push) }),
  }
}

const part = partIn('kind')

const WORDS: Words = {
  message: fromMessage,
  artifact: ({ parts, ...rest }) => ({ ...rest, parts: parts.map(part) }),
  state: (state) => SPELLED[state],
}

export function fromMessage({ role, parts, ...rest }: Message): object {
  return { kind: 'message', ...rest, role: role === 'ROLE_USER' ? 'user' : 'agent', parts: parts.map(part) }
}

export function fromTask(task: Task): object {
  return { kind: 'task', ...taskIn(WORDS, task) }
}

export function fromEvent(event: StreamEvent): object {
  if ('task' in event) return fromTask(event.task)
  if ('message' in event) return fromMessage(event.message)
  if ('statusUpdate' in event) return { kind: 'status-update', ...statusUpdateIn(WORDS, event.statusUpdate) }
  return { kind: 'artifact-update', ...artifactUpdateIn(WORDS, event.artifactUpdate) }
}

/** What `tasks/pushNotificationConfig/*` answers. */
export function fromPush(config: PushConfig): object {
  return { taskId: config.taskId, pushNotificationConfig: fromPushConfig(config) }
}

export function fromPushConfig({ taskId: _, authentication, ...rest }: PushConfig): object {
  if (!authentication) return rest
  const { scheme, ...credentials } = authentication
  return { ...rest, authentication: { schemes: [scheme], ...credentials } }
}
