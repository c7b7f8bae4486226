import type { Session } from '../../core/ports/session.ts'
import type { Host } from '../../core/ports/transport.ts'
import { storeKey } from '../../core/basics/store-key.ts'

/** How far a connection has told its session's log. */
export interface Position {
  readonly seq: number
  /** The answer that was being told began after this: what has to be known of it is read again from here. */
  readonly since: number | null
}

/** `all`: who had heard the least hung up, and misses nothing. */
type Kept = Position | 'all'

interface Now extends Pick<Host, 'store'> {
  readonly key: string
  readonly kept: Kept | undefined
}

/** As long as a session, usually. */
const KEPT_MS = 7 * 24 * 3_600_000

/** After one has come back: another whose connection broke too may come for the same. */
const SHARED_MS = 2 * 60_000

/**
 * What clients have heard of their sessions, for those who come back after a break: the protocol has no number to ask from, nor a name
 * for who asks. So there is one for a session, of whoever had heard the least: words may be told twice, but are not lost.
 */
export class Positions {
  readonly #host: Host
  #last: Promise<Kept | undefined> = Promise.resolve(undefined)

  constructor(host: Host) {
    this.#host = host
  }

  /** `known`: what was kept when that connection began, which it knows by now. */
  keep(session: Session, position: Position, known: Position | undefined): void {
    const isNext = (kept?: Kept): boolean => !kept || kept === 'all' || kept.seq >= position.seq || kept.seq === known?.seq
    void this.#then(session, ({ store, key, kept }) => (isNext(kept) ? store.set(key, { ...position }, { ttlMs: KEPT_MS }) : undefined))
  }

  /** Where it goes on. Undefined when nobody knows: the process was killed, or it was too long ago. */
  take(session: Session): Promise<Kept | undefined> {
    return this.#then(session, ({ store, key, kept }) => {
      if (kept === 'all') return store.delete(key)
      return kept && store.set(key, { ...kept }, { ttlMs: SHARED_MS })
    })
  }

  /** Somebody talks there again: who hung up before may miss something from now on. */
  reopen(session: Session): void {
    void this.#then(session, ({ store, key, kept }) => (kept === 'all' ? store.delete(key) : undefined))
  }

  /** Who knew it hangs up, and wants to hear no more of it. */
  forget(session: Session, known: Position | undefined): void {
    const isTheirs = (kept?: Kept): boolean => !kept || (kept !== 'all' && kept.seq === known?.seq)
    void this.#then(session, ({ store, key, kept }) => (isTheirs(kept) ? store.set(key, 'all', { ttlMs: KEPT_MS }) : undefined))
  }

  /** All is handed to the store. */
  async settle(): Promise<void> {
    await this.#last
  }

  /** One after the other, as what is kept depends on what was. Writes are not waited for: the store reads its own. */
  #then(session: Session, write: (now: Now) => Promise<unknown> | undefined): Promise<Kept | undefined> {
    const { store, log } = this.#host
    const key = storeKey(session.owner.tenant, 'omnia', 'position', session.id)
    const failed = (error: unknown): undefined => {
      log('warn', 'What a client has heard could not be kept', { session: session.id, error })
    }
    this.#last = this.#last
      .then(async () => {
        const kept = (await store.get(key))?.value as Kept | undefined
        write({ store, key, kept })?.catch(failed)
        return kept
      })
      .catch(failed)
    return this.#last
  }
}

/** Where a session's things are kept apart from those of others. */
export function placeOf({ owner, id }: Pick<Session, 'owner' | 'id'>): string {
  return `${owner.tenant} ${id}`
}
