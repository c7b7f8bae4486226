import { REDACTED } from './redaction.ts'

/** A shorter value is not searched for, because it may be a plain word. */
export const SHORTEST = 6
/** The beginning of a secret counts if it is this long and half of the secret, or if the text is cut off in it. */
export const TELLING = 16

/**
 * Finds many secrets, and long beginnings of them, in one pass over a text (Aho and Corasick): the cost depends only on the length of
 * the text. A state stands for the part of a secret that the text has just said.
 */
export class SecretSearch {
  /** By state: its first child, which is one character longer; its next sibling; its last character. */
  readonly #first: Int32Array
  readonly #next: Int32Array
  readonly #letter: Uint16Array
  readonly #depth: Int32Array
  /** By state: the longest other state that it ends with. */
  readonly #fallback: Int32Array
  /** By state: how many of the last characters to hide, or 0. */
  readonly #hides: Int32Array
  /** A bit for each pair of characters that a secret begins with: most places of a text need no other check. */
  readonly #begins = new Uint32Array(1 << 11)
  #states = 1

  constructor(forms: readonly string[]) {
    const size = forms.reduce((sum, { length }) => sum + length, 1)
    this.#first = new Int32Array(size)
    this.#next = new Int32Array(size)
    this.#letter = new Uint16Array(size)
    this.#depth = new Int32Array(size)
    this.#fallback = new Int32Array(size)
    this.#hides = new Int32Array(size)
    for (const form of forms) this.#add(form)
    this.#link()
  }

  /** The text with all secrets replaced; the same text if it has none. */
  clean(text: string): string {
    const found = this.#find(text)
    if (found.length === 0) return text
    let clean = ''
    let from = 0
    for (const [start, end] of found) {
      clean += text.slice(from, start) + REDACTED
      from = end
    }
    return clean + text.slice(from)
  }

  /** The ranges to hide, in order. Overlapping ones are merged. */
  #find(text: string): (readonly [start: number, end: number])[] {
    const found: (readonly [number, number])[] = []
    const add = (start: number, end: number): void => {
      let from = start
      for (let last = found.at(-1); last && last[1] > from; last = found.at(-1)) {
        found.pop()
        from = Math.min(from, last[0])
      }
      found.push([from, end])
    }
    let state = 0
    for (let at = 0; at < text.length; at++) {
      if (state === 0 && !this.#mayBegin(text, at)) continue
      state = this.#step(state, text.charCodeAt(at))
      const hidden = this.#hides[state] ?? 0
      if (hidden > 0) add(at + 1 - hidden, at + 1)
    }
    const rest = this.#depth[state] ?? 0
    if (rest >= SHORTEST) add(text.length - rest, text.length)
    return found
  }

  #mayBegin(text: string, at: number): boolean {
    const bit = hash(text, at)
    return (((this.#begins[bit >>> 5] ?? 0) >>> (bit & 31)) & 1) === 1
  }

  #step(from: number, letter: number): number {
    for (let state = from; ; state = this.#fallback[state] ?? 0) {
      const longer = this.#child(state, letter)
      if (longer !== 0 || state === 0) return longer
    }
  }

  /** 0: no such child. */
  #child(state: number, letter: number): number {
    let child = this.#first[state] ?? 0
    while (child !== 0 && this.#letter[child] !== letter) child = this.#next[child] ?? 0
    return child
  }

  #add(form: string): void {
    const bit = hash(form, 0)
    this.#begins[bit >>> 5] = (this.#begins[bit >>> 5] ?? 0) | (1 << (bit & 31))
    let state = 0
    for (let at = 0; at < form.length; at++) {
      state = this.#child(state, form.charCodeAt(at)) || this.#grow(state, form.charCodeAt(at))
      const length = at + 1
      if (length === form.length || (length >= TELLING && length * 2 >= form.length)) this.#hides[state] = length
    }
  }

  #grow(from: number, letter: number): number {
    const state = this.#states++
    this.#letter[state] = letter
    this.#depth[state] = (this.#depth[from] ?? 0) + 1
    this.#next[state] = this.#first[from] ?? 0
    this.#first[from] = state
    return state
  }

  /** Sets the fallbacks, of shorter states first, because longer ones need them. */
  #link(): void {
    const order = new Int32Array(this.#states)
    let known = 1
    for (let at = 0; at < known; at++) {
      const state = order[at] ?? 0
      for (let child = this.#first[state] ?? 0; child !== 0; child = this.#next[child] ?? 0) {
        order[known++] = child
        if (state !== 0) this.#fallback[child] = this.#step(this.#fallback[state] ?? 0, this.#letter[child] ?? 0)
        if (this.#hides[child] === 0) this.#hides[child] = this.#hides[this.#fallback[child] ?? 0] ?? 0
      }
    }
  }
}

function hash(text: string, at: number): number {
  return ((text.charCodeAt(at) << 8) ^ text.charCodeAt(at + 1)) & 0xffff
}
