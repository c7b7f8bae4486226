import { envelopeError } from '../../envelope/codes.ts'

/** How many frames may be sent without being acknowledged. */
const WINDOW = { usual: 64, most: 1024 }
/** How long a reader may let its window be full. Then its connection is closed, and it may resume. */
const STALL_MS = 60_000
/** Streams whose acknowledgements are remembered. Beyond it the oldest that nobody reads are forgotten, and begin anew. */
const MOST = 10_000

/** The window that a message asked for. */
export function windowOf(asked: number = WINDOW.usual): number {
  return Math.min(asked, WINDOW.most)
}

/** How far the readers of one stream are. */
class Window {
  #sent = -1
  #acknowledged = -1
  #readers = 0
  readonly #waiting = new Set<() => void>()

  get isRead(): boolean {
    return this.#readers > 0
  }

  /** Counts a reader until it leaves. */
  enter(): void {
    this.#readers++
  }

  leave(): void {
    this.#readers--
  }

  sent(seq: number): void {
    if (seq > this.#sent) this.#sent = seq
  }

  /** All frames up to this one have arrived. */
  acknowledge(seq: number): void {
    if (seq > this.#sent) throw envelopeError('4.09', `Frame ${seq} was not sent yet: ${this.#sent} is the last one`, 'ack')
    if (seq <= this.#acknowledged) return
    this.#acknowledged = seq
    for (const wake of this.#waiting) wake()
  }

  /** A reader who comes back has the frames up to this one, whoever sent them. */
  resumed(seq: number): void {
    this.sent(seq)
    if (seq >= 0) this.acknowledge(seq)
  }

  hasRoom(seq: number, size: number): boolean {
    return seq - this.#acknowledged <= size
  }

  /** Resolves with false if there is no room for this frame for too long, or `signal` aborts. */
  async room(seq: number, size: number, signal: AbortSignal): Promise<boolean> {
    if (this.hasRoom(seq, size)) return true
    if (signal.aborted) return false
    return new Promise((resolve) => {
      const end = (has: boolean): void => {
        clearTimeout(timer)
        this.#waiting.delete(wake)
        signal.removeEventListener('abort', gone)
        resolve(has)
      }
      const wake = (): void => {
        if (this.hasRoom(seq, size)) end(true)
      }
      const gone = (): void => end(false)
      const timer = setTimeout(gone, STALL_MS)
      signal.addEventListener('abort', gone)
      this.#waiting.add(wake)
    })
  }
}

/** The windows of all streams, by owner and stream. */
export class Windows {
  /** The least recently used first. */
  readonly #known = new Map<string, Window>()

  of(owner: string, stream: string): Window {
    const key = `${owner} ${stream}`
    const window = this.#known.get(key) ?? new Window()
    this.#known.delete(key)
    this.#known.set(key, window)
    for (const [oldest, { isRead }] of this.#known) {
      if (this.#known.size <= MOST) break
      // Its readers would wait for acknowledgements that go to another window.
      if (!isRead && oldest !== key) this.#known.delete(oldest)
    }
    return window
  }
}
