import { isEnd } from '../../../core/reading/response-fold.ts'
import type { Principal } from '../../../core/ports/access.ts'
import type { StoredResponse } from '../../../core/ports/session.ts'
import { Endings, type Ending } from './ending.ts'
import { closing } from './live.ts'
import { type Found, idsOf, isRunning, notify, ownerOf, type Shared, type Step, type TaskRecord } from './records.ts'

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
  const ending = (turn && turn.status !== 'open' && (await readEnding(shared, turn, owner))) || LOST
  await push.owe(owner, record.id)
  await records.store.batch(closing(shared, found, ending).operations)
}

/** The end of a response whose record or end is lost. */
const LOST: Ending = {
  state: 'TASK_STATE_FAILED',
  message: { parts: [{ text: 'Interrupted: the server was stopped before it answered' }], metadata: { code: 'interrupted' } },
  waits: false,
  quiet: false,
  output: undefined,
  metadata: undefined,
}

/** Reads the end from the log, which alone has the questions and the reason why the agent stopped. */
async function readEnding({ host }: Shared, { id, session: name, after }: StoredResponse, owner: Principal): Promise<Ending | undefined> {
  const session = await host.gateway.attach(name, owner, 'read')
  if (!session) return undefined
  const reader = session.read({ after, extensions: 'all' })
  const endings = new Endings()
  try {
    if (session.lastSeq <= after) return undefined
    for await (const batch of reader) {
      for (const { event, seq } of batch) {
        const isMine = 'response_id' in event && event.response_id === id
        if (isMine && isEnd(event)) return endings.end(event, host.now())
        if (isMine) endings.see(event)
        if (seq === session.lastSeq) return undefined
      }
    }
    return undefined
  } finally {
    reader.close()
    await session.release()
  }
}
