/** From the shapes of 1.0 to those of A2A 0.1. */
import { partIn } from '../../../wire/a2a/parts.ts'
import { SPELLED } from '../../../wire/a2a/states.ts'
import type { RpcResult, Shape } from '../binding.ts'
import type { Artifact, Message, PushConfig, StreamBatch, StreamEvent, StreamVisitor, Task, TaskStatus, TaskStream } from '../model.ts'
import { fromPushConfig, isFinal } from '../v03/write.ts'

/** It knew neither `rejected` nor `auth-required`. */
const STATES = { ...SPELLED, TASK_STATE_REJECTED: 'failed', TASK_STATE_AUTH_REQUIRED: 'input-required' } as const

export const part = partIn('type')

export function fromMessage({ role, parts, metadata }: Message): object {
  return { role: role === 'ROLE_USER' ? 'user' : 'agent', parts: parts.map(part), ...(metadata && { metadata }) }
}

function fromStatus({ state, message, timestamp }: TaskStatus): object {
  return { state: STATES[state], ...(message && { message: fromMessage(message) }), timestamp }
}

/** Artifacts had no id: their place in the task is what chunks are put together by. */
function fromArtifact({ name, description, parts, metadata }: Artifact, index: number): object {
  return {
    ...(name !== undefined && { name }),
    ...(description !== undefined && { description }),
    parts: parts.map(part),
    index,
    ...(metadata && { metadata }),
  }
}

export function fromTask({ id, contextId, status, artifacts, history, metadata }: Task): object {
  return {
    id,
    sessionId: contextId,
    status: fromStatus(status),
    ...(artifacts && { artifacts: artifacts.map(fromArtifact) }),
    ...(history && { history: history.map(fromMessage) }),
    ...(metadata && { metadata }),
  }
}

export function fromPush(config: PushConfig): object {
  const { id: _, ...rest } = fromPushConfig(config) as { readonly id: string }
  return { id: config.taskId, pushNotificationConfig: rest }
}

/** A stream of 0.1 has two events: a status, and an artifact or a piece of one. */
export function streamResult(stream: TaskStream): RpcResult {
  const { taskId, contextId } = stream
  return { stream: { taskId, contextId, batches: splitAll(stream.batches) }, shape: shapeFor(taskId) }
}

/** Not a generator: one that waits for its next batch would keep the last one alive. */
function splitAll(batches: TaskStream['batches']): TaskStream['batches'] {
  return {
    [Symbol.asyncIterator]() {
      const steps = batches[Symbol.asyncIterator]()
      return {
        async next() {
          const { done, value } = await steps.next()
          return done ? { done, value: value && split(value) } : { done: false, value: split(value) }
        },
        async return() {
          await steps.return?.()
          return { done: true, value: undefined }
        },
      }
    },
  }
}

/** A task is its status and its artifacts so far. */
function split(batch: StreamBatch): StreamBatch {
  return {
    visit: (visitor) =>
      batch.visit({
        text: (text, place) => visitor.text(text, place),
        event: (event, seq) => ('task' in event ? splitTask(event.task, visitor, seq) : visitor.event(event, seq)),
      }),
  }
}

function splitTask({ id: taskId, contextId, status, artifacts = [] }: Task, visitor: StreamVisitor, seq: string | undefined): void {
  // The last one is what says that it is over.
  const state = { statusUpdate: { taskId, contextId, status } }
  if (!isFinal(status.state)) visitor.event(state, seq)
  for (const artifact of artifacts) visitor.event({ artifactUpdate: { taskId, contextId, artifact } }, seq)
  if (isFinal(status.state)) visitor.event(state, seq)
}

function shapeFor(taskId: string): Shape {
  /** By the order in which they came. As many as the task has artifacts. */
  const places = new Map<string, number>()
  const placeOf = (artifactId: string): number => {
    const known = places.get(artifactId)
    if (known !== undefined) return known
    places.set(artifactId, places.size)
    return places.size - 1
  }
  return (event: StreamEvent) => {
    if ('task' in event) return undefined
    // It knew no answer without a task: the message is what the task ends with.
    if ('message' in event) return { id: taskId, status: { state: 'completed', message: fromMessage(event.message) }, final: true }
    if ('statusUpdate' in event) {
      const { status, metadata } = event.statusUpdate
      return { id: taskId, status: fromStatus(status), final: isFinal(status.state), ...(metadata && { metadata }) }
    }
    const { artifact, append = false, lastChunk, metadata } = event.artifactUpdate
    const shown = { ...fromArtifact(artifact, placeOf(artifact.artifactId)), append, ...(lastChunk !== undefined && { lastChunk }) }
    return { id: taskId, artifact: shown, ...(metadata && { metadata }) }
  }
}
