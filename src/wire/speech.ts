/** What a client has heard of an agent's speech: it comes in pieces, and often once more as a whole, which must not be told twice. */
export class Speech {
  #pieces = false
  #words = ''
  #complete = false

  /** A piece of sound comes. */
  piece(): void {
    this.#pieces = true
  }

  /** Words come as they are spoken. */
  say(words: string): void {
    this.#words = this.#complete ? words : this.#words + words
    this.#complete = false
  }

  /** The words are complete. Gives those that did not come one by one. */
  complete(words = ''): string {
    const known = this.#complete ? '' : this.#words
    this.#complete = true
    if (!words.startsWith(known)) return ''
    this.#words = words
    return words.slice(known.length)
  }

  /** The whole comes. Gives whether its sound is new, and what is new of its words. */
  whole(words = ''): { readonly isNew: boolean; readonly words: string } {
    const rest = words.startsWith(this.#words) ? words.slice(this.#words.length) : ''
    const isNew = !this.#pieces
    this.#pieces = this.#complete = false
    this.#words = ''
    return { isNew, words: rest }
  }
}
