import { Entry, type Stamp } from './entry.ts'
import type { ServerEvent } from '../../protocol/events.ts'
import type { Delta } from '../../protocol/server-events.ts'
import type { Batch, Logged, Visitor } from '../ports/session.ts'

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
