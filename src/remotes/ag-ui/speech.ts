import type { Draft } from '../../protocol/events.ts'

/** Characters of messages that wait for the end of another one. With more they are said in between. */
const WAITING = 256 * 1024

/** The texts of a run, one message after the other. AG-UI lets several be told at the same time. */
export class Speech {
  /** Those that have begun and not ended. */
  readonly #open = new Set<string>()
  readonly #waiting = new Map<string, string>()
  #size = 0
  #speaking: string | undefined
  /** The message whose text was last: what another says begins a paragraph, if nothing came between. */
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

  /** Something else comes now. */
  interrupt(out: Draft[]): void {
    this.flush(out)
    this.#last = undefined
  }

  /** Says what waits. */
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
