import type { Draft, ServerEvent } from '../../protocol/events.ts'
import { jsonText } from '../../protocol/json.ts'
import type { Logged, Batch, Visitor } from '../ports/session.ts'
import type { Delta } from '../../protocol/server-events.ts'

/** Longest JSON text, in characters, that an entry keeps once it is made. */
const KEPT = 64 * 1024

/** What all events of one response share; without a response id, all events of the session outside responses. */
export class Stamp {
  readonly sessionId: string
  readonly responseId: string | undefined
  /** Unix time in milliseconds. Events of version 0.1 have none. */
  readonly time: number | undefined
  readonly #session: string
  readonly #idPrefix: string
  #fields: string | undefined
  #deltaHead = ''
  #digits = 0
  #last: Stamp | undefined

  /** `shown`: the id that events carry, if a platform chose it. */
  constructor(sessionId: string, responseId?: string, { shown = sessionId, time }: { shown?: string; time?: number | undefined } = {}) {
    this.sessionId = shown
    this.responseId = responseId
    this.time = time
    this.#session = sessionId
    // Session ids are `sess_<uuid>`: the first 24 characters of the uuid and twelve digits of the seq are uuid-shaped again.
    this.#idPrefix = sessionId.slice(5, 29)
  }

  /** The same stamp with a time. */
  at(time: number): Stamp {
    if (this.#last?.time === time) return this.#last
    return (this.#last = new Stamp(this.#session, this.responseId, { shown: this.sessionId, time }))
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

  /** The ids and the time as fields of JSON. */
  get fields(): string {
    if (this.#fields !== undefined) return this.#fields
    const response = this.responseId === undefined ? '' : `,"response_id":${JSON.stringify(this.responseId)}`
    const time = this.time === undefined ? '' : `,"timestamp":${this.time}`
    return (this.#fields = `"session_id":${JSON.stringify(this.sessionId)}${response}${time}`)
  }

  #setHead(digits: number): void {
    this.#deltaHead = `{"type":"response.delta",${this.fields},"event_id":"${this.#idPrefix}${'0'.repeat(Math.max(0, 12 - digits))}`
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
    const { sessionId, responseId, time } = this.stamp
    // Spreads last: a property that follows one costs a microsecond.
    return (this.#event ??= {
      type: this.draft.type,
      session_id: sessionId,
      event_id: this.stamp.eventId(this.seq),
      seq: this.seq,
      ...(time !== undefined && { timestamp: time }),
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
    return `${type},${this.stamp.fields},"event_id":"${this.stamp.eventId(seq)}","seq":${seq}${body.slice(type.length)}`
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

/**
 * An event in the log. A text delta, by far the most frequent event, is kept as its bare text: the agent's object can then be
 * collected early, and the stamp's template makes the JSON.
 */
export type Item = string | Entry

/** Consecutive events of a log, each with its stamp. */
export class Slice implements Batch {
  readonly first: number
  readonly items: readonly Item[]
  readonly stamps: readonly Stamp[]

  constructor(first: number, items: readonly Item[], stamps: readonly Stamp[]) {
    this.first = first
    this.items = items
    this.stamps = stamps
  }

  get last(): number {
    return this.first + this.items.length - 1
  }

  /** The part of the slice after `seq`. */
  after(seq: number): Slice {
    const known = seq + 1 - this.first
    return known > 0 ? new Slice(seq + 1, this.items.slice(known), this.stamps.slice(known)) : this
  }

  /** The part of the slice up to `seq`. */
  upTo(seq: number): Slice {
    const known = seq + 1 - this.first
    return known < this.items.length ? new Slice(this.first, this.items.slice(0, known), this.stamps.slice(0, known)) : this
  }

  eachText(visit: (text: string, seq: number | undefined) => void): void {
    for (let index = 0; index < this.items.length; index++) {
      const item = this.items[index] as Item
      const seq = this.first + index
      visit(typeof item === 'string' ? (this.stamps[index] as Stamp).deltaText(seq, item) : item.text, seq)
    }
  }

  has(types: ReadonlySet<string>): boolean {
    for (const item of this.items) if (typeof item !== 'string' && types.has(item.type)) return true
    return false
  }

  pick(types: ReadonlySet<string>, visit: (event: ServerEvent) => void): void {
    for (const item of this.items) if (typeof item !== 'string' && types.has(item.type)) visit(item.event)
  }

  visit(visitor: Visitor): void {
    for (let index = 0; index < this.items.length; index++) {
      const item = this.items[index] as Item
      if (typeof item === 'string') visitor.text(item, this.first + index)
      else visitor.event(item.event, this.first + index)
    }
  }

  *[Symbol.iterator](): Generator<Entry, void> {
    for (let index = 0; index < this.items.length; index++) {
      const item = this.items[index] as Item
      yield typeof item === 'string' ? textDelta(this.stamps[index] as Stamp, this.first + index, item) : item
    }
  }
}

/** Events that are not consecutive: those of a slice that one reader understands, or events outside the log. */
export class Picked implements Batch {
  readonly #logged: readonly Logged[]

  constructor(logged: readonly Logged[]) {
    this.#logged = logged
  }

  eachText(visit: (text: string, seq: number | undefined) => void): void {
    for (const { text, seq } of this.#logged) visit(text, seq)
  }

  has(types: ReadonlySet<string>): boolean {
    return this.#logged.some(({ type, seq }) => seq !== undefined && types.has(type))
  }

  pick(types: ReadonlySet<string>, visit: (event: ServerEvent) => void): void {
    for (const { event, type, seq } of this.#logged) if (seq !== undefined && types.has(type)) visit(event)
  }

  visit(visitor: Visitor): void {
    for (const { event, seq } of this.#logged) {
      if (event.type === 'response.delta' && isPlainText(event.delta)) visitor.text(event.delta.text, seq)
      else visitor.event(event, seq)
    }
  }

  [Symbol.iterator](): Iterator<Logged> {
    return this.#logged[Symbol.iterator]()
  }
}

/** True for a delta that is only text, which the log keeps as a bare string. */
export function isPlainText(delta: Delta): delta is Extract<Delta, { type: 'text' }> {
  return delta.type === 'text' && delta.refusal === undefined
}

function textDelta(stamp: Stamp, seq: number, text: string): Entry {
  return new Entry(stamp, seq, { type: 'response.delta', delta: { type: 'text', text } })
}

/** Fields that only the log may give to an event. */
const STAMPED = ['session_id', 'response_id', 'event_id', 'seq', 'timestamp', 'output_of']

/** A draft without the stamp of another session, which an agent brings along that passes on the events of another agent. */
export function unstamped(draft: Draft): Draft {
  if (!STAMPED.some((name) => name in draft)) return draft
  return Object.fromEntries(Object.entries(draft).filter(([name]) => !STAMPED.includes(name))) as unknown as Draft
}
