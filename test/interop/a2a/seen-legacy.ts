/** What 0.3 and 0.2 have in common: the shapes with `kind`. */
import type { Artifact, Message, MessageSendParams, Part, Task, TaskArtifactUpdateEvent, TaskStatus, TaskStatusUpdateEvent } from 'a2a03'
import { randomUUID } from 'node:crypto'
import type { Answer, Push, Said, SeenArtifact, SeenMessage, SeenPart, SeenTask, SendOptions, Update } from './client.ts'

export function legacyRequest(
  { parts, messageId = randomUUID(), task, context, metadata }: Said,
  { wait, historyLength, push }: SendOptions,
): MessageSendParams {
  return {
    message: {
      kind: 'message',
      role: 'user',
      messageId,
      parts: parts.map(legacyPart),
      ...(task !== undefined && { taskId: task }),
      ...(context !== undefined && { contextId: context }),
      ...(metadata && { metadata }),
    },
    configuration: {
      acceptedOutputModes: [],
      blocking: wait !== false,
      ...(historyLength !== undefined && { historyLength }),
      ...(push && { pushNotificationConfig: push }),
    },
  }
}

function legacyPart(given: SeenPart): Part {
  if ('text' in given) return { kind: 'text', text: given.text }
  if ('data' in given) return { kind: 'data', data: given.data as Record<string, unknown> }
  const { bytes, url, name, type } = given
  const about = { ...(name !== undefined && { name }), ...(type !== undefined && { mimeType: type }) }
  return { kind: 'file', file: url === undefined ? { bytes: bytes ?? '', ...about } : { uri: url, ...about } }
}

function seenPart(part: Part): SeenPart {
  if (part.kind === 'text') return { text: part.text }
  if (part.kind === 'data') return { data: part.data }
  const { file } = part
  const about = { ...(file.name !== undefined && { name: file.name }), ...(file.mimeType !== undefined && { type: file.mimeType }) }
  return 'uri' in file ? { url: file.uri, ...about } : { bytes: file.bytes, ...about }
}

function seenArtifact({ artifactId, parts }: Artifact): SeenArtifact {
  return { id: artifactId, parts: parts.map(seenPart) }
}

function seenMessage({ messageId, role, parts, metadata }: Message): SeenMessage {
  return { id: messageId, role, parts: parts.map(seenPart), ...(metadata && { metadata }) }
}

function seenStatus({ state, message }: TaskStatus): Pick<SeenTask, 'state' | 'says'> {
  return { state, ...(message && { says: seenMessage(message) }) }
}

export function seenTask({ id, contextId, status, artifacts = [], history = [] }: Task): SeenTask {
  return { id, context: contextId, ...seenStatus(status), artifacts: artifacts.map(seenArtifact), history: history.map(seenMessage) }
}

export function seenAnswer(answer: Message | Task): Answer {
  return answer.kind === 'message' ? { message: seenMessage(answer) } : { task: seenTask(answer) }
}

export function seenUpdate(event: Message | Task | TaskStatusUpdateEvent | TaskArtifactUpdateEvent): Update {
  switch (event.kind) {
    case 'status-update':
      return { status: { id: event.taskId, ...seenStatus(event.status) } }
    case 'artifact-update':
      return { chunk: seenArtifact(event.artifact), append: event.append === true, last: event.lastChunk === true }
    default:
      return seenAnswer(event)
  }
}

export function seenPush({ id, url, token }: { id?: string; url: string; token?: string }): Push {
  return { url, ...(id !== undefined && { id }), ...(token !== undefined && { token }) }
}
