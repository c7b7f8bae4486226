import type { StoredResponse } from '../../../core/ports/session.ts'
import type { TaskState } from '../model.ts'
import type { Ending } from './ending.ts'
import { closing } from './live.ts'
import { isRunning, ownerOf, type Found, type Step, type TaskRecord } from './records.ts'
import { idsOf, notify, type Shared } from './shared.ts'

/**
 * Tells the webhooks what the last process did not tell them, and closes the tasks that version 0.1 left running. Runs once, after
 * the gateway has closed the responses that the last process left open.
 */
export async function reconcile(shared: Shared): Promise<void> {
  const { records, push } = shared
  for await (const record of records.leftRunning()) {
    const found = await records.find(ownerOf(record), record.id)
    if (found) await close(shared, found)
  }
  for await (const { owner, taskId, told } of push.debts()) {
    const found = await records.find(owner, taskId)
    if (!found) await push.forgive(owner, taskId)
    else if (!isRunning(found.record) && found.record.status.timestamp !== told) await tellEnd(shared, found.record)
  }
}

/** Tells webhooks of the end of a task, as a running task does. */
async function tellEnd(shared: Shared, record: TaskRecord): Promise<void> {
  const { status } = record
  const artifacts = status.state === 'TASK_STATE_FAILED' ? [] : await shared.views.given(record, record.steps.slice(-1))
  for (const artifact of artifacts) {
    notify(shared, record, { artifactUpdate: { ...idsOf(record), artifact, append: false, lastChunk: true } })
  }
  notify(shared, record, { statusUpdate: { ...idsOf(record), status } })
}

async function close(shared: Shared, found: Found): Promise<void> {
  const { records, host, push } = shared
  const { record } = found
  const owner = ownerOf(record)
  const turn = await host.gateway.response((record.steps.at(-1) as Step).turn, owner)
  await push.owe(owner, record.id)
  await records.store.batch(closing(shared, found, endingOf(turn)).operations)
}

const STATES: Readonly<Record<Exclude<StoredResponse['status'], 'open'>, TaskState>> = {
  waiting: 'TASK_STATE_INPUT_REQUIRED',
  completed: 'TASK_STATE_COMPLETED',
  cancelled: 'TASK_STATE_CANCELED',
  failed: 'TASK_STATE_FAILED',
}

/** How a response left its task, by its record alone. Without a record it never began. */
function endingOf(turn: StoredResponse | undefined): Ending {
  const base = { quiet: false, metadata: undefined, output: undefined }
  if (!turn || turn.status === 'open') {
    const message = { parts: [{ text: 'Interrupted: the server was stopped before it answered' }], metadata: { code: 'interrupted' } }
    return { ...base, state: 'TASK_STATE_FAILED', waits: false, message }
  }
  const { error, status } = turn
  const message = error && { parts: [{ text: error.message }], metadata: { code: error.code } }
  return { ...base, state: STATES[status], waits: status === 'waiting', message }
}
