import type { Principal } from '../../../core/ports/access.ts'
import type { Host } from '../../../core/ports/transport.ts'
import { a2aError } from '../errors.ts'
import type { Generation, Message, PushConfig, StreamEvent, Task, TaskState, TaskStatus } from '../model.ts'
import type { Lives } from './lives.ts'
import type { TaskRecord, TaskRecords } from './records.ts'
import type { Views } from './views.ts'

/** The task that an event is of. */
interface Notified {
  readonly taskId: string
  readonly generation: Generation
  /** The task as it is when this is called; the event is already part of it. */
  readonly task: () => Promise<Task>
}

/** Called for every change of a task's state and every artifact that is whole. Returns at once and does not throw. */
type Notify = (owner: Principal, of: Notified, event: StreamEvent) => void

type NewConfig = Omit<PushConfig, 'id'> & { readonly id?: string }

/** What the engine needs of push notifications. */
export interface TaskPush {
  /** Throws what is wrong with a config, before anything is done for the request that brings it. */
  check(config: Omit<NewConfig, 'taskId'>): void
  /** For a task that its owner has just made. Awaited before its first event, so that none is missed. */
  attach(owner: Principal, config: NewConfig): Promise<PushConfig>
  notify: Notify
  /** Awaited before a task is closed for a process that died: its webhooks are told, if need be after the next start. */
  owe(owner: Principal, taskId: string): Promise<void>
  /** Tasks whose webhooks may not have been told of the status that they have. */
  debts(): AsyncIterable<Debt>
  /** There is no such task any more. */
  forgive(owner: Principal, taskId: string): Promise<void>
}

/** `told`: the time of the status that they were told last. */
interface Debt {
  readonly owner: Principal
  readonly taskId: string
  readonly told: string | undefined
}

/** What the parts of the engine share. */
export interface Shared {
  readonly host: Host
  readonly records: TaskRecords
  readonly lives: Lives
  readonly views: Views
  readonly push: TaskPush
}

/** By which recovery knows a response that belongs to a task. */
export const KEEPER = 'a2a'

/** What is noted with a response: after a crash its task is found by it. */
export interface TaskNote {
  readonly task: string
}

export function notFound(id: string): Error {
  return a2aError('TASK_NOT_FOUND', `Task "${id.slice(0, 256)}" was not found`, { taskId: id.slice(0, 256) })
}

export function statusOf(state: TaskState, now: number, message?: Message): TaskStatus {
  return { state, ...(message && { message }), timestamp: new Date(now).toISOString() }
}

/** Tells those who have a webhook on a task. */
export function notify({ push, views }: Shared, record: TaskRecord, event: StreamEvent): void {
  const owner = { tenant: record.tenant, id: record.owner, scopes: [] }
  push.notify(owner, { taskId: record.id, generation: record.generation, task: () => views.now(owner, record.id) }, event)
}
