import type { Key } from './keys.ts'

const LONGEST = 64 * 1024

/** A line that is typed without being shown. */
export class Secret {
  /** Undefined: nothing was typed, or it was given up. */
  readonly typed: Promise<string | undefined>
  readonly end: (text: string | undefined) => void
  #text = ''

  constructor(signal: AbortSignal) {
    let resolve: (text: string | undefined) => void = () => undefined
    this.typed = new Promise((settle) => (resolve = settle))
    const abort = (): void => this.end(undefined)
    this.end = (text) => {
      signal.removeEventListener('abort', abort)
      this.#text = ''
      resolve(text === '' ? undefined : text)
    }
    signal.addEventListener('abort', abort)
  }

  press({ name, ctrl = false, meta = false, sequence = '' }: Key): void {
    if (name === 'return' || name === 'enter') this.end(this.#text)
    else if (name === 'escape' || (ctrl && (name === 'c' || name === 'd'))) this.end(undefined)
    else if (name === 'backspace') this.#text = this.#text.slice(0, -1)
    else if (!ctrl && !meta) this.add(sequence)
  }

  /** A token has no spaces, and a paste may end with a line break. */
  add(text: string): void {
    this.#text = (this.#text + text.replaceAll(/[\s\p{Cc}]/gu, '')).slice(0, LONGEST)
  }
}
