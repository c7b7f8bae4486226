import { sseLine } from '../../wire/sse.ts'

/** Characters that wait for a slow reader before whoever writes is made to wait. */
const QUEUE = 32 * 1024
/** What keeping a message takes beside its characters. */
const OVERHEAD = 64

/**
 * What goes out on one stream: kept until somebody reads it, which is one at a time. Where nobody does, nobody is made to wait, and
 * whoever writes looks at the size.
 */
export class Outbound {
  #queue: string[] = []
  size = 0
  #closed = false
  #wake: (() => void) | undefined
  #waiting: (() => void)[] = []
  leased = false

  push(frames: readonly string[]): Promise<void> {
    if (this.#closed) return Promise.resolve()
    for (const frame of frames) {
      this.#queue.push(sseLine(frame))
      this.size += frame.length + OVERHEAD
    }
    this.#wake?.()
    if (!this.leased || this.size <= QUEUE) return Promise.resolve()
    return new Promise((resolve) => this.#waiting.push(resolve))
  }

  close(): void {
    this.#closed = true
    this.#wake?.()
    this.#release()
  }

  /** Begins with `first`. Not a generator: one that waits could not be left. */
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
      const value = opening + this.#queue.join('')
      if (left || value === '') return leave()
      opening = ''
      this.#queue = []
      this.size = 0
      this.#release()
      return { done: false, value }
    }
    return { [Symbol.asyncIterator]: () => ({ next, return: leave }) }
  }

  #release(): void {
    for (const resolve of this.#waiting.splice(0)) resolve()
  }
}
