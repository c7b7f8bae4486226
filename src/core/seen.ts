import type { ClientEvent } from '../protocol/events.ts'

/** Client events remembered, so that one that is sent again is without effect. */
const REMEMBERED = 256

const DONE = Promise.resolve()

/** The idempotency of a session: an event that was taken before is taken again without effect. */
export class Seen {
  readonly #events = new Map<string, Promise<void>>()

  /** A repeat resolves with the first one. A refused event may be tried again. */
  once(event: Pick<ClientEvent, 'type' | 'event_id'>, accept: () => Promise<void>): Promise<void> {
    // The type belongs to the key: hand-written clients number their events carelessly.
    const key = `${event.type} ${event.event_id}`
    const before = this.#events.get(key) ?? this.#events.get(event.event_id)
    if (before) return before
    const accepted = accept()
    this.#events.set(key, accepted)
    accepted.then(
      () => this.#events.has(key) && this.#events.set(key, DONE),
      () => this.#events.delete(key),
    )
    this.#trim()
    return accepted
  }

  /** An event of before a restart, of which only the id is known. */
  addAny(eventId: string): void {
    this.#events.set(eventId, DONE)
    this.#trim()
  }

  #trim(): void {
    if (this.#events.size <= REMEMBERED) return
    for (const oldest of this.#events.keys()) {
      this.#events.delete(oldest)
      return
    }
  }
}
