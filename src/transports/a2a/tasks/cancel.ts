import type { KnownCall } from '../../../core/ports/transport.ts'
import { UampError } from '../../../protocol/errors.ts'
import { a2aError } from '../errors.ts'
import { TERMINAL, type Message, type Task } from '../model.ts'
import type { Live } from './live.ts'
import { type Found, idsOf, mustFindOwn, notify, ownerOf, type Shared, statusOf, type TaskRecord } from './records.ts'
import { REJECTED } from './x402.ts'

/** Stops a task, and waits until it has stopped. */
export async function cancel(shared: Shared, call: KnownCall, id: string): Promise<Task> {
  const { lives, records, views } = shared
  const found = await mustFindOwn(shared, call, id)
  const live = lives.get(records.keyOf(call.principal, id))
  await live?.started
  if (live?.isRefused) return cancel(shared, call, id)
  if (live) return views.live(await cancelLive(shared, live))
  if (TERMINAL.has(found.record.status.state)) throw notCancelable(found.record)
  try {
    return await views.stored(await cancelWaiting(shared, found))
  } catch (thrown) {
    // Meanwhile the task went on, or somebody else cancelled it.
    if (UampError.from(thrown).code !== 'conflict' || isRefusal(thrown)) throw thrown
    return cancel(shared, call, id)
  }
}

async function cancelLive({ host }: Shared, live: Live): Promise<Live> {
  const { session } = live
  // A task that has ended meanwhile refuses it.
  await session.send({ type: 'response.cancel', event_id: host.newId(), response_id: live.step.turn }).catch(() => undefined)
  await live.ended.catch(() => undefined)
  if (live.record.status.state !== 'TASK_STATE_CANCELED') throw notCancelable(live.record)
  return live
}

/** Cancels a task that waits for its client. `refusal`: the message by which the client refused to pay. */
export async function cancelWaiting(shared: Shared, { record, version }: Found, refusal?: Message): Promise<TaskRecord> {
  const { host, records, lives } = shared
  const ids = idsOf(record)
  const now = host.now()
  const message: Message | undefined = refusal && {
    messageId: host.newId(),
    role: 'ROLE_AGENT',
    ...ids,
    parts: [{ text: 'The payment was refused.' }],
    metadata: REJECTED,
  }
  const status = statusOf('TASK_STATE_CANCELED', now, message)
  const added = refusal && message ? [{ ...records.settled(refusal), ...ids }, message] : []
  const { record: cancelled, operations } = records.withMessages({ ...record, status, updatedAt: now }, added)
  await records.store.batch([records.set(cancelled, version), ...operations])
  const step = record.steps.at(-1)
  if (step?.waits) {
    const session = await host.gateway.attach(step.session, ownerOf(record), 'cancel')
    await session?.end('cancelled')
  }
  lives.wake(records.keyOf(ownerOf(record), record.id))
  notify(shared, cancelled, { statusUpdate: { ...ids, status } })
  return cancelled
}

function notCancelable({ id, status }: TaskRecord): Error {
  return a2aError('TASK_NOT_CANCELABLE', `Task "${id}" has ended`, { taskId: id, state: status.state })
}

function isRefusal(thrown: unknown): boolean {
  return thrown instanceof UampError && thrown.details?.['reason'] !== undefined
}
