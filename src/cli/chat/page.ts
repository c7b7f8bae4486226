import { harmless, type Paint } from '../print.ts'
import { Flow } from './render/flow.ts'
import { Markdown } from './render/markdown.ts'
import { widthOf } from './render/width.ts'

type Format = Parameters<Paint>[0]

/** The columns of a terminal that does not tell. */
const COLUMNS = 80

/** Where text is written, in lines that it knows the ends of. */
interface Column {
  write(text: string, format?: Format): void
  endLine(): void
}

/** An answer to a file or a pipe is data, and is not changed. Notes there lose only what could harm. */
class Data implements Column {
  readonly #stream: NodeJS.WritableStream
  readonly #paint: Paint | undefined
  #open = false

  constructor(stream: NodeJS.WritableStream, paint?: Paint) {
    this.#stream = stream
    this.#paint = paint
  }

  write(text: string, format?: Format): void {
    if (text === '') return
    const shown = this.#paint ? harmless(text) : text
    this.#stream.write(this.#paint && format !== undefined ? this.#paint(format, shown) : shown)
    this.#open = !text.endsWith('\n')
  }

  endLine(): void {
    if (this.#open) this.write('\n')
  }
}

/** Text on a terminal, in lines that fit it. */
class Screen implements Column {
  readonly flow: Flow
  readonly #paint: Paint

  constructor(stream: NodeJS.WriteStream, paint: Paint) {
    this.flow = new Flow(
      (text) => void stream.write(text),
      () => stream.columns || COLUMNS,
    )
    this.#paint = paint
  }

  write(text: string, format?: Format): void {
    const style = format === undefined ? undefined : (part: string): string => this.#paint(format, part)
    for (const [index, line] of harmless(text).split('\n').entries()) {
      if (index > 0) this.flow.newline()
      this.flow.text(line, style)
    }
  }

  whole(line: string, format: Format): void {
    this.flow.line(this.#paint(format, harmless(line)))
  }

  endLine(): void {
    this.flow.flush()
    if (!this.flow.atStart) this.flow.newline()
  }
}

export interface PageOptions {
  readonly stdout: NodeJS.WriteStream
  readonly stderr: NodeJS.WriteStream
  readonly paint: (stream: NodeJS.WriteStream) => Paint
  /** Shows Markdown as it came. */
  readonly plain?: boolean
  /** Shows answers and errors, and no notes. */
  readonly quiet?: boolean
}

/** Shows the answer, and notes about other events. If the answer goes to a file or a pipe, notes go to standard error. */
export class Page {
  readonly #answer: Column
  readonly #notes: Column
  readonly #screen: Screen | undefined
  readonly #markdown: Markdown | undefined
  readonly #quiet: boolean
  #last: 'answer' | 'aside' | 'call' | undefined
  /** The call on the open line. */
  #call = { id: '', isBare: true }
  /** The running response has said something. */
  spoke = false
  /** Answers are written as they come. */
  raw = false

  constructor({ stdout, stderr, paint, plain = false, quiet = false }: PageOptions) {
    const screen = stdout.isTTY ? new Screen(stdout, paint(stdout)) : undefined
    this.#screen = screen
    this.#answer = screen ?? new Data(stdout)
    this.#notes = screen ?? new Data(stderr, paint(stderr))
    this.#markdown = screen && new Markdown({ flow: screen.flow, paint: paint(stdout), plain })
    this.#quiet = quiet
  }

  /** True on a terminal. */
  get shown(): boolean {
    return this.#screen !== undefined
  }

  /** Writes a piece of the answer. */
  answer(text: string): void {
    if (this.#last !== 'answer') this.#notes.endLine()
    this.#last = 'answer'
    if (!this.#markdown) this.#answer.write(text)
    else if (this.raw) this.#screen?.flow.raw(harmless(text))
    else this.#markdown.write(harmless(text))
  }

  /** Writes a piece of something else, such as a thought. */
  aside(text: string): void {
    if (this.#quiet) return
    if (this.#last === 'answer') this.#markdown?.end()
    if (this.#last !== 'aside') this.#notes.endLine()
    this.#last = 'aside'
    this.#notes.write(text, 'dim')
  }

  /** Writes a tool call, whose arguments may come in pieces. */
  call({ id, name, arguments: piece }: { readonly id: string; readonly name: string; readonly arguments: string }): void {
    if (this.#quiet) return
    const goesOn = this.#last === 'call' && this.#call.id === id
    if (this.#last === 'answer') this.#markdown?.end()
    if (!goesOn) this.#notes.endLine()
    const isBare = !goesOn || this.#call.isBare
    this.#last = 'call'
    this.#call = { id, isBare: isBare && piece === '' }
    this.#notes.write(`${goesOn ? '' : `→ ${name}`}${isBare && piece !== '' ? ' ' : ''}${piece}`, 'cyan')
  }

  /** Writes a line of its own. */
  note(line: string, format: Format = 'dim'): void {
    if (this.#quiet) return
    this.#line(line, format)
  }

  /** Writes a line that is there to be copied: the terminal breaks it, and a copy of it is whole. */
  whole(line: string): void {
    this.end()
    if (this.#screen) this.#screen.whole(line, 'dim')
    else this.note(line)
  }

  /** Says what went wrong. */
  error(line: string): void {
    this.#line(line, 'red')
  }

  /** Shows a message of the user, as it was typed. */
  own(text: string): void {
    for (const [index, line] of text.split('\n').entries()) this.note(`${index === 0 ? '> ' : '  '}${line}`, 'bold')
  }

  /** Writes names with what they mean, in two columns where they fit. */
  table(rows: readonly (readonly [name: string, meaning: string])[]): void {
    const width = Math.max(0, ...rows.map(([name]) => widthOf(name)))
    this.end()
    for (const [name, meaning] of rows) {
      const flow = this.#screen?.flow
      const mark = `  ${name}${' '.repeat(width - widthOf(name) + 2)}`
      if (flow && widthOf(mark) < flow.columns / 2) flow.mark(mark, ' '.repeat(widthOf(mark)))
      else this.#notes.write(`${name}  `)
      this.#notes.write(meaning, 'dim')
      this.#notes.endLine()
    }
  }

  /** Writes lines of the answer that are no Markdown. */
  line(text: string): void {
    this.end()
    this.#answer.write(`${text}\n`)
  }

  /** Writes a picture in the words of the terminal. */
  picture(sequence: string): void {
    this.end()
    this.#screen?.flow.raw(`${sequence}\n`)
  }

  /** Ends the open lines. */
  end(): void {
    this.#markdown?.end()
    this.#answer.endLine()
    this.#notes.endLine()
    this.#last = undefined
  }

  #line(line: string, format: Format): void {
    if (this.#last === 'answer') this.#markdown?.pause()
    this.#notes.endLine()
    this.#last = undefined
    const text = line.trimEnd()
    this.#notes.write(text, format)
    this.#notes.write('\n')
  }
}
