import type { Draft, ServerEvent } from '../../protocol/events.ts'
import { jsonText } from '../../protocol/json.ts'
import type { Logged } from '../ports/session.ts'

/** Longest JSON text, in characters, that an entry keeps once it is made. */
const KEPT = 64 * 1024

/** What all events of one response share; without a response id, all events of the session outside responses. */
export class Stamp {
  readonly sessionId: string
  readonly responseId: string | undefined
  readonly #idPrefix: string
  #ids: string | undefined
  #deltaHead = ''
  #digits = 0

  constructor(sessionId: string, responseId?: string) {
    this.sessionId = sessionId
    this.responseId = responseId
    // Session ids are `sess_<uuid>`: the first 24 characters of the uuid and twelve digits of the seq are uuid-shaped again.
    this.#idPrefix = sessionId.slice(5, 29)
  }

  eventId(seq: number): string {
    return this.#idPrefix + String(seq).padStart(12, '0')
  }

  /** The hot path: fills a template, in which only the text itself has to be quoted. */
  deltaText(seq: number, text: string): string {
    const number = String(seq)
    if (number.length !== this.#digits) this.#setHead(number.length)
    const start = this.#deltaHead + number + '","seq":' + number
    return start + ',"delta":{"type":"text","text":' + jsonText(text) + '}}'
  }

  /** The ids as fields of JSON. */
  get ids(): string {
    if (this.#ids !== undefined) return this.#ids
    const response = this.responseId === undefined ? '' : `,"response_id":${JSON.stringify(this.responseId)}`
    return (this.#ids = `"session_id":${JSON.stringify(this.sessionId)}${response}`)
  }

  #setHead(digits: number): void {
    this.#deltaHead = `{"type":"response.delta",${this.ids},"event_id":"${this.#idPrefix}${'0'.repeat(Math.max(0, 12 - digits))}`
    this.#digits = digits
  }
}

export class Entry implements Logged {
  readonly stamp: Stamp
  readonly seq: number
  readonly draft: Draft
  #event: ServerEvent | undefined
  #body: string | undefined
  #size: number | undefined

  constructor(stamp: Stamp, seq: number, draft: Draft) {
    this.stamp = stamp
    this.seq = seq
    this.draft = draft
  }

  get type(): ServerEvent['type'] {
    return this.draft.type
  }

  get event(): ServerEvent {
    const { sessionId, responseId } = this.stamp
    // Spreads last: a property that follows one costs a microsecond.
    return (this.#event ??= {
      type: this.draft.type,
      session_id: sessionId,
      event_id: this.stamp.eventId(this.seq),
      seq: this.seq,
      ...(responseId !== undefined && { response_id: responseId }),
      ...(this.draft as object),
    } as ServerEvent)
  }

  /** The JSON of the draft, without the stamp. */
  get body(): string {
    if (this.#body !== undefined) return this.#body
    const body = JSON.stringify(this.draft)
    // The text of a large event would be a second copy of the answer in memory.
    if (body.length <= KEPT) this.#body = body
    return body
  }

  get text(): string {
    const { body, seq } = this
    const type = `{"type":"${this.type}"`
    if (!body.startsWith(type)) return JSON.stringify(this.event)
    return `${type},${this.stamp.ids},"event_id":"${this.stamp.eventId(seq)}","seq":${seq}${body.slice(type.length)}`
  }

  /** The rough length of its text, which is not made for this: an answer that is not stored may never need it. */
  get size(): number {
    return (this.#size ??= 200 + weigh(this.draft))
  }
}

function weigh(value: unknown): number {
  if (typeof value === 'string') return value.length
  if (typeof value !== 'object' || value === null) return 8
  let sum = 0
  for (const key in value) sum += 8 + weigh((value as Record<string, unknown>)[key])
  return sum
}

/** An event outside the log, for the readers that are attached now. */
export class Aside implements Logged {
  readonly seq = undefined
  readonly event: ServerEvent

  constructor(event: ServerEvent) {
    this.event = event
  }

  get type(): ServerEvent['type'] {
    return this.event.type
  }

  get text(): string {
    return JSON.stringify(this.event)
  }
}
