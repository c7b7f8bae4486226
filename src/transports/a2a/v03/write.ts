/** From the shapes of 1.0 to those of A2A 0.2 and 0.3. */
import { partIn } from '../../../wire/a2a/parts.ts'
import { SPELLED } from '../../../wire/a2a/states.ts'
import {
  TERMINAL,
  type Artifact,
  type Message,
  type PushConfig,
  type StreamEvent,
  type Task,
  type TaskState,
  type TaskStatus,
} from '../model.ts'

/** It ends the stream: nothing comes until the client says more. While somebody signs in elsewhere it stays open. */
export function isFinal(state: TaskState): boolean {
  return TERMINAL.has(state) || state === 'TASK_STATE_INPUT_REQUIRED'
}

const part = partIn('kind')

export function fromMessage({ messageId, role, parts, ...rest }: Message): object {
  return { kind: 'message', messageId, role: role === 'ROLE_USER' ? 'user' : 'agent', parts: parts.map(part), ...rest }
}

function fromStatus({ state, message, timestamp }: TaskStatus): object {
  return { state: SPELLED[state], ...(message && { message: fromMessage(message) }), timestamp }
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
