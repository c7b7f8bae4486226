/**
 * A bounded queue between writers and one reader. `put` waits when the queue is full, so a slow reader slows its writers; `offer`
 * drops the oldest item instead, for writers that must not wait.
 */
export class Channel<T> implements AsyncIterable<T> {
  readonly #items: T[] = []
  readonly #capacity: number
  #closed = false
  #reader: (() => void) | undefined
  readonly #writers: (() => void)[] = []

  constructor(capacity: number) {
    this.#capacity = capacity
  }

  /** Resolves once the item is queued and the queue has room again. False when the reader has gone. */
  async put(item: T): Promise<boolean> {
    if (this.#closed) return false
    this.#items.push(item)
    this.#wakeReader()
    while (this.#items.length > this.#capacity && !this.#closed) {
      await new Promise<void>((resolve) => this.#writers.push(resolve))
    }
    return !this.#closed
  }

  /** Queues the item now; false when an older one was dropped for it. */
  offer(item: T): boolean {
    if (this.#closed) return false
    this.#items.push(item)
    const dropped = this.#items.length > this.#capacity
    if (dropped) this.#items.shift()
    this.#wakeReader()
    return !dropped
  }

  /** Ends the iteration after the queued items. */
  close(): void {
    if (this.#closed) return
    this.#closed = true
    this.#wakeReader()
    this.#wakeWriters()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void> {
    try {
      for (;;) {
        if (this.#items.length > 0) {
          const item = this.#items.shift() as T
          this.#wakeWriters()
          yield item
        } else if (this.#closed) {
          return
        } else {
          await new Promise<void>((resolve) => (this.#reader = resolve))
        }
      }
    } finally {
      // The reader has left: release waiting writers, or they would hang forever.
      this.#items.length = 0
      this.close()
    }
  }

  #wakeReader(): void {
    this.#reader?.()
    this.#reader = undefined
  }

  #wakeWriters(): void {
    for (const wake of this.#writers.splice(0)) wake()
  }
}
