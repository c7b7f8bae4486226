import type { ServerEvent } from '../../protocol/events.ts'
import { Aside, Picked, type Slice } from './entry.ts'
import { decodeGroup, type LogStore } from './log-store.ts'
import type { Batch, Reader, ReadOptions } from '../ports/session.ts'
import type { Group } from '../ports/store.ts'

const DONE = { done: true, value: undefined } as const

/** Most events queued for one reader outside the log. Beyond it the oldest are dropped: they are pongs and acknowledgements. */
const ASIDES = 1024

/** The part of the log that its readers use. */
export interface ReadableLog {
  /** The newest number readers may see. */
  readonly visible: number
  /** One less than the oldest number in memory. */
  readonly base: number
  /** Bytes ever written, to tell how far behind a cursor is. */
  readonly written: number
  readonly ended: boolean
  /** The events after `seq` that readers may see; undefined when some of them are only in the store. */
  after(seq: number): Slice | undefined
  /** Called when a reader has moved on. */
  progress(): void
  leave(reader: LogReader): void
}

export class LogReader implements Reader {
  readonly recovered: boolean
  readonly #log: ReadableLog
  readonly #store: LogStore | undefined
  #extensions: readonly string[] | 'all'
  readonly #signal: AbortSignal | undefined
  /** It sees only what is committed. */
  readonly waitsForStore: boolean
  #asides: Aside[] = []
  /** Resolves the pending `next()`. */
  #waiting: ((step: IteratorResult<Batch, undefined> | Promise<IteratorResult<Batch, undefined>>) => void) | undefined
  /** Where the cursor moves when the transport asks for the batch after the current one. */
  #taken: { readonly seq: number; readonly bytes: number } | undefined
  /** The groups that are being read from the store, because memory no longer holds the cursor's events. */
  #stored: { readonly groups: AsyncGenerator<Group, void>; readonly base: number; found: boolean } | undefined
  closed: boolean
  readonly #aborted = (): void => this.close()
  /** The transport has taken and written everything up to here. */
  cursor: number
  readBytes: number

  constructor(log: ReadableLog, store: LogStore | undefined, { after, extensions = [], signal, committed = false }: ReadOptions) {
    this.#log = log
    this.#store = store
    this.#extensions = extensions
    this.#signal = signal
    this.waitsForStore = committed && store !== undefined
    const wanted = after ?? log.visible
    this.recovered = wanted <= log.visible && (store !== undefined || wanted >= log.base)
    this.cursor = this.recovered ? wanted : wanted > log.visible ? log.visible : log.base
    this.readBytes = log.written
    this.closed = signal?.aborted ?? false
    if (!this.closed) signal?.addEventListener('abort', this.#aborted)
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
    const resolve = this.#waiting
    if (!resolve) return
    // Cleared first: the step may close this reader, which calls `wake` again.
    this.#waiting = undefined
    const step = this.#step()
    if (step === undefined) this.#waiting = resolve
    else resolve(step)
  }

  /** Not a generator, so that an idle reader is only one promise, and a batch takes fewer steps to its socket. */
  [Symbol.asyncIterator](): AsyncIterator<Batch, undefined> {
    return {
      next: () => this.#next(),
      return: () => {
        this.close()
        return Promise.resolve(DONE)
      },
    }
  }

  async each(take: (batch: Batch) => Promise<void>): Promise<void> {
    while (await this.#pass(take));
  }

  /** A call of its own for each batch, because a loop would keep the last batch in memory while it waits for the next. */
  async #pass(take: (batch: Batch) => Promise<void>): Promise<boolean> {
    const { value, done } = await this.#next()
    if (done) return false
    await take(value)
    return true
  }

  #next(): Promise<IteratorResult<Batch, undefined>> {
    this.#settle()
    const step = this.#step()
    return step === undefined ? new Promise((resolve) => (this.#waiting = resolve)) : Promise.resolve(step)
  }

  /** The transport is done with the last batch: moves the cursor. */
  #settle(): void {
    if (!this.#taken) return
    const { seq, bytes } = this.#taken
    this.#taken = undefined
    this.#reached(seq, bytes)
  }

  /** The next result of the iteration; undefined while there is nothing to read. */
  #step(): IteratorResult<Batch, undefined> | Promise<IteratorResult<Batch, undefined>> | undefined {
    if (this.closed) return DONE
    if (this.#asides.length > 0) {
      const asides = this.#asides
      this.#asides = []
      return { done: false, value: new Picked(asides) }
    }
    if (this.cursor < this.#visible) return this.#behind()
    if (!this.#log.ended || this.cursor < this.#log.visible) return undefined
    this.close()
    return DONE
  }

  /** The newest number that this reader may see. */
  get #visible(): number {
    const { visible } = this.#log
    return this.waitsForStore && this.#store ? Math.min(visible, this.#store.committed) : visible
  }

  #behind(): IteratorResult<Batch, undefined> | Promise<IteratorResult<Batch, undefined>> | undefined {
    // Without a store, `after` finds everything: the log then keeps what an attached reader has not read.
    const all = this.#log.after(this.cursor)
    if (all === undefined) return this.#store && this.#fromStore(this.#store)
    const slice = this.waitsForStore ? all.upTo(this.#visible) : all
    this.#leaveStore()
    return this.#take(slice, { seq: slice.last, bytes: this.#log.written })
  }

  async #fromStore(store: LogStore): Promise<IteratorResult<Batch, undefined>> {
    this.#stored ??= { groups: store.read(this.cursor), base: this.#log.base, found: false }
    const { groups, base, found } = this.#stored
    const step = await groups.next()
    if (this.closed) return DONE
    if (!step.done) {
      if (this.#stored) this.#stored.found = true
      const slice = await decodeGroup(store, step.value, this.cursor)
      if (this.closed) return DONE
      return this.#take(slice, { seq: step.value.last, bytes: this.readBytes })
    }
    this.#leaveStore()
    // Numbers jump after a restart: nothing is stored between the cursor and `base`. More may have come since.
    if (!found) this.#reached(Math.max(this.cursor, base), this.readBytes)
    return (await this.#step()) ?? new Promise((resolve) => (this.#waiting = resolve))
  }

  #leaveStore(): void {
    void this.#stored?.groups.return()
    this.#stored = undefined
  }

  #take(slice: Slice, taken: { readonly seq: number; readonly bytes: number }): IteratorResult<Batch, undefined> {
    this.#taken = taken
    return { done: false, value: this.#wanted(slice) }
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
    this.#leaveStore()
    this.#log.leave(this)
    this.wake()
  }
}
