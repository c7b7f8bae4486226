/** What a client has heard of an agent's speech. Speech comes in pieces, and often again as a whole, which must not be told twice. */
export class Speech {
  #pieces = false
  #words = ''
  #complete = false

  /** Takes a piece of sound. */
  piece(): void {
    this.#pieces = true
  }

  /** Takes words as they are spoken, and returns them. */
  say(words: string): string {
    this.#words = this.#complete ? words : this.#words + words
    this.#complete = false
    return words
  }

  /** Takes all words of an utterance, and returns those that did not come before. */
  complete(words = ''): string {
    const known = this.#complete ? '' : this.#words
    this.#complete = true
    if (!words.startsWith(known)) return ''
    this.#words = words
    return words.slice(known.length)
  }

  /** Takes the whole. `isNew`: its sound did not come in pieces. `words`: those that are new. */
  whole(words = ''): { readonly isNew: boolean; readonly words: string } {
    const rest = words.startsWith(this.#words) ? words.slice(this.#words.length) : ''
    const isNew = !this.#pieces
    this.#pieces = this.#complete = false
    this.#words = ''
    return { isNew, words: rest }
  }
}
