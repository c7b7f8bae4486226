import { sseLine } from '../../wire/sse.ts'

/** Characters that wait for a slow reader before the writer is made to wait. */
const QUEUE = 32 * 1024
/** What keeping a message takes beside its characters. */
const OVERHEAD = 64
/** Characters of one write, unless one message has more: everything that waits may be longer than a string can be. */
const PIECE = 1024 * 1024

/**
 * The messages of one stream, kept until its one reader takes them. Without a reader the writer does not wait: it has to look at
 * the size.
 */
export class Outbound {
  readonly #onSize: () => void
  #queue: string[] = []
  size = 0
  #closed = false
  #wake: (() => void) | undefined
  #waiting: (() => void)[] = []
  leased = false

  /** `onSize`: called when more or less waits. */
  constructor(onSize: () => void = () => undefined) {
    this.#onSize = onSize
  }

  push(frames: readonly string[]): Promise<void> {
    if (this.#closed) return Promise.resolve()
    for (const frame of frames) {
      const line = sseLine(frame)
      this.#queue.push(line)
      this.size += line.length + OVERHEAD
    }
    this.#onSize()
    this.#wake?.()
    if (!this.leased || this.size <= QUEUE) return Promise.resolve()
    return new Promise((resolve) => this.#waiting.push(resolve))
  }

  close(): void {
    this.#closed = true
    this.#wake?.()
    this.#release()
  }

  /** Begins with `first`. Not a generator: a generator that waits cannot be ended from outside. */
  lease(onLeave: () => void, first = ''): AsyncIterable<string> {
    this.leased = true
    let left = false
    let opening = first
    const leave = async (): Promise<IteratorResult<string, undefined>> => {
      if (!left) {
        left = true
        this.leased = false
        this.#wake?.()
        this.#release()
        onLeave()
      }
      return { done: true, value: undefined }
    }
    const next = async (): Promise<IteratorResult<string, undefined>> => {
      while (opening === '' && this.#queue.length === 0 && !this.#closed && !left) {
        await new Promise<void>((resolve) => (this.#wake = resolve))
      }
      const value = opening + this.#take()
      if (left || value === '') return leave()
      opening = ''
      if (this.size <= QUEUE) this.#release()
      return { done: false, value }
    }
    return { [Symbol.asyncIterator]: () => ({ next, return: leave }) }
  }

  /** The next messages, up to the size of one write. */
  #take(): string {
    let length = 0
    const many = this.#queue.findIndex((line) => (length += line.length) > PIECE)
    const lines = this.#queue.splice(0, many < 0 ? this.#queue.length : Math.max(1, many))
    for (const line of lines) this.size -= line.length + OVERHEAD
    this.#onSize()
    return lines.join('')
  }

  #release(): void {
    for (const resolve of this.#waiting.splice(0)) resolve()
  }
}
