import { harmless, type Paint } from '../print.ts'

/** One stream of text, which knows whether its last line is complete. */
class Column {
  readonly #stream: NodeJS.WriteStream
  /** An answer to a file or a pipe is data, and is not changed. */
  readonly #raw: boolean
  #open = false

  constructor(stream: NodeJS.WriteStream, raw: boolean) {
    this.#stream = stream
    this.#raw = raw
  }

  write(text: string, style: (text: string) => string = String): void {
    if (text === '') return
    this.#stream.write(style(this.#raw ? text : harmless(text)))
    this.#open = !text.endsWith('\n')
  }

  endLine(): void {
    if (this.#open) this.write('\n')
  }
}

export interface PageOptions {
  readonly stdout: NodeJS.WriteStream
  readonly stderr: NodeJS.WriteStream
  readonly paint: (stream: NodeJS.WriteStream) => Paint
}

/** Shows the answer, and notes about other events. If the answer goes to a file or a pipe, notes go to standard error. */
export class Page {
  readonly #answer: Column
  readonly #notes: Column
  readonly #paint: Paint
  #last: 'answer' | 'aside' | undefined
  /** The running response has said something. */
  spoke = false

  constructor({ stdout, stderr, paint }: PageOptions) {
    const notes = stdout.isTTY ? stdout : stderr
    this.#answer = new Column(stdout, !stdout.isTTY)
    this.#notes = notes === stdout ? this.#answer : new Column(stderr, false)
    this.#paint = paint(notes)
  }

  /** Writes a piece of the answer. */
  answer(text: string): void {
    if (this.#last !== 'answer') this.#notes.endLine()
    this.#last = 'answer'
    this.#answer.write(text)
  }

  /** Writes a piece of something else, such as a thought. */
  aside(text: string): void {
    if (this.#last !== 'aside') this.#notes.endLine()
    this.#last = 'aside'
    this.#notes.write(text, (shown) => this.#paint('dim', shown))
  }

  /** Writes a line of its own. */
  note(line: string, format: Parameters<Paint>[0] = 'dim'): void {
    this.#notes.endLine()
    this.#last = undefined
    this.#notes.write(`${line}\n`, (shown) => `${this.#paint(format, shown.trimEnd())}\n`)
  }

  /** Ends the open lines. */
  end(): void {
    this.#answer.endLine()
    this.#notes.endLine()
    this.#last = undefined
  }
}
