import { jsonText } from '../../protocol/json.ts'
import type { Frame } from '../../core/ports/transport.ts'
import { markOf } from './ids.ts'
import { SSE_HEADERS, SSE_HEARTBEAT, sseLine } from '../../wire/sse.ts'

export interface AgUiEvent {
  readonly type: string
  readonly [field: string]: unknown
}

/** Takes encoded events. `id`: where a client resumes that has this event. */
export interface Out {
  /** The hot path. */
  text(messageId: string, delta: string, id: number): void
  event(event: AgUiEvent, id?: number | string): void
}

/** Writes events in one of the protocol's formats. */
export interface Wire {
  readonly headers: Readonly<Record<string, string>>
  readonly heartbeat?: string
  /** Everything that `write` writes, as one frame. */
  frame(write: (out: Out) => void): Frame
}

/** Turns an event into one that the client's version understands; undefined: leave it out. */
export type Shape = (event: AgUiEvent) => AgUiEvent | undefined

/** Tells when events are written; a replay does not know when they were made. */
export type Clock = () => number

export const asItIs: Shape = (event) => event

/** Server-sent events with one data line each and bare line feeds, because clients fail on anything else. */
export class SseWire implements Wire, Out {
  readonly headers = SSE_HEADERS
  readonly heartbeat = SSE_HEARTBEAT
  readonly #shape: Shape
  /** Follows the number in an event's id. */
  readonly #mark: string
  readonly #now: Clock | undefined
  #time = ''
  #visit: (text: string) => void = () => undefined
  #messageId: string | undefined
  #head = ''

  constructor(shape: Shape, response: string, now?: Clock) {
    this.#shape = shape
    this.#now = now
    this.#mark = `-${markOf(response)}`
  }

  /** Makes texts while they are written, so that none is kept. */
  frame(write: (out: Out) => void): Frame {
    return {
      eachText: (visit) => {
        this.#visit = visit
        // One look at the clock for everything that is written at once.
        this.#time = this.#now ? `,"timestamp":${this.#now()}}` : '}'
        write(this)
      },
    }
  }

  text(messageId: string, delta: string, id: number): void {
    if (messageId !== this.#messageId) {
      this.#messageId = messageId
      this.#head = `data: {"type":"TEXT_MESSAGE_CONTENT","messageId":${JSON.stringify(messageId)},"delta":`
    }
    this.#visit('id: ' + id + this.#mark + '\n' + this.#head + jsonText(delta) + this.#time + '\n\n')
  }

  event(event: AgUiEvent, id?: number | string): void {
    const shown = this.#shape(event)
    if (shown) this.#visit(sseLine(JSON.stringify(shown).slice(0, -1) + this.#time, id === undefined ? undefined : id + this.#mark))
  }
}
