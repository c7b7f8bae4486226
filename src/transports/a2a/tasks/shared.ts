import type { Host, KnownCall } from '../../../core/ports/transport.ts'
import { a2aError } from '../errors.ts'
import type { Message, StreamEvent, TaskState, TaskStatus } from '../model.ts'
import type { Push } from '../push/index.ts'
import { agentOf } from '../request.ts'
import type { Lives } from './live.ts'
import { ownerOf, type Found, type TaskRecord, type TaskRecords } from './records.ts'
import type { Views } from './views.ts'

/** What tasks need of push notifications. */
export type TaskPush = Omit<Push, 'set' | 'get' | 'list' | 'delete'>

/** What the parts of the engine share. */
export interface Shared {
  readonly host: Host
  readonly records: TaskRecords
  readonly lives: Lives
  readonly views: Views
  readonly push: TaskPush
}

/** A task of the caller and of the agent that the call is for. Others are not found, so that nobody learns whether they exist. */
export async function findOwn(shared: Shared, call: KnownCall, id: string): Promise<Found | undefined> {
  const { records, lives, host } = shared
  if (!id.isWellFormed()) return undefined
  const agent = agentOf(host, call).name
  const live = lives.get(records.keyOf(call.principal, id))
  // Only the live task itself writes its record, so nobody else needs the version.
  const found = live ? { record: live.record, version: 0 } : await records.find(call.principal, id)
  // A task that is about to begin has no response yet.
  if (found?.record.steps.length === 0) return undefined
  return found?.record.agent === agent ? found : undefined
}

export async function mustFindOwn(shared: Shared, call: KnownCall, id: string): Promise<Found> {
  const found = await findOwn(shared, call, id)
  if (!found) throw notFound(id)
  return found
}

export function notFound(id: string): Error {
  return a2aError('TASK_NOT_FOUND', `Task "${id.slice(0, 256)}" was not found`, { taskId: id.slice(0, 256) })
}

export function statusOf(state: TaskState, now: number, message?: Message): TaskStatus {
  return { state, timestamp: new Date(now).toISOString(), ...(message && { message }) }
}

/** The ids that every update of a task has. */
export function idsOf({ id: taskId, contextId }: TaskRecord): { readonly taskId: string; readonly contextId: string } {
  return { taskId, contextId }
}

/** Tells the webhooks of a task. */
export function notify({ push, views }: Shared, record: TaskRecord, event: StreamEvent): void {
  const owner = ownerOf(record)
  push.notify(owner, { taskId: record.id, generation: record.generation, task: () => views.now(owner, record.id) }, event)
}
