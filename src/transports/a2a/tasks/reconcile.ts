import type { StoredTurn } from '../../../core/ports/session.ts'
import { UampError } from '../../../protocol/errors.ts'
import type { TaskState } from '../model.ts'
import { Endings, isEnd, type Ending } from './ending.ts'
import { ended, endOperations } from './live.ts'
import { isRunning, ownerOf, type Found, type Step, type TaskRecord } from './records.ts'
import { notify, type Shared } from './shared.ts'

/**
 * Brings every task up to date that was running when the last process ended, and tells the webhooks what that process did not come
 * to tell them. Once, at the start.
 */
export async function reconcile(shared: Shared): Promise<void> {
  const { records, push } = shared
  for await (const record of records.running()) {
    const found = await records.find(ownerOf(record), record.id)
    if (found) await close(shared, found)
  }
  for await (const { owner, taskId, told } of push.debts()) {
    const found = await records.find(owner, taskId)
    if (!found) await push.forgive(owner, taskId)
    else if (!isRunning(found.record) && found.record.status.timestamp !== told) await tellEnd(shared, found.record)
  }
}

/** A task that is stored as running while nobody runs it: its response has ended, and its record was not told. */
export async function broughtUpToDate(shared: Shared, found: Found): Promise<Found> {
  const closed = await close(shared, found)
  if (closed) await tellEnd(shared, closed)
  const { records } = shared
  return (await records.find(ownerOf(found.record), found.record.id)) ?? found
}

/** What a task that ends while somebody watches tells its webhooks. */
async function tellEnd(shared: Shared, record: TaskRecord): Promise<void> {
  const { id: taskId, contextId, status } = record
  const artifacts = status.state === 'TASK_STATE_FAILED' ? [] : await shared.views.newest(record)
  for (const artifact of artifacts) {
    notify(shared, record, { artifactUpdate: { taskId, contextId, artifact, append: false, lastChunk: true } })
  }
  notify(shared, record, { statusUpdate: { taskId, contextId, status } })
}

/** The task, if it was still running and is closed now. */
async function close(shared: Shared, found: Found): Promise<TaskRecord | undefined> {
  const { records, lives, host, push } = shared
  const { record, version } = found
  const owner = ownerOf(record)
  const key = records.keyOf(owner, record.id)
  const step = record.steps.at(-1) as Step
  const turn = await host.gateway.turn(step.turn, owner)
  if (lives.get(key) || turn?.status === 'open') return undefined
  const ending = (turn && (await readEnding(shared, record, step))) ?? endingOf(turn)
  const now = ended(record, ending, host)
  const [set, ...others] = endOperations(shared, now.record, { ending, message: now.message })
  if (!set || set.op !== 'set') return undefined
  await push.owe(owner, record.id)
  try {
    await records.store.batch([{ ...set, options: { ...set.options, ifVersion: version } }, ...others])
  } catch (thrown) {
    // It was brought up to date by somebody else.
    if (UampError.from(thrown).code !== 'conflict') throw thrown
    return undefined
  }
  return now.record
}

/** From the log, which has more than the record of the response: why an agent stopped, what it asked. */
async function readEnding({ host }: Shared, record: TaskRecord, step: Step): Promise<Ending | undefined> {
  const session = await host.gateway.attach(step.session, ownerOf(record))
  if (!session) return undefined
  const endings = new Endings()
  let ending: Ending | undefined
  const reader = session.read({ after: step.after, extensions: 'all' })
  try {
    // It has an end: that is written together with the record of the response.
    for await (const batch of reader) {
      batch.visit({
        text: () => {
          endings.spoke = true
        },
        event: (event) => {
          if (ending) return
          if (isEnd(event)) ending = endings.end(event, host.now())
          else endings.see(event)
        },
      })
      if (ending) break
    }
  } finally {
    reader.close()
    await session.release()
  }
  return ending
}

const STATES: Readonly<Record<Exclude<StoredTurn['status'], 'open'>, TaskState>> = {
  waiting: 'TASK_STATE_INPUT_REQUIRED',
  completed: 'TASK_STATE_COMPLETED',
  cancelled: 'TASK_STATE_CANCELED',
  failed: 'TASK_STATE_FAILED',
}

/** From its record alone, or from nothing: it never began. */
function endingOf(turn: StoredTurn | undefined): Ending {
  const base = { quiet: false, metadata: undefined, output: undefined }
  if (!turn || turn.status === 'open') {
    const message = { parts: [{ text: 'Interrupted: the server was stopped before it answered' }], metadata: { code: 'interrupted' } }
    return { ...base, state: 'TASK_STATE_FAILED', waits: false, message }
  }
  const { error, status } = turn
  const message = error && { parts: [{ text: error.message }], metadata: { code: error.code } }
  return { ...base, state: STATES[status], waits: status === 'waiting', message }
}
