import { apply, type Key } from './keys.ts'
import { Editor } from './editor.ts'

/** Ctrl-R: finds the newest earlier message with a text in it. */
export class Search {
  readonly #entries: readonly string[]
  readonly #query = new Editor()
  #at: number

  constructor(entries: readonly string[]) {
    this.#entries = entries
    this.#at = entries.length
  }

  get found(): string | undefined {
    return this.#query.text === '' ? undefined : this.#entries[this.#at]
  }

  get prompt(): string {
    return `search "${this.#query.text}": `
  }

  /** False if the key ends the search. */
  press(key: Key): boolean {
    if (key.ctrl && key.name === 'r') this.#find(this.#at - 1)
    else if ((key.ctrl && key.name !== 'h') || key.meta || /^(return|enter|escape|up|down|left|right|home|end|tab)$/.test(key.name ?? ''))
      return false
    else {
      apply(this.#query, key)
      this.#find(this.#entries.length - 1)
    }
    return true
  }

  #find(from: number): void {
    const at = this.#entries.findLastIndex((entry, index) => index <= from && entry.includes(this.#query.text))
    if (at >= 0) this.#at = at
  }
}
