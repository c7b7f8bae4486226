import type { KnownCall } from '../../../core/ports/transport.ts'
import { a2aError } from '../errors.ts'
import { TERMINAL, type Message, type StreamEvent, type Task, type TaskStream } from '../model.ts'
import type { Started } from './begin.ts'
import { Following, single, type From } from './following.ts'
import type { TaskRecord } from './records.ts'
import type { Shared } from './shared.ts'

/** A response, and the number of the last event of its log that a client has. */
const EVENT_ID = /^(\d{1,6})\.(\d{1,15})$/

/** Of a task that was just begun, or goes on. */
export function begun(shared: Shared, call: KnownCall, { started, opening }: { started: Started; opening: Task }): TaskStream {
  const { live, reader } = started
  return stream(shared, call, { record: live.record, from: { index: live.index, known: 0, opening, reader } })
}

interface Joining {
  readonly record: TaskRecord
  readonly after: string | undefined
  readonly stays: boolean
}

/** Of a task from now on, the task itself first; or from after an event that the client has. */
export function joined(shared: Shared, call: KnownCall, { record, after, stays }: Joining): TaskStream {
  const [, index, known] = EVENT_ID.exec(after ?? '') ?? []
  // What is no event of this task tells nothing about what the client has.
  if (index !== undefined && Number(index) <= record.steps.length) {
    return stream(shared, call, { record, from: { index: Number(index), known: Number(known), stays } })
  }
  if (TERMINAL.has(record.status.state)) {
    throw a2aError('UNSUPPORTED_OPERATION', `Task "${record.id}" has ended: get it instead`, { taskId: record.id })
  }
  return stream(shared, call, { record, from: { index: record.steps.length - 1, known: 0, opening: 'now', stays } })
}

/** One message, and nothing else. */
export function answered(taskId: string, message: Message): TaskStream {
  return { taskId, contextId: message.contextId ?? '', batches: one({ message }) }
}

function stream(shared: Shared, call: KnownCall, { record, from }: { record: TaskRecord; from: From }): TaskStream {
  return { taskId: record.id, contextId: record.contextId, batches: new Following(shared, call, record).batches(from) }
}

/** A task that the message ended. */
export function ended(task: Task): TaskStream {
  return { taskId: task.id, contextId: task.contextId, batches: one({ task }) }
}

function one(event: StreamEvent): TaskStream['batches'] {
  return { [Symbol.asyncIterator]: () => ({ next: async () => ({ done: true, value: single(event) }) }) }
}
