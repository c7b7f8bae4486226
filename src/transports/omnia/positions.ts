import type { Session } from '../../core/ports/session.ts'
import type { Host } from '../../core/ports/transport.ts'
import { storeKey } from '../../core/store-key.ts'
import type { Carried } from './narrator.ts'

/** How far a connection has told its session's log, and what it was in the middle of. */
export interface Position extends Carried {
  readonly seq: number
  /** The answer that runs, where it was asked for on that connection. */
  readonly asked?: string
  /** It waits for money, and the client was told so. */
  readonly unpaid?: boolean
}

/** As long as a session, usually. */
const KEPT_MS = 7 * 24 * 3_600_000

/**
 * What clients have heard of their sessions, for those who come back after a break: the protocol has no number to ask from. Kept in the
 * store when a connection goes, and only where there may be more to tell.
 */
export class Positions {
  readonly #host: Host

  constructor(host: Host) {
    this.#host = host
  }

  /** Not waited for: the store reads its own writes. */
  keep(session: Session, position: Position): void {
    const { store, log } = this.#host
    store
      .set(keyOf(session), { ...position }, { ttlMs: KEPT_MS })
      .catch((error: unknown) => log('warn', 'What a client has heard could not be kept', { session: session.id, error }))
  }

  /** Where it goes on: for one connection, once. Undefined when all was told, or it was too long ago. */
  async take(session: Session): Promise<Position | undefined> {
    const { store } = this.#host
    const key = keyOf(session)
    const kept = await store.get(key)
    if (kept) await store.delete(key)
    return kept?.value as Position | undefined
  }
}

/** Where a session's things are kept apart from those of others. */
export function placeOf({ owner, id }: Pick<Session, 'owner' | 'id'>): string {
  return `${owner.tenant} ${id}`
}

function keyOf({ owner, id }: Session): string {
  return storeKey(owner.tenant, 'omnia', 'position', id)
}
