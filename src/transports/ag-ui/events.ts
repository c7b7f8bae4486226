import { jsonText } from '../../protocol/json.ts'
import type { Frame } from '../../core/ports/transport.ts'
import { markOf } from './ids.ts'
import { SSE_HEADERS, SSE_HEARTBEAT, sseLine } from '../../wire/sse.ts'

/** An event of AG-UI. */
export interface AgUiEvent {
  readonly type: string
  readonly [field: string]: unknown
}

/** Where events go. `id`: how far a client that has this one is. */
export interface Out {
  /** The hot path. */
  text(messageId: string, delta: string, id: number): void
  event(event: AgUiEvent, id?: number | string): void
}

/** How events are written. */
export interface Wire {
  readonly headers: Readonly<Record<string, string>>
  readonly heartbeat?: string
  /** What `write` writes, as one frame. */
  frame(write: (out: Out) => void): Frame
}

/** What the client's generation understands of an event; undefined: nothing. */
export type Shape = (event: AgUiEvent) => AgUiEvent | undefined

export const asItIs: Shape = (event) => event

/** Server-sent events: one line of data each, line feeds alone, as clients fail on others. */
export class SseWire implements Wire, Out {
  readonly headers = SSE_HEADERS
  readonly heartbeat = SSE_HEARTBEAT
  readonly #shape: Shape
  /** What stands behind the number of an event in its id. */
  readonly #mark: string
  #visit: (text: string) => void = () => undefined
  #messageId: string | undefined
  #head = ''

  constructor(shape: Shape, response: string) {
    this.#shape = shape
    this.#mark = `-${markOf(response)}`
  }

  /** Made while it is written, so that no text is kept. */
  frame(write: (out: Out) => void): Frame {
    return {
      eachText: (visit) => {
        this.#visit = visit
        write(this)
      },
    }
  }

  text(messageId: string, delta: string, id: number): void {
    if (messageId !== this.#messageId) {
      this.#messageId = messageId
      this.#head = `data: {"type":"TEXT_MESSAGE_CONTENT","messageId":${JSON.stringify(messageId)},"delta":`
    }
    this.#visit('id: ' + id + this.#mark + '\n' + this.#head + jsonText(delta) + '}\n\n')
  }

  event(event: AgUiEvent, id?: number | string): void {
    const shown = this.#shape(event)
    if (shown) this.#visit(sseLine(JSON.stringify(shown), id === undefined ? undefined : id + this.#mark))
  }
}
