import { TOKEN_EXPIRED, TOKEN_REVOKED } from '../core/basics/principal.ts'
import { clocksOf } from '../core/basics/time.ts'
import type { Principal } from '../core/ports/access.ts'
import type { LiveUse, LiveUses } from '../core/ports/live.ts'

export interface LiveOptions {
  /** The wall clock: tokens name the time of day. */
  readonly now?: (() => number) | undefined
  /** How long something may go on after its token has expired. Default: 60. */
  readonly graceSeconds?: number | undefined
  /** True if the access of a principal was taken back. */
  readonly isRevoked?: ((principal: Principal) => boolean) | undefined
}

const GRACE_SECONDS = 60

/** Timers stop while a machine sleeps, and the clock may be set: the time is looked at this often. */
const LOOK_MS = 60_000

interface Watch {
  timer: ReturnType<typeof setTimeout>
  /** It was told that its credentials have expired. */
  told: boolean
}

/**
 * Knows what goes on by whose credentials, and ends it with them. What never expires costs an entry in a map; what does, one timer.
 */
export class Live implements LiveUses {
  readonly #uses = new Map<LiveUse, Watch | undefined>()
  readonly #now: () => number
  readonly #graceSeconds: number
  readonly #isRevoked: LiveOptions['isRevoked']

  constructor({ now, graceSeconds = GRACE_SECONDS, isRevoked }: LiveOptions = {}) {
    this.#now = clocksOf({ ...(now && { now }) }).now
    this.#graceSeconds = graceSeconds
    this.#isRevoked = isRevoked
  }

  get size(): number {
    return this.#uses.size
  }

  add(use: LiveUse): () => void {
    this.#forget(use)
    const left = this.#left(use)
    // Never cut here, even if it is late: whoever adds it may not be ready for that.
    this.#uses.set(use, left === undefined ? undefined : { timer: this.#after(left, use), told: false })
    // Revoked between the check of the token and now: `cut` has not seen it.
    const principal = this.#isRevoked && use.principal()
    if (principal && this.#isRevoked?.(principal)) setTimeout(() => this.#cut(use, TOKEN_REVOKED), 0)
    return () => this.#forget(use)
  }

  cut(matches: (principal: Principal) => boolean, reason: string): number {
    const found = [...this.#uses.keys()].filter((use) => {
      const principal = use.principal()
      return principal !== undefined && matches(principal)
    })
    for (const use of found) this.#cut(use, reason)
    return found.length
  }

  /** The time until the credentials expire; undefined if they never do. */
  #left(use: LiveUse): number | undefined {
    const expiresAt = use.principal()?.expiresAt
    return expiresAt === undefined ? undefined : expiresAt - this.#now()
  }

  #after(ms: number, use: LiveUse): Watch['timer'] {
    const timer = setTimeout(() => this.#look(use), Math.max(0, Math.min(ms, LOOK_MS)))
    // Node only: nothing that waits for its end keeps the process up.
    ;(timer as { unref?: () => void }).unref?.()
    return timer
  }

  #look(use: LiveUse): void {
    const watch = this.#uses.get(use)
    const left = this.#left(use)
    if (!watch || left === undefined) return
    const graceMs = this.#graceSeconds * 1000
    if (left + graceMs <= 0) return this.#cut(use, TOKEN_EXPIRED)
    watch.timer = this.#after(left > 0 ? left : left + graceMs, use)
    if (left > 0 || watch.told) return
    watch.told = true
    use.expired?.(this.#graceSeconds)
  }

  #cut(use: LiveUse, reason: string): void {
    if (this.#forget(use)) use.cut(reason)
  }

  /** False if it is not on the list. */
  #forget(use: LiveUse): boolean {
    clearTimeout(this.#uses.get(use)?.timer)
    return this.#uses.delete(use)
  }
}
