import { harmless, type Paint } from '../print.ts'

/** One stream of text, and whether its last line has an end. */
class Column {
  readonly #stream: NodeJS.WriteStream
  /** In a file or a pipe an answer is data, and stays as it is. */
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

/** What is shown: the answer, and beside it what else happens. Where the answer goes into a file or a pipe, only it does. */
export class Page {
  readonly #answer: Column
  readonly #notes: Column
  readonly #paint: Paint
  #last: 'answer' | 'aside' | undefined
  /** Whether the response that runs has said anything. */
  spoke = false

  constructor({ stdout, stderr, paint }: PageOptions) {
    const notes = stdout.isTTY ? stdout : stderr
    this.#answer = new Column(stdout, !stdout.isTTY)
    this.#notes = notes === stdout ? this.#answer : new Column(stderr, false)
    this.#paint = paint(notes)
  }

  /** A piece of the answer. */
  answer(text: string): void {
    if (this.#last !== 'answer') this.#notes.endLine()
    this.#last = 'answer'
    this.#answer.write(text)
  }

  /** A piece of something beside the answer. */
  aside(text: string): void {
    if (this.#last !== 'aside') this.#notes.endLine()
    this.#last = 'aside'
    this.#notes.write(text, (shown) => this.#paint('dim', shown))
  }

  /** A line of its own. */
  note(line: string, format: Parameters<Paint>[0] = 'dim'): void {
    this.#notes.endLine()
    this.#last = undefined
    this.#notes.write(`${line}\n`, (shown) => `${this.#paint(format, shown.trimEnd())}\n`)
  }

  /** What was being said is over. */
  end(): void {
    this.#answer.endLine()
    this.#notes.endLine()
    this.#last = undefined
  }
}
