import type { ClientEvent } from '../../protocol/events.ts'

/** How many client events a session remembers. */
const REMEMBERED = 256

const DONE = Promise.resolve()

/** Makes a session idempotent: an event that is sent again is accepted without effect. */
export class Seen {
  readonly #events = new Map<string, Promise<void>>()
  #length = 0

  /** Roughly the memory of the ids: a character may take two bytes. */
  get bytes(): number {
    return 2 * this.#length
  }

  /** A repeated event resolves with the first. A refused one may be sent again. */
  once(event: Pick<ClientEvent, 'type' | 'event_id'>, accept: () => Promise<void>): Promise<void> {
    // The type is part of the key, because hand-written clients reuse ids across types.
    const key = `${event.type} ${event.event_id}`
    const before = this.#events.get(key) ?? this.#events.get(event.event_id)
    if (before) return before
    const accepted = accept()
    this.#set(key, accepted)
    accepted.then(
      () => this.#events.has(key) && this.#events.set(key, DONE),
      () => this.#delete(key),
    )
    return accepted
  }

  /** Adds an event from before a restart, whose type is not known. */
  addAny(eventId: string): void {
    this.#set(eventId, DONE)
  }

  #set(key: string, accepted: Promise<void>): void {
    if (!this.#events.has(key)) this.#length += key.length
    this.#events.set(key, accepted)
    if (this.#events.size <= REMEMBERED) return
    const [oldest] = this.#events.keys()
    if (oldest !== undefined) this.#delete(oldest)
  }

  #delete(key: string): void {
    if (this.#events.delete(key)) this.#length -= key.length
  }
}
