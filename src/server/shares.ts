import type { Principal } from '../core/ports/access.ts'
import { isAnonymous, shareKey } from './admission.ts'
import type { Limits } from './limits.ts'
/** Of all connections, so many may be sockets of callers without a token. The rest is left for the others. */
const ANONYMOUS_PART = 0.8

/** Counts the sockets of each principal. Those of callers without a token are counted by address, and all together. */
export class Shares {
  readonly #limits: Limits
  readonly #held = new Map<string, number>()
  #anonymous = 0

  constructor(limits: Limits) {
    this.#limits = limits
  }

  isFull(principal: Principal, address: string): boolean {
    const { connections, socketsPerPrincipal } = this.#limits
    if (isAnonymous(principal) && this.#anonymous >= connections * ANONYMOUS_PART) return true
    return (this.#held.get(shareKey(principal, address)) ?? 0) >= socketsPerPrincipal
  }

  /** `by`: 1 for a socket that opens, -1 for one that closes. */
  count(principal: Principal, address: string, by: 1 | -1): void {
    const key = shareKey(principal, address)
    const held = (this.#held.get(key) ?? 0) + by
    if (held > 0) this.#held.set(key, held)
    else this.#held.delete(key)
    if (isAnonymous(principal)) this.#anonymous += by
  }
}
