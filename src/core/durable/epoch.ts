import { UampError } from '../../protocol/errors.ts'
import type { Store } from '../ports/store.ts'
import { storeKey } from '../basics/store-key.ts'

/** Of no tenant: it is the server's own. */
const KEY = storeKey('', 'epoch')

/** More numbers than a process can use in one session beyond those that it commits: the log waits for the store long before. */
const NUMBERS = 100_000
/** What the first version added to a session's last committed number, with as much again for what it then used. */
const FIRST_VERSION = 1_100_000

/** From where, and by which start of the process, a session was last numbered. Absent in records of the first version. */
export interface Numbering {
  readonly epoch?: number
  /** The number before the first that was used. */
  readonly base?: number
}

/**
 * Counts one more start of the process, durably, before it uses a number. A process that dies before it commits anything leaves
 * only this behind, so the next one knows that numbers may have been used.
 */
export async function beginEpoch(store: Store): Promise<number> {
  for (;;) {
    const before = await store.get(KEY)
    const epoch = ((before?.value as number | undefined) ?? 0) + 1
    try {
      await store.set(KEY, epoch, { ifVersion: before?.version ?? 0, sync: true })
      return epoch
    } catch (error) {
      // Another gateway on the same store has just begun.
      if (UampError.from(error).code !== 'conflict') throw error
    }
  }
}

/**
 * The number that a session's events go on after. Each start of the process since the session's last record may have used up to
 * `NUMBERS` of them without committing one, so each is given as many: no number stands for two events.
 */
export function lastNumber(position: number, { epoch: then = 0, base = position + FIRST_VERSION }: Numbering, epoch: number): number {
  return Math.max(position, base) + (epoch - then) * NUMBERS
}
