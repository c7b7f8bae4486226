import type { UampError } from '../../protocol/errors.ts'
import { jsonText } from '../../protocol/json.ts'
import { openAiEventError } from '../../wire/openai/errors.ts'

/** How events are framed: as server-sent events, or as messages of a socket. */
export interface Framing {
  before(type: string): string
  /** Fields that are added to every event. */
  readonly extra: string
  readonly after: string
}

export const SSE: Framing = { before: (type) => `event: ${type}\ndata: `, extra: '', after: '\n\n' }

export function messages(streamId: string | undefined): Framing {
  return { before: () => '', extra: streamId === undefined ? '' : `,"stream_id":${JSON.stringify(streamId)}`, after: '' }
}

type Visit = (text: string) => void

/** The place of a text in an answer. */
export interface TextPlace {
  readonly item_id: string
  readonly output_index: number
  readonly content_index: number
}

/** Numbers the events of one answer and writes them as text. It leaves out those that a client who comes back has already. */
export class Wire {
  readonly #framing: Framing
  readonly #known: number
  #visit: Visit = () => undefined
  #next = 0
  /** A text delta before its number and after its text, made once for each place. */
  #deltaHead = ''
  readonly #deltaTail: string

  constructor(framing: Framing, known = -1) {
    this.#framing = framing
    this.#known = known
    this.#deltaTail = '}' + framing.after
  }

  /** Where the texts go from now on. */
  to(visit: Visit): void {
    this.#visit = visit
  }

  /** The number of the newest event; -1 before the first. */
  get last(): number {
    return this.#next - 1
  }

  /** Leaves out numbers: events that a crash took may have had them. */
  skip(count: number): void {
    this.#next += count
  }

  send(type: string, fields: object): void {
    const number = this.#next++
    if (number <= this.#known) return
    const { before, extra, after } = this.#framing
    const rest = JSON.stringify(fields)
    const more = rest === '{}' ? '' : `,${rest.slice(1, -1)}`
    this.#visit(`${before(type)}{"type":"${type}","sequence_number":${number}${extra}${more}}${after}`)
  }

  /** The event that ends a stream early. */
  failure(error: UampError): string {
    const { type: _, accepts: _a, code, message, ...told } = openAiEventError(error)
    let text = ''
    this.to((piece) => (text += piece))
    this.send('error', { code, message, ...told })
    return text
  }

  /** The place of text deltas from now on. */
  place(place: TextPlace): void {
    const type = 'response.output_text.delta'
    const { before, extra } = this.#framing
    const fields = JSON.stringify({ type, ...place, logprobs: [] }).slice(0, -1)
    this.#deltaHead = `${before(type)}${fields}${extra},"sequence_number":`
  }

  /** The hot path: only the text itself is quoted. */
  text(text: string): void {
    const number = this.#next++
    if (number > this.#known) this.#visit(this.#deltaHead + number + ',"delta":' + jsonText(text) + this.#deltaTail)
  }
}
