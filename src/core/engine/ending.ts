import type { Journal } from '../durable/journal.ts'
import type { SessionRecord, TurnRecord } from '../durable/records.ts'
import type { Log } from '../log/log.ts'
import { withSeconds } from '../reading/audio-seconds.ts'
import type { Operation } from '../ports/store.ts'
import type { SessionSecrets } from '../secrets/session-secrets.ts'
import type { Closing } from './closing.ts'
import { closedRecord, reported, terminalEvent, type End } from './run.ts'
import type { SessionHost } from './session-parts.ts'
import { signedEnd } from './signing.ts'
import type { ActiveTurn } from './turn.ts'

interface Ending {
  readonly host: SessionHost
  readonly turn: ActiveTurn
  readonly end: End
  /** The record of the response, as it was opened. */
  readonly before: TurnRecord
  readonly journal: Journal | undefined
  /** Undefined: nothing was paid for it. */
  readonly closing: Closing | undefined
}

interface EndingSession extends SessionRecord {
  readonly log: Log
  readonly secrets: SessionSecrets
}

/** Stores the end of a response with what was paid for it, all or nothing, and then tells it. */
export async function tellEnd(session: EndingSession, ending: Ending): Promise<{ readonly record: TurnRecord; readonly end: End }> {
  const { host, turn, before, journal, closing } = ending
  const { log, config } = session
  const told = reported(session, { host, turn, end: ending.end, events: log.head + 1 - before.after })
  const signing = signedEnd(told, { host, turn, record: before, config })
  const end = signing ? await signing : told
  turn.output.usage = withSeconds(turn.output.usage, before.input, end.output)
  const record = closedRecord(before, end, { endedAt: host.now(), turn })
  const event = terminalEvent(turn.responseId, end, turn.output.usage)
  const { keeper } = turn
  const kept = (isFirst: boolean): readonly Operation[] => keeper?.closed(record, event, isFirst) ?? []
  const commit = (): Promise<void> | undefined => {
    if (!closing) return journal?.end(session, record, kept)
    const { operations } = closing
    if (journal) return journal.end(session, record, (isFirst) => [...kept(isFirst), ...operations])
    return operations.length > 0 ? host.payments?.write(operations) : undefined
  }
  const over = (failure: unknown): void => {
    keeper?.settled?.(failure)
    closing?.done(failure)
  }
  // Nobody is told that an answer was paid if it was not. What else is stored has been told in part already.
  const untold = closing?.isTold === true || journal?.silent === true
  try {
    await log.seal(turn.stamp, event, { commit, untold, over })
  } catch (error) {
    host.log('error', 'The end of a response could not be stored', { session: session.id, error, ...turn.trace?.fields })
  }
  return { record, end }
}
