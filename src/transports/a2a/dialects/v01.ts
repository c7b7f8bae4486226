/** A2A 0.1. Agents of UAMP transports send its messages too. */
import * as z from 'zod/mini'
import type { Host } from '../../../core/ports/transport.ts'
import { partIn } from '../../../wire/a2a/parts.ts'
import { SPELLED } from '../../../wire/a2a/states.ts'
import type { Artifact, Message, PushConfig, SendRequest, SendResult, StreamEvent, Task, TaskStatus, TaskStream } from '../model.ts'
import type { Dialect } from '../operations.ts'
import { parseParams } from '../request.ts'
import { filled, Id, maybe, Metadata } from '../schema.ts'
import type { Shape } from '../stream.ts'
import { HistoryLength, LoosePart, Modes, partsOf, Push, Role } from './v03-schema.ts'
import { fromPushConfig, toPart, toPush, v03 } from './v03.ts'
import { isFinal, statusIn, taskIn, type Words } from './words.ts'

/** Messages had no id of their own. */
export const SentMessage = z.object({ role: Role, parts: partsOf(LoosePart), metadata: Metadata })

export const TaskSendParams = z.object({
  /** The client may choose the id of its task. */
  id: maybe(Id),
  sessionId: maybe(Id),
  message: SentMessage,
  pushNotification: maybe(Push),
  historyLength: HistoryLength,
  acceptedOutputModes: Modes,
  metadata: Metadata,
})

const SetPushParams = z.object({ id: Id, pushNotificationConfig: Push })

export const v01: Dialect = {
  version: '0.1',
  read: {
    ...v03.read,
    send: (params, newId) => toSendRequest(parseParams(TaskSendParams, params), newId()),
    get(params) {
      const { id, historyLength } = v03.read.get(params)
      return { id, historyLength: historyLength ?? NO_HISTORY }
    },
    // A task had one config, which had no id.
    setPush(params) {
      const { id, pushNotificationConfig } = parseParams(SetPushParams, params)
      return { ...toPush(pushNotificationConfig), id, taskId: id }
    },
    getPush: (params) => ({ taskId: v03.read.task(params).id }),
  },
  write: { ...v03.write, sent: fromSent, task: fromTask, events: eventsOf, push: fromPush },
}

/** A2A 0.1.0 §7.1.1, §7.3.1: a client gets no history unless it asks for some. */
const NO_HISTORY = 0

export function toMessage({ parts, metadata }: z.output<typeof SentMessage>, messageId: string): Message {
  return { messageId, role: 'ROLE_USER', parts: parts.map(toPart), ...filled({ metadata }) }
}

/** A message to a task that exists goes on with it. */
export function toSendRequest(params: z.output<typeof TaskSendParams>, messageId: string): SendRequest {
  const { id, sessionId, message, pushNotification, historyLength, acceptedOutputModes, metadata } = params
  return {
    message: { ...toMessage(message, messageId), ...filled({ contextId: sessionId }) },
    generation: '0.1',
    returnImmediately: false,
    historyLength: historyLength ?? NO_HISTORY,
    ...filled({ chosenId: id, acceptedOutputModes, metadata }),
    ...(pushNotification && { push: toPush(pushNotification) }),
  }
}

/** 0.1 has neither `rejected` nor `auth-required`. */
const STATES = { ...SPELLED, TASK_STATE_REJECTED: 'failed', TASK_STATE_AUTH_REQUIRED: 'input-required' } as const

const WORDS: Words = { message: fromMessage, artifact: fromArtifact, state: (state) => STATES[state] }

export const part = partIn('type')

export function fromMessage({ role, parts, metadata }: Message): object {
  return { role: role === 'ROLE_USER' ? 'user' : 'agent', parts: parts.map(part), ...(metadata && { metadata }) }
}

/** Artifacts had no id: chunks are put together by their place in the task. */
function fromArtifact({ artifactId: _, extensions: __, parts, ...rest }: Artifact, index: number): object {
  return { ...rest, parts: parts.map(part), index }
}

export function fromTask(task: Task): object {
  const { contextId: sessionId, ...rest } = taskIn(WORDS, task) as { readonly contextId: string }
  return { ...rest, sessionId }
}

function fromPush(config: PushConfig): object {
  const { id: _, ...rest } = fromPushConfig(config) as { readonly id: string }
  return { id: config.taskId, pushNotificationConfig: rest }
}

/** 0.1 has no answer without a task, so a message is what the task ends with. */
function fromSent(result: SendResult, { chosenId }: SendRequest, host: Host): object {
  if ('task' in result) return fromTask(result.task)
  const { message } = result
  const status = { state: 'completed', message: fromMessage(message), timestamp: new Date(host.now()).toISOString() }
  return { id: chosenId ?? host.newId(), sessionId: message.contextId ?? null, status }
}

/** 0.1 has two events: a status, and an artifact or a piece of one. A task is its status and its artifacts so far. */
export function eventsOf({ taskId }: TaskStream): Shape {
  /** By the order in which they came: as many as the task has artifacts. */
  const places = new Map<string, number>()
  const placeOf = (artifactId: string): number => {
    const known = places.get(artifactId) ?? places.size
    places.set(artifactId, known)
    return known
  }
  const statusEvent = (status: TaskStatus): object => ({ id: taskId, status: statusIn(WORDS, status), final: isFinal(status.state) })
  return (event: StreamEvent) => {
    if ('task' in event) {
      const { status, artifacts = [] } = event.task
      const made = artifacts.map((artifact) => ({
        id: taskId,
        artifact: { ...fromArtifact(artifact, placeOf(artifact.artifactId)), append: false },
      }))
      // The last event is the one that says that the task is over.
      return isFinal(status.state) ? [...made, statusEvent(status)] : [statusEvent(status), ...made]
    }
    if ('message' in event) return [{ id: taskId, status: { state: 'completed', message: fromMessage(event.message) }, final: true }]
    if ('statusUpdate' in event) {
      const { status, metadata } = event.statusUpdate
      return [{ ...statusEvent(status), ...(metadata && { metadata }) }]
    }
    const { artifact, append = false, lastChunk, metadata } = event.artifactUpdate
    const shown = { ...fromArtifact(artifact, placeOf(artifact.artifactId)), append, ...(lastChunk !== undefined && { lastChunk }) }
    return [{ id: taskId, artifact: shown, ...(metadata && { metadata }) }]
  }
}
