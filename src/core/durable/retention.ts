import { aliased, inventory } from './inventory.ts'
import type { CoreLimits } from '../basics/limits.ts'
import { idIn, storeKey } from '../basics/store-key.ts'
import type { Logger } from '../ports/transport.ts'
import type { Records } from './records.ts'

const DAY_MS = 24 * 3_600_000
/** Most sessions removed at a time. When the store is full, the first round removes one, and each later round more. */
const REMOVED_AT_ONCE = 32
/** How often to measure what each principal has stored, which reads the keys of the whole store. */
const MEASURE_MS = 10 * 60_000

export interface RetentionOptions {
  readonly records: Records
  readonly limits: Pick<CoreLimits, 'sessionTtlMs' | 'storedBytes' | 'storedBytesPerPrincipal'>
  /** The clock of expiry. */
  readonly now: () => number
  readonly monotonic: () => number
  readonly log: Logger
  /** True if a session is in memory. */
  readonly isLive: (tenant: string, session: string) => boolean
  /** Removes a session. False: it is in memory, so it is in use. */
  readonly remove: (tenant: string, session: string) => Promise<boolean>
}

/** Removes stored sessions: by age, by total bytes, and by bytes of one principal. */
export class Retention {
  readonly #options: RetentionOptions
  readonly #records: Records
  #isStuck = false
  #measureAt = -Infinity
  #searchAt = -Infinity

  constructor(options: RetentionOptions) {
    this.#options = options
    this.#records = options.records
  }

  /** Applies all rules once; stops early when `signal` is aborted. */
  async sweep(signal: AbortSignal): Promise<void> {
    await this.#expire(signal)
    await this.#tidy(signal)
    await this.#keepTotal(signal)
    await this.#keepShares(signal)
    await this.#removeOrphans(signal)
  }

  async #expire(signal: AbortSignal): Promise<void> {
    const before = this.#options.now() - this.#options.limits.sessionTtlMs
    let removing: Promise<boolean>[] = []
    for await (const { tenant, id, updatedAt } of this.#records.oldest()) {
      if (updatedAt > before || signal.aborted) break
      // Removals that run together share a transaction.
      if (removing.push(this.#options.remove(tenant, id)) < REMOVED_AT_ONCE) continue
      await Promise.all(removing)
      removing = []
    }
    await Promise.all(removing)
  }

  async #tidy(signal: AbortSignal): Promise<void> {
    while (!signal.aborted && (await this.#records.store.tidy()));
  }

  async #keepTotal(signal: AbortSignal): Promise<void> {
    const { limits, log } = this.#options
    let [removed, isFull, hasSessions] = [0, false, false]
    while (!signal.aborted && (isFull = (await this.#records.store.bytes()) > limits.storedBytes)) {
      const some = await this.#removeOldest(Math.min(removed + 1, REMOVED_AT_ONCE))
      hasSessions = some.used > 0
      if (some.removed === 0) break
      removed += some.removed
      await this.#tidy(signal)
    }
    if (removed > 0) log('warn', 'The oldest sessions were removed: the store is full', { removed, storedBytes: limits.storedBytes })
    // Told once: otherwise each session goes as soon as nobody uses it, and nobody knows why. One that is in use may be what is large.
    const isStuck = isFull && !hasSessions
    if (isStuck && !this.#isStuck) {
      const { storedBytes } = limits
      log('error', 'More is stored than storedBytes, and what is left cannot be removed, such as movements of money: raise it', {
        storedBytes,
      })
    }
    this.#isStuck = isStuck
  }

  async #removeOldest(most: number): Promise<{ readonly removed: number; readonly used: number }> {
    let [removed, used] = [0, 0]
    for await (const { tenant, id } of this.#records.oldest()) {
      if (await this.#options.remove(tenant, id)) removed++
      else used++
      if (removed === most) break
    }
    return { removed, used }
  }

  async #keepShares(signal: AbortSignal): Promise<void> {
    const { limits, log, monotonic } = this.#options
    const most = limits.storedBytesPerPrincipal
    const at = monotonic()
    if (at < this.#measureAt || (await this.#records.store.bytes()) <= most) return
    this.#measureAt = at + MEASURE_MS
    const held = new Map<string, number>()
    for await (const { tenant, owner, session, bytes } of inventory(this.#records)) {
      if (signal.aborted) return
      if (owner !== undefined && session !== undefined) add(held, storeKey(tenant, owner), bytes)
    }
    const full = new Map([...held].filter(([, bytes]) => bytes > most))
    if (full.size === 0) return
    // The sizes of sessions are collected only for these principals, because there may be many sessions.
    const sizes = new Map<string, number>()
    for await (const { tenant, owner, session, bytes } of inventory(this.#records)) {
      if (signal.aborted) return
      if (session !== undefined && owner !== undefined && full.has(storeKey(tenant, owner))) add(sizes, `${tenant} ${session}`, bytes)
    }
    for await (const { tenant, id, owner } of this.#records.oldest()) {
      const left = full.get(storeKey(tenant, owner))
      if (left === undefined || left <= most) continue
      if (signal.aborted) return
      if (await this.#options.remove(tenant, id)) full.set(storeKey(tenant, owner), left - (sizes.get(`${tenant} ${id}`) ?? 0))
    }
    const principals = [...full.keys()].map(idIn)
    log('warn', 'The oldest sessions of some principals were removed: they stored too much', { principals, storedBytesPerPrincipal: most })
    await this.#tidy(signal)
  }

  /**
   * Removes data of sessions that do not exist: a crash may leave the log of one that was never written, and version 0.1 left the
   * aliases of removed ones. The first search runs when the server starts, because later it would delay more clients.
   */
  async #removeOrphans(signal: AbortSignal): Promise<void> {
    const { monotonic, isLive } = this.#options
    const at = monotonic()
    if (at < this.#searchAt) return
    this.#searchAt = at + DAY_MS
    const { store } = this.#records
    for await (const { kind, tenant, key, owner, ...item } of inventory(this.#records)) {
      if (signal.aborted) return
      const session = kind === 'alias' ? await aliased(this.#records, key) : item.session
      if (session === undefined || (kind !== 'alias' && owner !== undefined) || isLive(tenant, session)) continue
      if (await this.#records.head(tenant, session)) continue
      if (kind === 'log' || kind === 'in') await store.drop(key)
      else await store.delete(key)
    }
    await this.#tidy(signal)
  }
}

function add(sums: Map<string, number>, key: string, bytes: number): void {
  sums.set(key, (sums.get(key) ?? 0) + bytes)
}
