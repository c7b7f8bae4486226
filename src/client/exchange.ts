import type { ServerEvent } from '../protocol/events.ts'
import { isResponseEvent, type ResponseEvent } from './drafts.ts'
import { createdExtension } from './line.ts'

/** The one response that a session waits for: which it is, and when it is over. */
export class Exchange {
  /** Known from its `response.created` on. */
  id: string | undefined
  /** Resolves with the first event of the response, or when there will be none. */
  readonly begun: Promise<void>
  readonly over: Promise<void>
  isOver = false
  /** What was to be answered is missing: whatever the response says, it is not the answer. */
  refused = false
  #begin: () => void = () => undefined
  #finish: () => void = () => undefined

  readonly #after: number
  readonly #request: string
  readonly #inputs: readonly string[]

  /**
   * `after`: the newest event that was there before the request; a replay has other responses in it. `request`: the event that asks
   * for it, as others may ask in this session too. `inputs`: the events that it is to answer.
   */
  constructor(after: number, request: string, inputs: readonly string[]) {
    this.#after = after
    this.#request = request
    this.#inputs = inputs
    this.begun = new Promise((resolve) => (this.#begin = resolve))
    this.over = new Promise((resolve) => (this.#finish = resolve))
  }

  /** To be shown every event of the session, from before the request is sent. */
  see(event: ServerEvent): void {
    if (event.seq !== undefined && event.seq <= this.#after) return
    // Noticed here and at once: the answer without it may come in the same chunk of the network.
    if ('error' in event && this.#inputs.includes(event.error?.details?.['event_id'] as string)) this.refused = true
    if (
      event.type === 'response.created' &&
      this.id === undefined &&
      (createdExtension(event)?.request ?? this.#request) === this.#request
    ) {
      this.id = event.response_id
      this.#begin()
    }
    // After a gap nobody knows whether it still runs; the server will say so if it does.
    else if (event.type === 'session.created' && createdExtension(event)?.resume?.recovered === false) this.finish()
    else if (this.owns(event) && isTerminal(event)) this.finish()
  }

  owns(event: ServerEvent): event is ResponseEvent {
    return isResponseEvent(event) && event.response_id === this.id
  }

  /** The response has ended, or was never begun. */
  finish(): void {
    this.isOver = true
    this.#begin()
    this.#finish()
  }
}

export function isTerminal({ type }: ServerEvent): boolean {
  return type === 'response.done' || type === 'response.error' || type === 'response.cancelled'
}
