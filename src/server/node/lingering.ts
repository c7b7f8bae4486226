/** How long a stalled reader has to come back and read why it was cut. A response waits as long for a reader. */
const LINGER_MS = 120_000
/** The memory of all of them together. Beyond it, the one that has waited longest is cut, unless it is alone. */
const LINGER_BYTES = 32 * 1024 * 1024

export interface Lingerer {
  /** Bytes that the kernel has not taken yet. */
  readonly bytes: number
  cut(): void
}

/**
 * Closed connections whose last message waits behind unread bytes. The kernel's buffers are full, so this process has to keep the message
 * for them.
 */
export class Lingering {
  readonly lingerMs = LINGER_MS
  readonly #timers = new Map<Lingerer, NodeJS.Timeout>()
  #bytes = 0

  add(member: Lingerer): void {
    this.#bytes += member.bytes
    this.#timers.set(member, setTimeout(() => this.#cut(member), this.lingerMs).unref())
    for (const oldest of this.#timers.keys()) {
      if (this.#bytes <= LINGER_BYTES || this.#timers.size === 1) return
      this.#cut(oldest)
    }
  }

  /** Called when it has read everything, or is gone. */
  delete(member: Lingerer): void {
    clearTimeout(this.#timers.get(member))
    if (this.#timers.delete(member)) this.#bytes -= member.bytes
  }

  #cut(member: Lingerer): void {
    this.delete(member)
    member.cut()
  }
}
