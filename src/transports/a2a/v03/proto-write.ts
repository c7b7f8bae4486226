/** From the shapes of 1.0 to ProtoJSON of `a2a.v1`, which is what REST of A2A 0.3 answers with. */
import { protoPart } from '../../../wire/a2a/parts.ts'
import type { Artifact, Message, PushConfig, SendResult, StreamEvent, Task, TaskStatus } from '../model.ts'
import { fromPushConfig, isFinal } from './write.ts'

export function protoMessage({ parts, ...rest }: Message): object {
  return { ...rest, content: parts.map(protoPart) }
}

/** `CANCELLED`: 1.0 dropped one l. */
function protoStatus({ state, message, timestamp }: TaskStatus): object {
  return {
    state: state === 'TASK_STATE_CANCELED' ? 'TASK_STATE_CANCELLED' : state,
    ...(message && { message: protoMessage(message) }),
    timestamp,
  }
}

function protoArtifact({ parts, ...rest }: Artifact): object {
  return { ...rest, parts: parts.map(protoPart) }
}

export function protoTask({ status, artifacts, history, ...rest }: Task): object {
  return {
    ...rest,
    status: protoStatus(status),
    ...(artifacts && { artifacts: artifacts.map(protoArtifact) }),
    ...(history && { history: history.map(protoMessage) }),
  }
}

export function protoResult(result: SendResult): object {
  return 'task' in result ? { task: protoTask(result.task) } : { message: protoMessage(result.message) }
}

export function protoEvent(event: StreamEvent): object {
  if ('task' in event || 'message' in event) return protoResult(event)
  if ('statusUpdate' in event) {
    const { status, ...rest } = event.statusUpdate
    return { statusUpdate: { ...rest, status: protoStatus(status), final: isFinal(status.state) } }
  }
  const { artifact, ...rest } = event.artifactUpdate
  return { artifactUpdate: { ...rest, artifact: protoArtifact(artifact) } }
}

/** Its name is its path. */
export function protoPush(config: PushConfig): object {
  const { taskId, id } = config
  return { name: `tasks/${taskId}/pushNotificationConfigs/${id}`, pushNotificationConfig: fromPushConfig(config) }
}
