/** What a client has seen of one answer, whatever protocol told it. */
export interface Seen {
  /** Words that are shown, those of speech included. */
  readonly text: string
  readonly thoughts: string
  /** Whole pictures, recordings, files. */
  readonly media: number
  /** Bytes of streamed sound. */
  readonly sound: number
  /** The agent's own tools: `name arguments = result`. */
  readonly calls: readonly string[]
  readonly questions: readonly Question[]
  /** Tokens of output; 0 where nothing is told of them. */
  readonly usage: number
  /** `done`, `cancelled`, `error <code>`; `left`: the client closed the connection, and the agent stopped. */
  readonly end: string
}

export type Question = 'tool.call' | 'x.approval.request' | 'payment.required'

export const NOTHING: Seen = { text: '', thoughts: '', media: 0, sound: 0, calls: [], questions: [], usage: 0, end: 'done' }

interface Call {
  readonly name: string
  arguments: string
  result?: string
}

/** Gathers what a client sees. Drivers tell it, in the order in which their client is told. */
export class Seeing {
  #text = ''
  /** Where the text of the newest response begins. */
  #from = 0
  #thoughts = ''
  #media = 0
  #sound = 0
  #usage = 0
  #end: string | undefined
  readonly #calls = new Map<string, Call>()
  readonly #questions = new Map<string, Question>()
  #waiting: (() => void)[] = []
  /** How a cancel that came too late was refused. */
  refused: string | undefined

  get text(): string {
    return this.#text
  }

  get over(): boolean {
    return this.#end !== undefined
  }

  get asked(): boolean {
    return this.#questions.size > 0
  }

  say(piece: string | null | undefined): void {
    this.#text += piece ?? ''
    this.wake()
  }

  think(piece: string | null | undefined): void {
    this.#thoughts += piece ?? ''
  }

  show(count = 1): void {
    this.#media += count
  }

  hear(base64: string): void {
    this.#sound += Buffer.from(base64, 'base64').length
  }

  /** A call, or the next piece of its arguments. */
  call(id: string, { name = '', arguments: piece = '' }: { readonly name?: string; readonly arguments?: string }): void {
    const known = this.#calls.get(id)
    if (known) known.arguments += piece
    else this.#calls.set(id, { name, arguments: piece })
  }

  result(id: string, result: string): void {
    const call = this.#calls.get(id)
    if (call) call.result = result
  }

  /** False: it was asked before, and is told again. */
  ask(id: string, question: Question): boolean {
    if (this.#questions.has(id)) return false
    this.#questions.set(id, question)
    this.wake()
    return true
  }

  use(tokens: number | undefined): void {
    this.#usage = tokens ?? this.#usage
  }

  useMore(tokens: number | undefined): void {
    this.#usage += tokens ?? 0
  }

  /** Where a protocol repeats the whole text of a response, it must be what was said in pieces. */
  whole(text: string): void {
    const pieces = this.#text.slice(this.#from)
    if (text !== pieces) this.#end = `the whole is ${short(text)}, the pieces are ${short(pieces)}`
  }

  /** Another response of the same answer begins. */
  begin(): void {
    this.#from = this.#text.length
  }

  end(how: string): void {
    this.#end ??= how
    this.wake()
  }

  /** What was shown so far, without its end: what follows belongs to the same answer. */
  goOn(): void {
    this.#end = undefined
  }

  seen(): Seen {
    const calls = [...this.#calls].flatMap(([id, call]) => (this.#questions.has(id) ? [] : [shown(call)]))
    return {
      text: this.#text,
      thoughts: this.#thoughts,
      media: this.#media,
      sound: this.#sound,
      calls,
      questions: [...this.#questions.values()],
      usage: this.#usage,
      end: this.#end ?? 'no end',
    }
  }

  /** Resolves when this is so. */
  async when(fits: () => boolean): Promise<void> {
    while (!fits()) await new Promise<void>((resolve) => this.#waiting.push(resolve))
  }

  /** Whoever waits looks again. */
  wake(): void {
    for (const wake of this.#waiting.splice(0)) wake()
  }
}

function shown({ name, arguments: args, result }: Call): string {
  return result === undefined ? `${name} ${args}` : `${name} ${args} = ${result}`
}

const short = (text: string): string => (text.length > 40 ? `${text.slice(0, 40)}… (${text.length})` : `"${text}"`)
