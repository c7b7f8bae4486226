import type { Writable } from 'node:stream'
import { PACE_BYTES } from '../bodies.ts'

export interface Swept {
  sweep(now: number): void
}

/**
 * One interval for everything that has to be looked at from time to time. It does not keep the process alive. Its time is the
 * number of its ticks: when the process was held up, or the machine asleep, that must not count against the clients.
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

/** Whether a writer's peer takes anything. */
export class Progress {
  #since: number | undefined
  #length = 0
  #queued = 0

  /** For how long nothing of what is buffered has left; 0 when nothing is. */
  stalledFor(writable: Writable, now: number): number {
    const length = writable.writableLength
    const queued = queueSize(writable)
    if (this.#since === undefined || length === 0 || length !== this.#length || queued !== this.#queued) this.#since = now
    this.#length = length
    this.#queued = queued
    return now - this.#since
  }
}

/** Whether a peer has taken anything between two looks. */
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

/** Whether a sender goes on with something large. */
export class Pace {
  #since: number | undefined
  #bytes = 0

  /** For how long it has brought less than `PACE_BYTES`. `bytes`: what there is of it now. */
  slowFor(bytes: number, now: number): number {
    if (this.#since === undefined || bytes < this.#bytes || bytes - this.#bytes >= PACE_BYTES) {
      this.#since = now
      this.#bytes = bytes
    }
    return now - this.#since
  }
}

/**
 * What the kernel has not taken of the write that is under way. `writableLength` falls only when a whole write is done, and that
 * may be a megabyte: a slow reader would look like one that has stopped. Node's own socket time-out reads the same number.
 */
function queueSize(writable: Writable): number {
  const { _handle } = writable as { _handle?: { writeQueueSize?: number } | null }
  return _handle?.writeQueueSize ?? 0
}
