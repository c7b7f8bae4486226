import type { Session } from '../../core/ports/session.ts'
import type { UampError } from '../../protocol/errors.ts'
import { invalid } from '../../wire/parse.ts'
import { RunEncoder, type Place, type RunPlan } from './encoder.ts'
import type { Out } from './events.ts'
import { markOf } from './ids.ts'

/** Asks for the whole run. */
const BEGINNING = '0'

/**
 * The place in a run of the last event that a client has. Throws if the event is not of this run: two runs in different threads may
 * have one id, and the events of the newer must not be told as the rest of the older.
 */
export async function placeIn(id: string, plan: RunPlan, { session, after }: { session: Session; after: number }): Promise<Place> {
  if (id === BEGINNING) return { seq: 0, part: Infinity }
  const [, seq, part = Infinity, mark] = /^(\d{1,15})(?:\.(\d{1,6}))?-(\w{1,32})$/.exec(id) ?? []
  if (seq === undefined || mark !== markOf(plan.response)) throw notOfThisRun()
  const place = { seq: Number(seq), part: Number(part) }
  if (place.seq <= after || place.seq > (await newest(plan, session, after))) throw notOfThisRun()
  return place
}

/** The `seq` of the newest event that this run has told. */
async function newest(plan: RunPlan, session: Session, after: number): Promise<number> {
  const { lastSeq: head } = session
  const encoder = new RunEncoder(plan)
  let [told, seen] = [0, after]
  const see = (seq = seen): void => void (seen = seq)
  const out: Out = {
    text: (_, __, seq) => void (told = seq),
    event: (_, id = 0) => void (told = Number.parseInt(String(id), 10)),
  }
  const reader = session.read({ after, extensions: 'all' })
  try {
    if (seen < head) {
      for await (const batch of reader) {
        batch.visit({ text: (_, seq) => see(seq), event: (_, seq) => see(seq) })
        encoder.read(batch, out)
        if (encoder.ended || seen >= head) break
      }
    }
  } finally {
    reader.close()
  }
  return told
}

function notOfThisRun(): UampError {
  return invalid('"Last-Event-ID" must be the "id" of an event of this run', 'Last-Event-ID')
}
