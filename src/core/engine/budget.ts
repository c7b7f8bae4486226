import { UampError } from '../../protocol/errors.ts'
import type { CoreLimits } from '../basics/limits.ts'
import { principalKey } from '../basics/principal.ts'
import type { Principal } from '../ports/access.ts'

/**
 * A full server still serves a principal that holds no more than this, as long as all such small principals together hold no more
 * than this part of the bound.
 */
const LITTLE = 64 * 1024
const LITTLE_PART = 0.25

const LARGE = 1024 * 1024

/** How long a refused client is told to wait: by then the server has cut off stalled readers. */
const RETRY_S = 30

type Bounds = Pick<CoreLimits, 'heldBytes' | 'heldBytesPerPrincipal'>

type Kind = 'session' | 'beside'

/** What one principal holds. */
interface Share {
  readonly key: string
  bytes: number
  holdings: number
  sessions: number
}

/** Counts the bytes in memory, per principal and in total, and refuses more beyond the bounds. */
export class Budget {
  readonly #bounds: Bounds
  readonly #shares = new Map<string, Share>()
  bytes = 0
  /** What all small principals hold together. */
  #little = 0

  constructor(bounds: Bounds) {
    this.#bounds = bounds
  }

  /** Begins to count something that uses memory for a principal. It must be closed. */
  open(principal: Principal, kind: Kind): Holding {
    const key = principalKey(principal)
    let share = this.#shares.get(key)
    if (!share) this.#shares.set(key, (share = { key, bytes: 0, holdings: 0, sessions: 0 }))
    share.holdings++
    if (kind === 'session') share.sessions++
    return new Holding(this, share, kind)
  }

  sessionsOf(principal: Principal): number {
    return this.#shares.get(principalKey(principal))?.sessions ?? 0
  }

  leave(share: Share, kind: Kind): void {
    if (kind === 'session') share.sessions--
    if (--share.holdings === 0) this.#shares.delete(share.key)
  }

  add(share: Share, bytes: number): void {
    this.#little -= little(share)
    share.bytes += bytes
    this.bytes += bytes
    this.#little += little(share)
  }

  /** Throws `overloaded` when a bound is exceeded. */
  check(share: Share): void {
    const { heldBytes, heldBytesPerPrincipal } = this.#bounds
    const mine = share.bytes > heldBytesPerPrincipal
    if (!mine && (this.bytes <= heldBytes || this.#spares(share))) return
    const who = mine ? 'You hold' : 'The server holds'
    throw new UampError('overloaded', `${who} too much in memory: read what is waiting, end sessions or send less, then try again`, {
      details: { limit: mine ? heldBytesPerPrincipal : heldBytes, retry_after: RETRY_S },
    })
  }

  #spares(share: Share): boolean {
    return share.bytes <= LITTLE && this.#little <= this.#bounds.heldBytes * LITTLE_PART
  }
}

const little = ({ bytes }: Share): number => (bytes <= LITTLE ? bytes : 0)

type Part = 'config' | 'messages' | 'pending' | 'answers' | 'output' | 'log' | 'seen' | 'state'

/** The memory of one session, or of something beside sessions, such as an answer on its way out. */
export class Holding {
  readonly #budget: Budget
  readonly #share: Share
  readonly #kind: Kind
  readonly #parts = { config: 0, messages: 0, pending: 0, answers: 0, output: 0, log: 0, seen: 0, state: 0 }
  #closed = false
  bytes = 0

  constructor(budget: Budget, share: Share, kind: Kind) {
    this.#budget = budget
    this.#share = share
    this.#kind = kind
  }

  /** True if it takes so much that unloading it pays, although it may have to be loaded again. */
  get isLarge(): boolean {
    return this.bytes > LARGE
  }

  get(part: Part): number {
    return this.#parts[part]
  }

  /** Sets the bytes that a part holds now. */
  set(part: Part, bytes: number): void {
    if (this.#closed) return
    const more = bytes - this.#parts[part]
    this.#parts[part] = bytes
    this.bytes += more
    this.#budget.add(this.#share, more)
  }

  /** As `set`, but throws `overloaded` and changes nothing when there is no room. */
  grow(part: Part, bytes: number): void {
    const before = this.#parts[part]
    this.set(part, bytes)
    if (bytes <= before) return
    try {
      this.check()
    } catch (error) {
      this.set(part, before)
      throw error
    }
  }

  /** Grows a part by `more` if `take` returns true. Throws `overloaded`, without calling `take`, when there is no room. */
  takes(part: Part, more: number, take: () => boolean): boolean {
    const before = this.#parts[part]
    this.grow(part, before + more)
    const isTaken = take()
    if (!isTaken) this.set(part, before)
    return isTaken
  }

  /** Counts the output as part of the conversation. Drops the answers, unless the turn waits for more of them. */
  keepOutput(size: number, waits: boolean): void {
    this.set('messages', this.#parts.messages + Math.max(size, this.#parts.output))
    this.set('output', 0)
    if (!waits) this.set('answers', 0)
  }

  check(): void {
    this.#budget.check(this.#share)
  }

  close(): void {
    if (this.#closed) return
    this.#budget.add(this.#share, -this.bytes)
    this.#closed = true
    this.#budget.leave(this.#share, this.#kind)
  }
}
