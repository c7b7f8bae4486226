import { graphemes, rowsOf, widthOf } from './width.ts'

export type Style = (text: string) => string

/** The most characters of a word that wait for its end. */
const WORD = 256
/** Narrower terminals are treated as this wide. */
const NARROWEST = 8
const TAB = '    '

/** Writes words in lines that fit a terminal. The last word waits until its end is known. */
export class Flow {
  readonly #write: (text: string) => void
  readonly #columns: () => number
  #column = 0
  #spaces = 0
  #word: { readonly text: string; readonly style: Style }[] = []
  #width = 0
  /** What lines begin with after a break that the width made. */
  #hanging = ''
  #hangingWidth = 0

  constructor(write: (text: string) => void, columns: () => number) {
    this.#write = write
    this.#columns = columns
  }

  /** The columns of a line. The last one stays free, because terminals differ in what they do there. */
  get columns(): number {
    return Math.max(this.#columns() - 1, NARROWEST)
  }

  get atStart(): boolean {
    return this.#column === 0 && this.#width === 0
  }

  /** Begins a line with a mark, such as a bullet. Further rows of the line begin with `hanging`. */
  mark(given: string, below: string, style: Style = String): void {
    // On a narrow terminal, a deep indent would leave no room for words.
    const excess = Math.max(0, Math.ceil(widthOf(below) - this.columns / 2))
    const text = given.slice(Math.min(excess, given.search(/\S|$/)))
    const hanging = below.slice(excess)
    this.#write(style(text))
    this.#column = widthOf(text)
    this.#hangingWidth = widthOf(hanging)
    this.#hanging = hanging === '' ? '' : style(hanging)
  }

  text(text: string, style: Style = String): void {
    for (const part of text.replaceAll('\t', TAB).match(/ +|[^ ]+/g) ?? []) {
      if (part.startsWith(' ')) this.#space(part.length)
      else this.#add(part, style)
    }
  }

  /** Ends a line, whatever its width. */
  newline(): void {
    this.flush()
    this.#spaces = this.#column = this.#hangingWidth = 0
    this.#hanging = ''
    this.#write('\n')
  }

  /** Writes a line of its own as it is. */
  line(text: string): void {
    if (!this.atStart) this.newline()
    this.#write(text)
    this.newline()
  }

  /** Writes a text as it is, in the middle of a line or not. */
  raw(text: string): void {
    this.flush()
    this.#write(' '.repeat(this.#spaces) + text)
    this.#spaces = 0
    const last = text.slice(text.lastIndexOf('\n') + 1)
    this.#column = text.includes('\n') ? widthOf(last) : this.#column + widthOf(last)
  }

  /** Writes the last word. */
  flush(): void {
    const word = this.#word
    const width = this.#width
    this.#word = []
    this.#width = 0
    if (word.length === 0) return
    const gap = this.#spaces
    this.#spaces = 0
    if (this.#column + gap + width > this.columns && this.#column > this.#hangingWidth) this.#break()
    else {
      this.#write(' '.repeat(gap))
      this.#column += gap
    }
    for (const { text, style } of word) this.#put(text, style)
  }

  #space(count: number): void {
    this.flush()
    this.#spaces += count
  }

  #add(part: string, style: Style): void {
    if (widthOf(part) === part.length) {
      this.#push(part, style)
      return
    }
    // Scripts with wide characters have no spaces: a line may end after each.
    for (const grapheme of graphemes(part)) {
      const isWide = widthOf(grapheme) > 1
      if (isWide) this.flush()
      this.#push(grapheme, style)
      if (isWide) this.flush()
    }
  }

  #push(text: string, style: Style): void {
    const last = this.#word.at(-1)
    if (last?.style === style) this.#word[this.#word.length - 1] = { text: last.text + text, style }
    else this.#word.push({ text, style })
    this.#width += widthOf(text)
    if (this.#width > WORD) this.flush()
  }

  /** Writes a part of a word. One that is longer than a line goes on in the next. */
  #put(text: string, style: Style): void {
    const [first = '', ...rest] = rowsFrom(text, this.columns - this.#column, this.columns - this.#hangingWidth)
    if (first !== '') this.#write(style(first))
    this.#column += widthOf(first)
    for (const row of rest) {
      this.#break()
      this.#write(style(row))
      this.#column += widthOf(row)
    }
  }

  #break(): void {
    this.#write(`\n${this.#hanging}`)
    this.#column = this.#hangingWidth
  }
}

/** Rows of which the first has another width. */
function rowsFrom(text: string, first: number, others: number): readonly string[] {
  if (widthOf(text) <= first) return [text]
  const [head = ''] = first < 1 ? [''] : rowsOf(text, first)
  const rest = text.slice(head.length)
  return [head, ...(rest === '' ? [] : rowsOf(rest, others))]
}
