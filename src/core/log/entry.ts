import type { Draft, ServerEvent } from '../../protocol/events.ts'
import { jsonText } from '../../protocol/json.ts'
import type { Logged } from '../ports/session.ts'

/** Characters of an event's text up to which it is kept, once it is made. */
const KEPT = 64 * 1024

/** What all events of one response, or of the session outside one, have in common. */
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

  /** The hot path: the JSON of a text delta from a template, in which only the text itself is quoted. */
  deltaText(seq: number, text: string): string {
    const number = String(seq)
    if (number.length !== this.#digits) this.#setHead(number.length)
    const start = this.#deltaHead + number + '","seq":' + number
    return start + ',"delta":{"type":"text","text":' + jsonText(text) + '}}'
  }

  /** As fields of JSON. */
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

/** One event of the log. The object and its text are made when first asked for. */
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
    return (this.#event ??= {
      type: this.draft.type,
      session_id: this.stamp.sessionId,
      ...(this.stamp.responseId !== undefined && { response_id: this.stamp.responseId }),
      event_id: this.stamp.eventId(this.seq),
      seq: this.seq,
      ...(this.draft as object),
    } as ServerEvent)
  }

  /** The JSON of what is its own, without its stamp. */
  get body(): string {
    if (this.#body !== undefined) return this.#body
    const body = JSON.stringify(this.draft)
    // The text of a large one would be a second copy of the answer for as long as the event is kept.
    if (body.length <= KEPT) this.#body = body
    return body
  }

  get text(): string {
    const { body, seq } = this
    const type = `{"type":"${this.type}"`
    if (!body.startsWith(type)) return JSON.stringify(this.event)
    return `${type},${this.stamp.ids},"event_id":"${this.stamp.eventId(seq)}","seq":${seq}${body.slice(type.length)}`
  }

  /** Roughly how long its text is. Not the text itself: of an answer that nobody keeps, none may ever be needed. */
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

/** An event for those who listen now, outside the log. */
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
