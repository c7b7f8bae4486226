import type { ClientEvent } from '../../protocol/events.ts'

/** Client events remembered, so that one that is sent again is without effect. */
const REMEMBERED = 256

const DONE = Promise.resolve()

/** The idempotency of a session: an event that was taken before is taken again without effect. */
export class Seen {
  readonly #events = new Map<string, Promise<void>>()
  #length = 0

  /** Roughly what they take in memory: a character may take two. */
  get bytes(): number {
    return 2 * this.#length
  }

  /** A repeat resolves with the first one. A refused event may be tried again. */
  once(event: Pick<ClientEvent, 'type' | 'event_id'>, accept: () => Promise<void>): Promise<void> {
    // The type belongs to the key: hand-written clients number their events carelessly.
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

  /** An event of before a restart, of which only the id is known. */
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
