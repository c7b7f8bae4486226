import { UampError } from '../../protocol/errors.ts'

/** The part of a socket that an outbox writes to. */
export interface Sink {
  readonly isOpen: boolean
  send(text: string, sent: () => void): void
}

/** Characters of events that are joined into one message. */
const JOINED = 128 * 1024
/** Characters on their way beyond which a writer has to wait. */
const ENOUGH = 1024 * 1024
/** The shortest time between two messages, because servers count messages. */
const PAUSE_MS = 2

/**
 * Everything that goes to the host over one socket. The events of one turn of the event loop are one message, if the host knows that:
 * an array. Otherwise each is a message of its own.
 */
export class Outbox {
  readonly #sink: Sink
  /** Set when the host has said that it takes several events in one message. */
  joins = false
  /** The longest message that the host takes. */
  mostLength = Infinity
  #pieces: string[] = []
  #length = 0
  #onTheWay = 0
  #isScheduled = false
  #flushedAt = -Infinity
  #waiting: (() => void)[] = []

  constructor(sink: Sink) {
    this.#sink = sink
  }

  /** Throws `too_large` for an event that the host would not take. */
  add(piece: string): void {
    // A character may take three bytes.
    if (piece.length * 3 > this.mostLength && Buffer.byteLength(piece) + 2 > this.mostLength) {
      throw new UampError('too_large', `An event of the answer is larger than the ${this.mostLength} bytes that the host takes`)
    }
    this.#pieces.push(piece)
    this.#length += piece.length
    if (this.#length > JOINED) this.flush()
    else this.#schedule()
  }

  /** Undefined: more may be added now. */
  get room(): Promise<void> | undefined {
    if (!this.#sink.isOpen || this.#onTheWay + this.#length < ENOUGH) return undefined
    return new Promise((resolve) => this.#waiting.push(resolve))
  }

  get isEmpty(): boolean {
    return this.#pieces.length === 0 && this.#onTheWay === 0
  }

  flush(): void {
    const pieces = this.#pieces
    this.#pieces = []
    this.#length = 0
    this.#flushedAt = performance.now()
    if (pieces.length === 0 || !this.#sink.isOpen) return
    if (!this.joins) for (const piece of pieces) this.#send(piece)
    else for (const message of joined(pieces)) this.#send(message)
  }

  /** Nobody waits for a socket that is gone. */
  close(): void {
    for (const resolve of this.#waiting.splice(0)) resolve()
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    const flush = (): void => {
      this.#isScheduled = false
      this.flush()
    }
    const wait = this.#flushedAt + PAUSE_MS - performance.now()
    if (!this.joins || wait <= 0) setImmediate(flush)
    else setTimeout(flush, wait)
  }

  #send(text: string): void {
    this.#onTheWay += text.length
    this.#sink.send(text, () => {
      this.#onTheWay -= text.length
      if (this.#onTheWay < ENOUGH / 2) this.close()
    })
  }
}

/** Arrays of as many events as one message may have. */
function* joined(pieces: readonly string[]): Generator<string> {
  let from = 0
  let length = 0
  for (let index = 0; index < pieces.length; index++) {
    const next = pieces[index]?.length ?? 0
    if (index > from && length + next > JOINED) {
      yield joinedText(pieces.slice(from, index))
      from = index
      length = 0
    }
    length += next
  }
  yield joinedText(pieces.slice(from))
}

function joinedText(pieces: readonly string[]): string {
  return pieces.length === 1 ? (pieces[0] ?? '') : `[${pieces.join(',')}]`
}
