import type { Principal } from '../core/ports/access.ts'
import { principalKey } from './admission.ts'

/** What one principal holds. One object for all its sockets, so that each of them keeps a pointer and no more. */
interface Share {
  readonly key: string
  held: number
}

/** How many sockets each principal holds. */
export class Shares {
  readonly #most: number
  readonly #shares = new Map<string, Share>()

  constructor(most: number) {
    this.#most = most
  }

  isFull(principal: Principal): boolean {
    return (this.#shares.get(principalKey(principal))?.held ?? 0) >= this.#most
  }

  hold(principal: Principal): Share {
    const key = principalKey(principal)
    let share = this.#shares.get(key)
    if (share === undefined) this.#shares.set(key, (share = { key, held: 0 }))
    share.held++
    return share
  }

  release(share: Share): void {
    if (--share.held === 0) this.#shares.delete(share.key)
  }
}
