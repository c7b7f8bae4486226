import type { Writable } from 'node:stream'
import { PACE_BYTES } from '../bodies.ts'
import { Line } from './http2/line.ts'

export interface Swept {
  sweep(now: number): void
}

/**
 * One interval for all regular checks. It does not keep the process alive. Its time is the number of its ticks, so that a blocked process
 * or a sleeping machine does not count against the clients.
 */
export class Sweeper {
  readonly #everyMs: number
  readonly #members = new Set<Swept>()
  #timer: NodeJS.Timeout | undefined
  #now = 0

  constructor(everyMs: number) {
    this.#everyMs = everyMs
  }

  add(member: Swept): void {
    this.#members.add(member)
    this.#timer ??= setInterval(() => {
      this.#now += this.#everyMs
      for (const each of this.#members) each.sweep(this.#now)
    }, this.#everyMs).unref()
  }

  delete(member: Swept): void {
    this.#members.delete(member)
    if (this.#members.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}

/** Measures whether a peer reads. */
export class Progress {
  #since: number | undefined
  #length = 0
  #queued = 0

  /** How long no buffered byte has left; 0 if nothing is buffered. */
  stalledFor(writable: Writable, now: number): number {
    const length = writable.writableLength
    const queued = queueSize(writable)
    if (this.#since === undefined || length === 0 || length !== this.#length || queued !== this.#queued) this.#since = now
    this.#length = length
    this.#queued = queued
    return now - this.#since
  }
}

/** Tells whether a peer has read anything between two checks. */
export class Taking {
  #written = 0
  #queued = 0

  since(socket: Writable & { readonly bytesWritten?: number }): boolean {
    const written = (socket.bytesWritten ?? 0) - socket.writableLength
    const queued = queueSize(socket)
    const isTaken = written !== this.#written || queued < this.#queued
    this.#written = written
    this.#queued = queued
    return isTaken
  }
}

/** Measures whether a sender continues a large message. */
export class Pace {
  #since: number | undefined
  #bytes = 0

  /** How long it has brought less than `PACE_BYTES`. `bytes`: the size so far. */
  slowFor(bytes: number, now: number): number {
    if (this.#since === undefined || bytes < this.#bytes || bytes - this.#bytes >= PACE_BYTES) {
      this.#since = now
      this.#bytes = bytes
    }
    return now - this.#since
  }
}

/**
 * Bytes of the current write that the kernel, or the window of an HTTP/2 stream, has not taken. `writableLength` falls only when a whole
 * write is done, which may be a megabyte: a slow reader would look like one that has stopped. Node's own socket timeout reads the same
 * number.
 */
function queueSize(writable: Writable): number {
  if (writable instanceof Line) return writable.untaken
  const { _handle } = writable as { _handle?: { writeQueueSize?: number } | null }
  return _handle?.writeQueueSize ?? 0
}
