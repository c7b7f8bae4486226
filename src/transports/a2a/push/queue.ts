import type { StreamEvent, Task, TaskStatus } from '../model.ts'
import type { Notified } from './index.ts'

/** What waits for a webhook. */
export type Item =
  /** The body, ready. */
  | { readonly kind: 'body'; readonly body: string }
  /** The task, read when its turn comes. `status`: the one that it is sent for. */
  | { readonly kind: 'task'; readonly of: Notified; readonly status: TaskStatus | undefined }

/** An event as what waits. Undefined: this generation is not told of it. */
export function itemOf(of: Notified, event: StreamEvent): Item | undefined {
  if (of.generation === '1.0') return { kind: 'body', body: JSON.stringify(event) }
  // Before 1.0 a webhook gets the whole task, so an artifact is no reason to call it: the next status brings it.
  if ('statusUpdate' in event) return { kind: 'task', of, status: event.statusUpdate.status }
  return 'task' in event ? { kind: 'task', of, status: event.task.status } : undefined
}

export function lengthOf(item: Item): number {
  return item.kind === 'body' ? item.body.length : 0
}

type Shape = (task: Task, generation: Notified['generation']) => object

export async function bodyOf(item: Item, shape: Shape): Promise<string> {
  if (item.kind === 'body') return item.body
  const task = await item.of.task()
  if (item.of.generation === '1.0') return JSON.stringify({ task })
  return JSON.stringify(shape(item.status ? { ...task, status: item.status } : task, item.of.generation))
}
