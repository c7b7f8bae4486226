import type { ServerEvent } from '../protocol/events.ts'
import type { ResponseEvent } from './drafts.ts'
import { createdExtension } from './line.ts'

/** Follows the response that a session waits for: which it is, and when it is over. */
export class Exchange {
  /** Known from `response.created` on. */
  id: string | undefined
  /** Resolves with the first event of the response, or when none will come. */
  readonly begun: Promise<void>
  readonly over: Promise<void>
  isOver = false
  /** The server refused an input, so the response does not answer it. */
  refused = false
  #begin: () => void = () => undefined
  #finish: () => void = () => undefined

  readonly #after: number
  readonly #request: string
  readonly #inputs: readonly string[]

  /**
   * `after`: the newest event before the request, because a replay contains other responses. `request`: the event that asks for the
   * response, because other clients may ask in this session, too. `inputs`: the events to answer.
   */
  constructor(after: number, request: string, inputs: readonly string[]) {
    this.#after = after
    this.#request = request
    this.#inputs = inputs
    this.begun = new Promise((resolve) => (this.#begin = resolve))
    this.over = new Promise((resolve) => (this.#finish = resolve))
  }

  /** Must see every event of the session, from before the request is sent. */
  see(event: ServerEvent): void {
    if (event.seq !== undefined && event.seq <= this.#after) return
    // Checked at once, because the response may come in the same chunk of the network.
    if ('error' in event && this.#inputs.includes(event.error?.details?.['event_id'] as string)) this.refused = true
    if (
      event.type === 'response.created' &&
      this.id === undefined &&
      (createdExtension(event)?.request ?? this.#request) === this.#request
    ) {
      this.id = event.response_id
      this.#begin()
    }
    // After a gap the client cannot know whether the response still runs. The server will say so if it does.
    else if (event.type === 'session.created' && createdExtension(event)?.resume?.recovered === false) this.finish()
    else if (this.owns(event) && isTerminal(event)) this.finish()
  }

  owns(event: ServerEvent): event is ResponseEvent {
    return this.id !== undefined && 'response_id' in event && event.response_id === this.id
  }

  /** Called when the response has ended, or will never begin. */
  finish(): void {
    this.isOver = true
    this.#begin()
    this.#finish()
  }
}

export function isTerminal({ type }: ServerEvent): boolean {
  return type === 'response.done' || type === 'response.error' || type === 'response.cancelled'
}
