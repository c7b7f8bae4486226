const OPEN = '<think>'
const CLOSE = '</think>'
/** The most white space before a tag. */
const BLANK = 256

export interface Piece {
  readonly thinking: boolean
  readonly text: string
}

/**
 * Separates thoughts from text for servers that leave them between tags in the text. Looks only at the beginning of the answer,
 * because later the model may talk about the tag. A tag may be cut anywhere.
 */
export class ThinkTags {
  #held = ''
  #state: 'begin' | 'opened' | 'thinking' | 'closed' | 'text'

  constructor(enabled: boolean) {
    this.#state = enabled ? 'begin' : 'text'
  }

  /** Everything from here on is text. */
  get settled(): boolean {
    return this.#state === 'text'
  }

  add(text: string): Piece[] {
    if (this.#state === 'text') return [{ thinking: false, text }]
    this.#held += text
    return this.#split()
  }

  /** The text that was held back because a tag might begin there. */
  end(): Piece[] {
    const thinking = this.#state === 'thinking'
    const text = this.#held
    this.#held = ''
    this.#state = 'text'
    return text === '' ? [] : [{ thinking, text }]
  }

  #split(): Piece[] {
    const out: Piece[] = []
    if (this.#state === 'begin') {
      const start = this.#held.trimStart()
      if (start.length < OPEN.length && OPEN.startsWith(start) && this.#held.length < BLANK) return out
      if (!start.startsWith(OPEN)) return this.end()
      this.#state = 'opened'
      this.#held = start.slice(OPEN.length)
    }
    // Line breaks beside the tags belong neither to the thought nor to the text.
    if (this.#state !== 'thinking') this.#held = this.#held.trimStart()
    if (this.#state === 'opened' && this.#held !== '') this.#state = 'thinking'
    if (this.#state === 'thinking') {
      const close = this.#held.indexOf(CLOSE)
      const ready = close < 0 ? this.#held.length - overlap(this.#held) : close
      if (ready > 0) out.push({ thinking: true, text: this.#held.slice(0, ready) })
      this.#held = this.#held.slice(close < 0 ? ready : close + CLOSE.length)
      if (close < 0) return out
      this.#state = 'closed'
      this.#held = this.#held.trimStart()
    }
    return this.#state === 'opened' || this.#held === '' ? out : [...out, ...this.end()]
  }
}

/** How many characters at the end may begin the closing tag. */
function overlap(text: string): number {
  for (let length = Math.min(CLOSE.length - 1, text.length); length > 0; length--) if (CLOSE.startsWith(text.slice(-length))) return length
  return 0
}
