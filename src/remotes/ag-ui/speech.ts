import type { Draft } from '../../protocol/events.ts'

/** Characters that may wait for the end of another message. With more they are told in between. */
const WAITING = 256 * 1024

/** Tells the texts of a run one message after the other. AG-UI may stream several messages at once. */
export class Speech {
  /** Messages that have begun and not ended. */
  readonly #open = new Set<string>()
  readonly #waiting = new Map<string, string>()
  #size = 0
  #speaking: string | undefined
  /** The message of the last text, if nothing came after it. The text of another message then begins a paragraph. */
  #last: string | undefined

  begin(id: string): void {
    this.#open.add(id)
  }

  say(id: string, text: string, out: Draft[]): void {
    if (this.#speaking === undefined || this.#speaking === id || !this.#open.has(this.#speaking)) return this.#tell(id, text, out)
    this.#waiting.set(id, (this.#waiting.get(id) ?? '') + text)
    if ((this.#size += text.length) > WAITING) this.flush(out)
  }

  end(id: string, out: Draft[]): void {
    this.#open.delete(id)
    if (this.#speaking !== id) return
    for (const [next, text] of this.#waiting) {
      this.#tell(next, text, out)
      this.#waiting.delete(next)
      this.#size -= text.length
      if (this.#open.has(next)) return
    }
  }

  /** Something other than text comes next. */
  interrupt(out: Draft[]): void {
    this.flush(out)
    this.#last = undefined
  }

  /** Tells everything that waits. */
  flush(out: Draft[]): void {
    for (const [id, text] of this.#waiting) this.#tell(id, text, out)
    this.#waiting.clear()
    this.#size = 0
  }

  #tell(id: string, text: string, out: Draft[]): void {
    const apart = this.#last !== undefined && this.#last !== id ? '\n\n' : ''
    this.#last = this.#speaking = id
    out.push({ type: 'response.delta', delta: { type: 'text', text: apart + text } })
  }
}
