import type { ServerEvent } from '../protocol/events.ts'
import { Aside } from './entry.ts'
import { decodeGroup } from './log-format.ts'
import type { LogStore } from './log-store.ts'
import type { Batch, Reader, ReadOptions } from './ports/session.ts'
import { Picked, type Slice } from './slice.ts'

/** Events for this reader alone that it has not taken yet. Beyond it the oldest go: they are pongs and acknowledgements. */
const ASIDES = 1024

/** The log as its readers see it. */
export interface ReadableLog {
  /** The newest number readers may see. */
  readonly visible: number
  /** The oldest number that memory holds, less one. */
  readonly base: number
  /** Bytes ever written, to tell how far behind a cursor is. */
  readonly written: number
  readonly ended: boolean
  /** What readers may see after `seq`, or undefined when some of it is only in the store. */
  after(seq: number): Slice | undefined
  /** A reader got further. */
  progress(): void
  leave(reader: LogReader): void
}

/** A cursor on a log. */
export class LogReader implements Reader {
  readonly recovered: boolean
  readonly #log: ReadableLog
  readonly #store: LogStore | undefined
  #extensions: readonly string[] | 'all'
  readonly #signal: AbortSignal | undefined
  #asides: Aside[] = []
  #wake: (() => void) | undefined
  closed: boolean
  readonly #aborted = (): void => this.close()
  /** Everything up to here was taken, and whatever was made of it written. */
  cursor: number
  readBytes: number

  constructor(log: ReadableLog, store: LogStore | undefined, { after, extensions = [], signal }: ReadOptions) {
    this.#log = log
    this.#store = store
    this.#extensions = extensions
    this.#signal = signal
    const wanted = after ?? log.visible
    this.recovered = wanted <= log.visible && (store !== undefined || wanted >= log.base)
    this.cursor = this.recovered ? wanted : wanted > log.visible ? log.visible : log.base
    this.readBytes = log.written
    this.closed = signal?.aborted ?? false
    signal?.addEventListener('abort', this.#aborted)
  }

  understands(type: string): boolean {
    return this.#extensions === 'all' || this.#extensions.includes(type)
  }

  understand(extensions: readonly string[] | 'all'): void {
    this.#extensions = extensions
  }

  tell(event: ServerEvent): void {
    this.tellEntry(new Aside(event))
  }

  tellEntry(aside: Aside): void {
    this.#asides.push(aside)
    if (this.#asides.length > ASIDES) this.#asides.shift()
    this.wake()
  }

  wake(): void {
    this.#wake?.()
    this.#wake = undefined
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Batch, void> {
    try {
      while (!this.closed) {
        if (this.#asides.length > 0) {
          const asides = this.#asides
          this.#asides = []
          yield new Picked(asides)
        } else if (this.cursor < this.#log.visible) {
          yield* this.#behind()
        } else if (this.#log.ended) {
          return
        } else {
          await new Promise<void>((resolve) => (this.#wake = resolve))
        }
      }
    } finally {
      this.close()
    }
  }

  async *#behind(): AsyncGenerator<Batch, void> {
    const held = this.#log.after(this.cursor)
    if (held === undefined && this.#store) return yield* this.#fromStore()
    // Without a store, what left the ring is gone. It can only be so for a reader that was slower than the fastest one.
    const slice = held ?? this.#log.after(this.#log.base)
    if (!slice) return
    const bytes = this.#log.written
    yield this.#wanted(slice)
    this.#reached(slice.last, bytes)
  }

  async *#fromStore(): AsyncGenerator<Batch, void> {
    const store = this.#store as LogStore
    let found = false
    for await (const group of store.read(this.cursor)) {
      found = true
      yield this.#wanted(decodeGroup(store.sessionId, group, this.cursor))
      this.#reached(group.last, this.readBytes)
      if (this.closed || this.cursor >= this.#log.base) return
    }
    // Numbers jump after a restart: nothing is stored between here and what memory holds.
    if (!found) this.#reached(Math.max(this.cursor, this.#log.base), this.readBytes)
  }

  #wanted(slice: Slice): Batch {
    const foreign = (type: string): boolean => type.startsWith('x.') && !this.understands(type)
    for (const item of slice.items) {
      if (typeof item !== 'string' && foreign(item.type)) return new Picked([...slice].filter(({ type }) => !foreign(type)))
    }
    return slice
  }

  #reached(seq: number, bytes: number): void {
    this.cursor = seq
    this.readBytes = bytes
    this.#log.progress()
  }

  close(): void {
    if (this.closed) return
    this.closed = true
    this.#signal?.removeEventListener('abort', this.#aborted)
    this.#log.leave(this)
    this.wake()
  }
}
