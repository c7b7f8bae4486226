import type { Session } from '../../core/ports/session.ts'

/** How far a connection has told its session's log. */
export interface Position {
  seq: number
  /** When it no longer counts: some time after the connection has gone. */
  until: number
}

/** Positions that are kept. Beyond it the oldest go: who comes back then hears what is said from now on. */
const MOST = 20_000

/** What clients have seen of their sessions, for those who come back after a break: the protocol has no number to ask from. */
export class Positions {
  readonly #bySession = new Map<string, Position>()

  /** A connection begins to follow a session. */
  enter(session: Session, seq: number): Position {
    const position = { seq, until: Infinity }
    this.forget(session)
    this.#bySession.set(placeOf(session), position)
    const [oldest = ''] = this.#bySession.keys()
    if (this.#bySession.size > MOST) this.#bySession.delete(oldest)
    return position
  }

  /** Where it goes on; undefined when it was too long ago. */
  find(session: Session, now: number): number | undefined {
    const position = this.#bySession.get(placeOf(session))
    return position && position.until > now ? position.seq : undefined
  }

  /** It does not go on. */
  forget(session: Session): void {
    this.#bySession.delete(placeOf(session))
  }
}

/** Where a session's things are kept apart from those of others. */
export function placeOf({ owner, id }: Pick<Session, 'owner' | 'id'>): string {
  return `${owner.tenant} ${id}`
}
