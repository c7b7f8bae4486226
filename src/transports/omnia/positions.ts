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
  readonly #byPlace = new Map<string, Position>()

  /** A connection begins to follow a session. */
  enter(place: string, seq: number): Position {
    const position = { seq, until: Infinity }
    this.#byPlace.delete(place)
    this.#byPlace.set(place, position)
    if (this.#byPlace.size > MOST) for (const oldest of this.#byPlace.keys()) return (this.#byPlace.delete(oldest), position)
    return position
  }

  /** Where it goes on; undefined when it was too long ago. */
  find(place: string, now: number): number | undefined {
    const position = this.#byPlace.get(place)
    return position && position.until > now ? position.seq : undefined
  }

  /** It does not go on. */
  forget(place: string): void {
    this.#byPlace.delete(place)
  }
}
