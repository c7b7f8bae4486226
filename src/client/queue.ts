import type { ServerEvent } from '../protocol/events.ts'

/** Characters of JSON that may wait for one reader. Beyond it, the reader is given up. One event may be larger. */
export const QUEUE_LIMIT = 4 * 1024 * 1024

interface Waiter {
  readonly resolve: (result: IteratorResult<ServerEvent, undefined>) => void
  readonly reject: (error: unknown) => void
}

/** Events for one reader. Queued events come before the end or the error. */
export class EventQueue implements AsyncIterableIterator<ServerEvent, undefined> {
  /** In characters of JSON. */
  size = 0
  #items: { readonly event: ServerEvent; readonly size: number }[] = []
  #head = 0
  #waiting: Waiter[] = []
  #end: { readonly error: unknown } | undefined
  readonly #onRead: () => void

  /** `onRead` is called after each event that is read, and when the reader leaves. */
  constructor(onRead: () => void = () => undefined) {
    this.#onRead = onRead
  }

  get ended(): boolean {
    return this.#end !== undefined
  }

  push(event: ServerEvent, size: number): void {
    if (this.#end) return
    const waiter = this.#waiting.shift()
    if (waiter) return waiter.resolve({ value: event, done: false })
    this.#items.push({ event, size })
    this.size += size
  }

  end(error?: unknown): void {
    if (this.#end) return
    this.#end = { error }
    for (const waiter of this.#waiting.splice(0)) this.#finish(waiter)
  }

  next(): Promise<IteratorResult<ServerEvent, undefined>> {
    return new Promise((resolve, reject) => {
      const item = this.#items[this.#head]
      if (item) {
        this.#head += 1
        this.size -= item.size
        // Not `shift()`, which moves the whole array for every event.
        if (this.#head === this.#items.length || this.#head === 1024) {
          this.#items.splice(0, this.#head)
          this.#head = 0
        }
        resolve({ value: item.event, done: false })
        this.#onRead()
      } else if (this.#end) this.#finish({ resolve, reject })
      else this.#waiting.push({ resolve, reject })
    })
  }

  return(): Promise<IteratorResult<ServerEvent, undefined>> {
    this.#items = []
    this.#head = 0
    this.size = 0
    this.#end = { error: undefined }
    for (const waiter of this.#waiting.splice(0)) this.#finish(waiter)
    this.#onRead()
    return Promise.resolve({ value: undefined, done: true })
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  /** Throws an error once. After it, the iteration is over. */
  #finish({ resolve, reject }: Waiter): void {
    const error = this.#end?.error
    this.#end = { error: undefined }
    if (error === undefined) resolve({ value: undefined, done: true })
    else reject(error)
  }
}
