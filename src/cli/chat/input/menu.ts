import { cut, rowsOf } from '../render/width.ts'
import type { Question } from './console.ts'
import type { Key } from './keys.ts'

/** A key that is pressed so soon was meant for the message that was being typed. */
const UNREAD_MS = 250

/** A question with choices: arrow keys and Enter, or the key of a choice. */
export class Menu {
  readonly question: Question
  readonly #opened: number
  readonly #now: () => number
  #at: number

  constructor(question: Question, now: () => number) {
    this.question = question
    this.#now = now
    this.#opened = now()
    this.#at = question.first ?? 0
  }

  /** The index of the choice, if this key decides; undefined otherwise. */
  press({ name = '', sequence = '' }: Key): number | undefined {
    const { choices } = this.question
    if (this.#now() - this.#opened < UNREAD_MS) return undefined
    if (name === 'return' || name === 'enter') return this.#at
    if (name === 'up' || name === 'down' || name === 'tab') {
      this.#at = (this.#at + (name === 'up' ? choices.length - 1 : 1)) % choices.length
      return undefined
    }
    const byKey = choices.findIndex(({ key }) => key === sequence.toLowerCase())
    if (byKey >= 0) return byKey
    const number = /^[1-9]$/.test(sequence) ? Number(sequence) - 1 : -1
    return number >= 0 && number < choices.length ? number : undefined
  }

  /** The text, or nothing if it is on the screen already, and as many choices as the screen has room for. */
  rows({ columns, height, bare }: { readonly columns: number; readonly height: number; readonly bare: boolean }): readonly string[] {
    const { choices } = this.question
    const width = Math.max(columns - 1, 2)
    const lines = bare ? [] : this.lines(columns)
    const room = Math.max(1, (height || Infinity) - 1 - lines.length)
    const from = Math.max(0, Math.min(this.#at - Math.floor(room / 2), choices.length - room))
    const rows = choices.map(({ key, label }, at) => cut(`${at === this.#at ? '❯' : ' '} ${key}  ${label}`, width))
    return [...lines, ...rows.slice(from, from + room)]
  }

  /** The rows of the text. */
  lines(columns: number): readonly string[] {
    return this.question.text.split('\n').flatMap((line) => rowsOf(line, Math.max(columns - 1, 2)))
  }
}
