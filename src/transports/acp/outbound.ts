import { sseLine } from '../../wire/sse.ts'

/** Characters that wait for a reader before whoever writes is made to wait. */
const QUEUE = 1024 * 1024

/** What goes out on one stream of a connection: kept until somebody reads it, which is one at a time. */
export class Outbound {
  #queue: string[] = []
  #size = 0
  #closed = false
  #wake: (() => void) | undefined
  #waiting: (() => void)[] = []
  leased = false

  push(frames: readonly string[]): Promise<void> {
    if (this.#closed) return Promise.resolve()
    for (const frame of frames) {
      this.#queue.push(sseLine(frame))
      this.#size += frame.length
    }
    this.#wake?.()
    if (this.#size <= QUEUE) return Promise.resolve()
    return new Promise((resolve) => this.#waiting.push(resolve))
  }

  close(): void {
    this.#closed = true
    this.#wake?.()
    this.#release()
  }

  /** Not a generator: one that waits could not be left. */
  lease(onLeave: () => void): AsyncIterable<string> {
    this.leased = true
    let left = false
    let begun = false
    const leave = (): void => {
      if (left) return
      left = true
      this.leased = false
      this.#wake?.()
      onLeave()
    }
    const next = async (): Promise<IteratorResult<string, undefined>> => {
      // Clients wait for the stream before they say anything.
      if (!begun) {
        begun = true
        return { done: false, value: ':\n\n' }
      }
      while (this.#queue.length === 0 && !this.#closed && !left) await new Promise<void>((resolve) => (this.#wake = resolve))
      if (left || this.#queue.length === 0) {
        leave()
        return { done: true, value: undefined }
      }
      const value = this.#queue.join('')
      this.#queue = []
      this.#size = 0
      this.#release()
      return { done: false, value }
    }
    const done = async (): Promise<IteratorResult<string, undefined>> => {
      leave()
      return { done: true, value: undefined }
    }
    return { [Symbol.asyncIterator]: () => ({ next, return: done }) }
  }

  #release(): void {
    for (const resolve of this.#waiting.splice(0)) resolve()
  }
}
