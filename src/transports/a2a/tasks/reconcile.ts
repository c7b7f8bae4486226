import type { StoredTurn } from '../../../core/ports/session.ts'
import { UampError } from '../../../protocol/errors.ts'
import type { TaskState } from '../model.ts'
import { Endings, isEnd, type Ending } from './ending.ts'
import { ended, endOperations } from './live.ts'
import { ownerOf, type Found, type Step, type TaskRecord } from './records.ts'
import type { Shared } from './shared.ts'

/** Brings every task up to date that was running when the last process ended. Once, before the first call. */
export async function reconcile(shared: Shared): Promise<void> {
  for await (const record of shared.records.running()) {
    const found = await shared.records.find(ownerOf(record), record.id)
    if (found) await broughtUpToDate(shared, found)
  }
}

/** A task that is stored as running while nobody runs it: its response has ended, and its record was not told. */
export async function broughtUpToDate(shared: Shared, found: Found): Promise<Found> {
  const { records, lives, host } = shared
  const { record, version } = found
  const owner = ownerOf(record)
  const key = records.keyOf(owner, record.id)
  const step = record.steps.at(-1) as Step
  const turn = await host.gateway.turn(step.turn, owner)
  if (lives.get(key) || turn?.status === 'open') return found
  const ending = (turn && (await readEnding(shared, record, step))) ?? endingOf(turn)
  const now = ended(record, ending, host)
  const [set, ...others] = endOperations(shared, now.record, { ending, message: now.message })
  if (!set || set.op !== 'set') return found
  try {
    await records.store.batch([{ ...set, options: { ...set.options, ifVersion: version } }, ...others])
  } catch (thrown) {
    // It was brought up to date by somebody else.
    if (UampError.from(thrown).code !== 'conflict') throw thrown
  }
  return (await records.find(owner, record.id)) ?? found
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
