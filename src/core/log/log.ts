import { UampError } from '../../protocol/errors.ts'
import type { Draft, ServerEvent } from '../../protocol/events.ts'
import { Aside, Entry, isPlainText, Slice, type Item, type Stamp, unstamped } from './entry.ts'
import type { Ticker } from '../basics/time.ts'
import { LogReader, type ReadableLog } from './log-reader.ts'
import type { CommittedLog, LogStore } from './log-store.ts'
import type { ReadOptions, SessionInit } from '../ports/session.ts'

/** How much the log keeps in memory for readers that come back; events that are not stored yet come on top. */
const RING_EVENTS = 1024
const RING_BYTES = 1024 * 1024
/** How far the writer may be ahead of the reader that sets the pace. */
const READER_EVENTS = 512
const READER_BYTES = 512 * 1024
/** How far the writer may be ahead of the store. After a crash, numbers continue far above this (`epoch.ts`). */
const STORE_EVENTS = 2048
const STORE_BYTES = 4 * 1024 * 1024
/** How far a response may continue while nobody reads it. */
const DETACHED_EVENTS = 100_000
const DETACHED_BYTES = 16 * 1024 * 1024
/** A writer that writes nothing during this many microtasks waits for something. */
const PROMPT = 8

interface Sealing {
  readonly commit: () => Promise<void> | undefined
  /** No client knows of the response yet. If it cannot be stored, it ends with that error, so that no client builds on lost data. */
  readonly untold: boolean
  /** Called when the end is stored or could not be, and before readers see it. */
  readonly over?: (failure: unknown) => void
}

interface LogOptions {
  readonly ticker: Ticker
  readonly now: () => number
  readonly store: LogStore | undefined
  /** The number of the last stored event. */
  readonly head: number | undefined
  readonly onDetach: SessionInit['onDetach']
  readonly onReaders: () => void
}

/** The session's log: the only buffer between an agent and its readers. It has one writer and any number of cursors. */
export class Log implements ReadableLog, CommittedLog {
  readonly #ticker: Ticker
  readonly #now: () => number
  readonly #store: LogStore | undefined
  readonly #onReaders: () => void
  /**
   * What happens to the running response when its last reader leaves. With `finish`, the writer waits for no reader, and a client
   * that comes later can answer all questions.
   */
  onDetach: SessionInit['onDetach']
  readonly #readers = new Set<LogReader>()
  /** The last reader to leave. */
  #left: LogReader | undefined
  /** Contiguous: the event at index i has seq `#base + 1 + i`. */
  #items: Item[] = []
  #stamps: Stamp[] = []
  #base: number
  #bytes = 0
  /** Bytes ever written, to tell how far behind a cursor is. */
  #written = 0
  /** The time of the newest events. */
  #time = 0
  #visible: number
  #scheduled = false
  #sealing = 0
  #ended = false
  #waiting: (() => void) | undefined
  #detachedAt = { seq: 0, written: 0 }

  constructor(options: LogOptions) {
    this.#ticker = options.ticker
    this.#now = options.now
    this.onDetach = options.onDetach
    this.#store = options.store
    options.store?.follow(this)
    this.#base = this.#visible = options.head ?? 0
    this.#onReaders = options.onReaders
  }

  /** The number of the newest event. */
  get head(): number {
    return this.#base + this.#items.length
  }

  /** The newest number that readers may see. It is less than `head` only while the end of a response is being committed. */
  get visible(): number {
    return this.#visible
  }

  get written(): number {
    return this.#written
  }

  /** Bytes that the log holds in memory. */
  get bytes(): number {
    return this.#bytes
  }

  get ended(): boolean {
    return this.#ended
  }

  get readers(): number {
    return this.#readers.size
  }

  append(stamp: Stamp, draft: Draft): void {
    this.#push(stamp, draft)
    if (this.#sealing === 0) this.#show()
  }

  /** Appends the end of a response. Readers see it once it is committed, so that a crash cannot take back what a client was told. */
  async seal(stamp: Stamp, draft: Draft, { commit, untold, over }: Sealing): Promise<void> {
    this.#push(stamp, draft)
    const at = this.head
    this.#sealing++
    try {
      await commit()
      over?.(undefined)
    } catch (error) {
      over?.(error)
      if (untold)
        this.#items[at - this.#base - 1] = new Entry(this.#stamps[at - this.#base - 1] as Stamp, at, {
          type: 'response.error',
          error: UampError.from(error).toBody(),
        })
      throw error
    } finally {
      // Readers see the end even if the store failed: otherwise they would wait forever.
      this.#sealing--
      if (this.#sealing === 0) this.#show()
    }
  }

