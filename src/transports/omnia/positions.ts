import type { Session } from '../../core/ports/session.ts'
import type { Host } from '../../core/ports/transport.ts'
import { storeKey } from '../../core/basics/store-key.ts'

/** How far a connection has told its session's log. */
export interface Position {
  readonly seq: number
  /** The response that was being told began after this. Its events are read again from here, as later ones depend on them. */
  readonly since: number | null
}

/** `all`: the client that had heard the least hung up, so nobody misses anything. */
type Kept = Position | 'all'

interface Now extends Pick<Host, 'store'> {
  readonly key: string
  readonly kept: Kept | undefined
}

/** By default a session is kept as long. */
const KEPT_MS = 7 * 24 * 3_600_000

/** How long a position is kept after a client came back, as another client of the session may come back too. */
const SHARED_MS = 2 * 60_000

/**
 * How much clients have heard of their sessions, for those who come back after their connection broke. The protocol has no number to
 * resume from and no name for a client, so each session has one position, that of the client that had heard the least: words may be
 * told twice, but none are lost.
 */
export class Positions {
  readonly #host: Host
  #last: Promise<Kept | undefined> = Promise.resolve(undefined)

  constructor(host: Host) {
    this.#host = host
  }

  /** `known`: the position that was kept when this connection began; its client has heard more by now. */
  keep(session: Session, position: Position, known: Position | undefined): void {
    const isNext = (kept?: Kept): boolean => !kept || kept === 'all' || kept.seq >= position.seq || kept.seq === known?.seq
    void this.#then(session, ({ store, key, kept }) => (isNext(kept) ? store.set(key, { ...position }, { ttlMs: KEPT_MS }) : undefined))
  }

  /** Where to go on. `undefined` when that is not known: the process was killed, or it was too long ago. */
  take(session: Session): Promise<Kept | undefined> {
    return this.#then(session, ({ store, key, kept }) => {
      if (kept === 'all') return store.delete(key)
      return kept && store.set(key, { ...kept }, { ttlMs: SHARED_MS })
    })
  }

  /** The session is used again, so a client that hung up may miss something from now on. */
  reopen(session: Session): void {
    void this.#then(session, ({ store, key, kept }) => (kept === 'all' ? store.delete(key) : undefined))
  }

  /** The client hangs up, and does not want to hear the rest. */
  forget(session: Session, known: Position | undefined): void {
    const isTheirs = (kept?: Kept): boolean => !kept || (kept !== 'all' && kept.seq === known?.seq)
    void this.#then(session, ({ store, key, kept }) => (isTheirs(kept) ? store.set(key, 'all', { ttlMs: KEPT_MS }) : undefined))
  }

  /** Resolves when every position was handed to the store. */
  async settle(): Promise<void> {
    await this.#last
  }

  /** One after the other, as each write depends on the value before. Writes are not awaited: reads of the store see them. */
  #then(session: Session, write: (now: Now) => Promise<unknown> | undefined): Promise<Kept | undefined> {
    const { store, log } = this.#host
    const key = storeKey(session.owner.tenant, 'omnia', 'position', session.id)
    const failed = (error: unknown): undefined => {
      log('warn', 'The position of a client could not be stored', { session: session.id, error })
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

/** Names a session within the process: session ids are unique within a tenant. */
export function placeOf({ owner, id }: Pick<Session, 'owner' | 'id'>): string {
  return `${owner.tenant} ${id}`
}
