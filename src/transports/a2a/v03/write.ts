/** From the shapes of 1.0 to those of A2A 0.2 and 0.3. */
import { isRecord, type Json } from '../../../protocol/json.ts'
import type { Artifact, Message, Part, PushConfig, StreamEvent, Struct, Task, TaskState, TaskStatus } from '../model.ts'
import { TERMINAL } from '../model.ts'
import { SLOT, WRAPPED } from './read.ts'

const STATES = {
  TASK_STATE_SUBMITTED: 'submitted',
  TASK_STATE_WORKING: 'working',
  TASK_STATE_COMPLETED: 'completed',
  TASK_STATE_FAILED: 'failed',
  TASK_STATE_CANCELED: 'canceled',
  TASK_STATE_INPUT_REQUIRED: 'input-required',
  TASK_STATE_REJECTED: 'rejected',
  TASK_STATE_AUTH_REQUIRED: 'auth-required',
} as const satisfies Record<TaskState, string>

/** It ends the stream: nothing comes until the client says more. While somebody signs in elsewhere it stays open. */
export function isFinal(state: TaskState): boolean {
  return TERMINAL.has(state) || state === 'TASK_STATE_INPUT_REQUIRED'
}

/** What tells the forms of a part apart: `kind` since 0.2, `type` before. */
export type Discriminator = 'kind' | 'type'

export function partIn(name: Discriminator): (part: Part) => object {
  return (part) => {
    const { text, raw, url, data, metadata, filename, mediaType } = part
    if (text !== undefined) return { [name]: 'text', text, ...slotted(part) }
    if (data !== undefined) return { [name]: 'data', ...wrapped(data, part) }
    const file = {
      ...(raw !== undefined ? { bytes: raw } : { uri: url }),
      ...(mediaType !== undefined && { mimeType: mediaType }),
      ...(filename !== undefined && { name: filename }),
    }
    return { [name]: 'file', file, ...(metadata && { metadata }) }
  }
}

const part = partIn('kind')

/** Texts and data had neither a name nor a media type then: both go into our slot of the metadata. */
export function slotted({ filename, mediaType, metadata }: Part): { readonly metadata?: Struct } {
  if (filename === undefined && mediaType === undefined) return metadata ? { metadata } : {}
  const had = metadata?.[SLOT]
  const slot: Struct = {
    ...(isRecord(had) && (had as Struct)),
    ...(filename !== undefined && { filename }),
    ...(mediaType !== undefined && { mediaType }),
  }
  return { metadata: { ...metadata, [SLOT]: slot } }
}

/** Data was an object then. Anything else is wrapped, and marked as the official SDK marks it. */
export function wrapped(data: Json, part: Part): { readonly data: Struct; readonly metadata?: Struct } {
  const { metadata } = slotted(part)
  if (isRecord(data)) return { data: data as Struct, ...(metadata && { metadata }) }
  return { data: { value: data }, metadata: { ...metadata, [WRAPPED]: true } }
}

export function fromMessage({ messageId, role, parts, ...rest }: Message): object {
  return { kind: 'message', messageId, role: role === 'ROLE_USER' ? 'user' : 'agent', parts: parts.map(part), ...rest }
}

function fromStatus({ state, message, timestamp }: TaskStatus): object {
  return { state: STATES[state], ...(message && { message: fromMessage(message) }), timestamp }
}

function fromArtifact({ artifactId, name, description, parts, ...rest }: Artifact): object {
  return {
    artifactId,
    ...(name !== undefined && { name }),
    ...(description !== undefined && { description }),
    parts: parts.map(part),
    ...rest,
  }
}

export function fromTask({ id, contextId, status, artifacts, history, metadata }: Task): object {
  return {
    kind: 'task',
    id,
    contextId,
    status: fromStatus(status),
    ...(artifacts && { artifacts: artifacts.map(fromArtifact) }),
    ...(history && { history: history.map(fromMessage) }),
    ...(metadata && { metadata }),
  }
}

export function fromEvent(event: StreamEvent): object {
  if ('task' in event) return fromTask(event.task)
  if ('message' in event) return fromMessage(event.message)
  if ('statusUpdate' in event) {
    const { status, ...rest } = event.statusUpdate
    return { kind: 'status-update', ...rest, status: fromStatus(status), final: isFinal(status.state) }
  }
  const { artifact, ...rest } = event.artifactUpdate
  return { kind: 'artifact-update', ...rest, artifact: fromArtifact(artifact) }
}

/** What `tasks/pushNotificationConfig/*` answers. */
export function fromPush(config: PushConfig): object {
  return { taskId: config.taskId, pushNotificationConfig: fromPushConfig(config) }
}

export function fromPushConfig({ id, url, token, authentication }: PushConfig): object {
  return {
    id,
    url,
    ...(token !== undefined && { token }),
    ...(authentication && {
      authentication: {
        schemes: [authentication.scheme],
        ...(authentication.credentials !== undefined && { credentials: authentication.credentials }),
      },
    }),
  }
}