  read(options: ReadOptions = {}): LogReader {
    const reader = new LogReader(this, this.#store, options)
    if (reader.closed) return reader
    this.#readers.add(reader)
    this.#changed()
    return reader
  }

  leave(reader: LogReader): void {
    if (!this.#readers.delete(reader)) return
    if (this.#readers.size === 0) {
      this.#detachedAt = { seq: this.head, written: this.#written }
      this.#left = reader
    }
    this.#changed()
  }

  /** Tells an event to all attached readers without keeping it. */
  tell(event: ServerEvent): void {
    const aside = new Aside(event)
    for (const reader of this.#readers) reader.tellEntry(aside)
  }

  /**
   * True if an attached reader understands this extension event, or the last reader did and may come back. If nobody has read since
   * the process started, the types that the client `announced` count.
   */
  understood(type: string, announced: readonly string[] | 'all'): boolean {
    for (const reader of this.#readers) if (reader.understands(type)) return true
    if (this.onDetach === 'finish') return true
    if (this.#readers.size > 0 || this.onDetach === 'cancel') return false
    return this.#left ? this.#left.understands(type) : announced === 'all' || announced.includes(type)
  }

  /**
   * Shows the next event at once if its writer waits after it, and not at the end of this turn of the event loop, which the requests
   * of many other clients may fill.
   */
  async hurry(): Promise<void> {
    const next = this.head + 1
    for (let step = 0; step < PROMPT; step++) await undefined
    if (this.head === next) this.#wake()
  }

  /** Ends the log: readers get what is left, and then their iteration ends. */
  end(): void {
    this.#ended = true
    this.#news()
  }

  after(seq: number): Slice | undefined {
    return seq < this.#base ? undefined : this.#slice(seq, this.#visible)
  }

  since(seq: number, all: boolean): Slice {
    return this.#slice(Math.max(seq, this.#base), all ? this.head : this.#visible)
  }

  get base(): number {
    return this.#base
  }

  /** Throws `overloaded` when the store is so far behind that further events would only pile up in memory. */
  checkStore(): void {
    if (!this.isStoreLate) return
    throw new UampError('overloaded', 'The store does not keep up: try again shortly', { details: { retry_after: 5 } })
  }

  /** True if the writer waits for the store, and not for a reader. */
  get isStoreLate(): boolean {
    const store = this.#store
    return store !== undefined && (this.head - store.committed > STORE_EVENTS || store.uncommittedBytes > STORE_BYTES)
  }

  /** True when the writer must wait for a reader or the store. */
  get full(): boolean {
    if (this.isStoreLate) return true
    if (this.#readers.size === 0) {
      if (this.onDetach === 'finish' && this.#store) return false
      return this.head - this.#detachedAt.seq > DETACHED_EVENTS || this.#written - this.#detachedAt.written > DETACHED_BYTES
    }
    let late = 0
    for (const reader of this.#readers) if (this.#isFarAhead(reader)) late++
    // In a stored session the fastest reader sets the pace, because slower ones read from the store. Without a store the slowest
    // does: nothing else holds what it has not read.
    return this.#store ? late === this.#readers.size : late > 0
  }

  #isFarAhead({ cursor, readBytes }: LogReader): boolean {
    return this.head - cursor > READER_EVENTS || this.#written - readBytes > READER_BYTES
  }

  /** Resolves when there may be room, or `signal` is aborted. */
  async room(signal: AbortSignal): Promise<void> {
    if (signal.aborted || !this.full) return
    await new Promise<void>((resolve) => {
      const done = (): void => {
        signal.removeEventListener('abort', done)
        this.#waiting = undefined
        resolve()
      }
      this.#waiting = done
      signal.addEventListener('abort', done)
    })
  }

  /** Called when a reader or the store has moved on. */
  progress(): void {
    this.#trim()
    this.#waiting?.()
  }

  wasCommitted(): void {
    this.progress()
    for (const reader of this.#readers) if (reader.waitsForStore) reader.wake()
  }

  #slice(after: number, last: number): Slice {
    const from = after - this.#base
    const to = last - this.#base
    return new Slice(after + 1, this.#items.slice(from, to), this.#stamps.slice(from, to))
  }

  #push(untimed: Stamp, draft: Draft): void {
    // All events of one commit, or without a store of one turn of the event loop, have the time of the first: it is stored once.
    if (this.#store ? !this.#store.waiting : !this.#scheduled) this.#time = this.#now()
    const stamp = untimed.at(this.#time)
    const item: Item =
      draft.type === 'response.delta' && isPlainText(draft.delta) && stamp.responseId !== undefined
        ? draft.delta.text
        : new Entry(stamp, this.head + 1, unstamped(draft))
    const size = sizeOf(item)
    this.#items.push(item)
    this.#stamps.push(stamp)
    this.#bytes += size
    this.#written += size
    this.#store?.note(size)
    if (this.#items.length >= 2 * RING_EVENTS || this.#bytes > RING_BYTES) this.#trim()
  }

  /** Drops what everybody has read. Events beyond the ring move to the store; without a store they stay until they are read. */
  #trim(): void {
    if (this.#items.length === 0) return
    let read = this.#visible
    for (const reader of this.#readers) read = Math.min(read, reader.cursor)
    const last = this.#store ? this.#visible : read
    // Without a store, readers can resume only from the ring.
    let until = this.#store || this.onDetach === 'cancel' ? read : this.#base
    if (this.#items.length > RING_EVENTS) until = Math.max(until, Math.min(this.head - RING_EVENTS, last))
    let drop = Math.max(0, until - this.#base)
    let bytes = this.#bytes
    if (drop === this.#items.length) bytes = 0
    else for (let index = 0; index < drop; index++) bytes -= sizeOf(this.#items[index] as Item)
    while (bytes > RING_BYTES && drop < last - this.#base) bytes -= sizeOf(this.#items[drop++] as Item)
    if (drop === 0) return
    this.#store?.absorb(this.#slice(this.#base, this.#base + drop))
    this.#items = drop === this.#items.length ? [] : this.#items.slice(drop)
    this.#stamps = drop === this.#stamps.length ? [] : this.#stamps.slice(drop)
    this.#base += drop
    this.#bytes = bytes
  }

  #show(): void {
    this.#visible = this.head
    this.#news()
  }

  #news(): void {
    if (this.#scheduled) return
    this.#scheduled = true
    this.#ticker.schedule(() => {
      this.#scheduled = false
      this.#wake()
    })
  }

  #wake(): void {
    for (const reader of this.#readers) reader.wake()
  }

  #changed(): void {
    this.#onReaders()
    this.progress()
  }
}

/** The rough size of an event on the wire. */
function sizeOf(item: Item): number {
  return typeof item === 'string' ? item.length + 200 : item.size
}
