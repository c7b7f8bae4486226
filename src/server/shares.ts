import type { Principal } from '../core/ports/access.ts'
import { principalKey } from './admission.ts'

/** How many sockets each principal holds. */
export class Shares {
  readonly #most: number
  readonly #held = new Map<string, number>()

  constructor(most: number) {
    this.#most = most
  }

  isFull(principal: Principal): boolean {
    return (this.#held.get(principalKey(principal)) ?? 0) >= this.#most
  }

  /** Gives back what to call when the socket is gone. */
  hold(principal: Principal): () => void {
    const key = principalKey(principal)
    this.#held.set(key, (this.#held.get(key) ?? 0) + 1)
    return () => {
      const left = (this.#held.get(key) ?? 1) - 1
      if (left === 0) this.#held.delete(key)
      else this.#held.set(key, left)
    }
  }
}
