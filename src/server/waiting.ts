export interface WaitingLimits {
  readonly strangers: number
  readonly strangersPerAddress: number
}

/** A socket that can be closed at once, whatever its peer does. */
interface Cut {
  cut(code: number, reason: string): void
}

/** Close code "try again later". */
const TRY_LATER = 1013

/**
 * Sockets that have not shown a token yet, the oldest first. When there are too many, the oldest goes and not the newest: whoever
 * has a token shows it at once, and whoever only holds a place has held it for the longest time.
 */
export class Waiting<S extends Cut> {
  readonly #limits: WaitingLimits
  readonly #addresses = new Map<S, string>()
  readonly #byAddress = new Map<string, Set<S>>()

  constructor(limits: WaitingLimits) {
    this.#limits = limits
  }

  add(socket: S, address: string): void {
    const same = this.#byAddress.get(address) ?? new Set()
    const [oldest] = same
    if (oldest && same.size >= this.#limits.strangersPerAddress) {
      this.#cut(oldest, 'Too many connections of this address wait for a token')
    } else if (this.#addresses.size >= this.#limits.strangers) {
      this.evict('Too many connections wait for a token')
    }
    this.#byAddress.set(address, same.add(socket))
    this.#addresses.set(socket, address)
  }

  delete(socket: S): void {
    const address = this.#addresses.get(socket)
    if (address === undefined) return
    this.#addresses.delete(socket)
    const same = this.#byAddress.get(address)
    same?.delete(socket)
    if (same?.size === 0) this.#byAddress.delete(address)
  }

  /** Lets go of the oldest. False: nobody waits. */
  evict(reason: string): boolean {
    const [oldest] = this.#addresses.keys()
    if (!oldest) return false
    this.#cut(oldest, reason)
    return true
  }

  #cut(socket: S, reason: string): void {
    this.delete(socket)
    socket.cut(TRY_LATER, reason)
  }
}
