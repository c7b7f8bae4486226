import type { Writable } from 'node:stream'

export interface Swept {
  sweep(now: number): void
}

/** One interval for everything that has to be looked at from time to time. It does not keep the process alive. */
export class Sweeper {
  readonly #everyMs: number
  readonly #now: () => number
  readonly #members = new Set<Swept>()
  #timer: NodeJS.Timeout | undefined

  constructor(everyMs: number, now: () => number) {
    this.#everyMs = everyMs
    this.#now = now
  }

  add(member: Swept): void {
    this.#members.add(member)
    this.#timer ??= setInterval(() => {
      const now = this.#now()
      for (const each of this.#members) each.sweep(now)
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
  #since = 0
  #length = 0
  #queued = 0

  /** For how long nothing of what is buffered has left; 0 when nothing is. */
  stalledFor(writable: Writable, now: number): number {
    const length = writable.writableLength
    const queued = queueSize(writable)
    if (length === 0 || length !== this.#length || queued !== this.#queued || this.#since === 0) this.#since = now
    this.#length = length
    this.#queued = queued
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
