import { UampError } from '../../../protocol/errors.ts'
import type { KnownCall } from '../../../core/ports/transport.ts'
import type { StreamBatch, StreamEvent, TaskStream, Tasks } from '../model.ts'

/**
 * The rest of a task's events. 1.0 refuses a task that is over; the earlier generations had no such rule, and a client that lost its
 * connection just before the end would not learn of it. So it gets the task as it is, and the end of the stream.
 */
export async function resubscribe(tasks: Tasks, call: KnownCall, id: string): Promise<TaskStream> {
  const after = call.request.headers.get('last-event-id') ?? undefined
  try {
    return await tasks.subscribe(call, { id, after })
  } catch (thrown) {
    const error = UampError.from(thrown)
    if (error.details?.['reason'] !== 'UNSUPPORTED_OPERATION') throw error
    const task = await tasks.get(call, { id })
    return { taskId: task.id, contextId: task.contextId, batches: only({ task }) }
  }
}

// eslint-disable-next-line require-yield -- what it returns is its only batch
async function* only(event: StreamEvent): AsyncGenerator<StreamBatch, StreamBatch> {
  return { visit: (visitor) => visitor.event(event, undefined) }
}
