import type { RecoverKeeper } from '../../../core/ports/keeper.ts'
import type { Operation } from '../../../core/ports/store.ts'
import type { Message } from '../model.ts'
import { Endings, type Ending } from './ending.ts'
import { ownerOf, type Found, type Step, type TaskRecord } from './records.ts'
import { KEEPER, statusOf, type Shared, type TaskNote } from './shared.ts'

interface Closed {
  readonly record: TaskRecord
  readonly operations: readonly Operation[]
}

/** A task whose response has ended, and what is written for that. */
export function closing(
  { host, records }: Shared,
  { record: before, version }: Partial<Found> & Pick<Found, 'record'>,
  ending: Ending,
): Closed {
  const { id: taskId, contextId, steps } = before
  const updatedAt = host.now()
  const said = ending.message
  const message: Message | undefined = said && { messageId: host.newId(), role: 'ROLE_AGENT', taskId, contextId, ...said }
  const status = statusOf(ending.state, updatedAt, message)
  const step: Step = { ...(steps.at(-1) as Step), end: status, ...(ending.waits && { waits: true }), ...(ending.quiet && { quiet: true }) }
  const ended = {
    ...before,
    updatedAt,
    status,
    steps: [...steps.slice(0, -1), step],
    ...(ending.metadata && { metadata: { ...before.metadata, ...ending.metadata } }),
  }
  const { record, operations } = records.withMessages(ended, message ? [message] : [])
  return { record, operations: [records.set(record, version), ...operations] }
}

/** Goes on with the task of a response that a crash left open. */
export function recoverTask(shared: Shared): RecoverKeeper {
  return async (turn) => {
    const { task } = (turn.note ?? {}) as Partial<TaskNote>
    const found = task === undefined ? undefined : await shared.records.find(ownerOf(turn), task)
    if (found?.record.steps.at(-1)?.turn !== turn.id) return undefined
    const endings = new Endings()
    return {
      name: KEEPER,
      opened: () => () => [],
      see: (event) => endings.see(event),
      closed: (_, end) => closing(shared, { record: found.record }, endings.end(end, shared.host.now())).operations,
    }
  }
}
