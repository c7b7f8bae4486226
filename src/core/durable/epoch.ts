import { UampError } from '../../protocol/errors.ts'
import type { Store } from '../ports/store.ts'
import { storeKey } from '../basics/store-key.ts'

/** Has no tenant, because it belongs to the server. */
const KEY = storeKey('', 'epoch')

/** More numbers than a process can use in one session without committing them: the log waits for the store long before. */
const NUMBERS = 100_000
/** Above all numbers that the first version may have used: after a restart it skipped a million, and then went on from there. */
const FIRST_VERSION = 1_100_000

/** How a session's events were last numbered. Absent in records of the first version. */
export interface Numbering {
  /** The start of the process that numbered them. */
  readonly epoch?: number
  /** The number before its first. */
  readonly base?: number
}

/**
 * Counts this start of the process in the store before it uses a number. A process that dies before it commits an event leaves only
 * this count behind, which tells the next one that numbers may have been used.
 */
export async function beginEpoch(store: Store): Promise<number> {
  for (;;) {
    const before = await store.get(KEY)
    const epoch = ((before?.value as number | undefined) ?? 0) + 1
    try {
      await store.set(KEY, epoch, { ifVersion: before?.version ?? 0, sync: true })
      return epoch
    } catch (error) {
      // Another gateway on the same store has just started: count again.
      if (UampError.from(error).code !== 'conflict') throw error
    }
  }
}

/**
 * The number after which a session's events continue. Each start of the process since the session's last record may have used up to
 * `NUMBERS` without committing one. So each is given as many, and no number ever stands for two events.
 */
export function lastNumber(position: number, { epoch: then = 0, base = position + FIRST_VERSION }: Numbering, epoch: number): number {
  return Math.max(position, base) + (epoch - then) * NUMBERS
}
