import { formatAmount } from '../core/basics/money.ts'
import { principalKey } from '../core/basics/principal.ts'
import { storeKey } from '../core/basics/store-key.ts'
import type { Asked, Authorisation, FreeQuota, Refusal } from '../core/ports/payments.ts'
import type { Operation, Store } from '../core/ports/store.ts'

const HOUR_MS = 3_600_000
const WINDOWS = { hour: HOUR_MS, day: 24 * HOUR_MS, month: 30 * 24 * HOUR_MS } as const satisfies Record<FreeQuota['per'], number>
/** How many principals are remembered. */
const MOST = 10_000

interface SpendingOptions {
  readonly store: Pick<Store, 'get'>
  readonly now: () => number
  readonly newId: () => string
  /** The most that a principal may spend in a day, by currency. */
  readonly perDay?: Readonly<Record<string, bigint>> | undefined
}

/** What a principal has used of a bound in the current hour, day or month. */
interface Used {
  window: number
  amount: bigint
  /** Set aside by payments that are under way. */
  locked: bigint
}

/** Bounds what principals spend in a day, and counts the calls that they have for free. */
export class Spending {
  readonly #options: SpendingOptions
  readonly #used = new Map<string, Used>()

  constructor(options: SpendingOptions) {
    this.#options = options
  }

  /** Reads what a principal has spent today, so that the others answer at once. */
  async load(asked: Asked): Promise<void> {
    if (this.#bound(asked) !== undefined) await this.#usedOf(this.#key(asked), WINDOWS.day)
  }

  /** True if the others know what this principal has spent today. */
  isLoaded(asked: Asked): boolean {
    return this.#bound(asked) === undefined || this.#used.has(this.#key(asked))
  }

  /** Why a principal may not spend so much more today. */
  refusal(asked: Asked): Refusal | undefined {
    const bound = this.#bound(asked)
    if (bound === undefined) return undefined
    const used = this.#current(this.#key(asked), WINDOWS.day)
    const left = used ? bound - used.amount - used.locked : 0n
    if (asked.amount <= left) return undefined
    const message = `This would be more than the ${formatAmount(bound)} ${asked.currency} that may be spent in a day`
    return { refused: 'rate_limited', message, balance: left > 0n ? left : 0n, canRetry: false }
  }

  lock(asked: Asked, amount: bigint): void {
    const used = this.#bound(asked) === undefined ? undefined : this.#current(this.#key(asked), WINDOWS.day)
    if (used) used.locked += amount
  }

  settle(asked: Asked, { locked, amount }: { readonly locked: bigint; readonly amount: bigint }): Operation[] {
    if (this.#bound(asked) === undefined) return []
    const key = this.#key(asked)
    const used = this.#current(key, WINDOWS.day)
    if (!used) return []
    used.locked -= locked < used.locked ? locked : used.locked
    used.amount += amount
    return amount === 0n ? [] : [written(key, used, WINDOWS.day)]
  }

  /** A payment that was settled could not be stored. */
  takeBack(asked: Asked, amount: bigint): void {
    const used = this.#bound(asked) === undefined ? undefined : this.#current(this.#key(asked), WINDOWS.day)
    if (used) used.amount -= amount < used.amount ? amount : used.amount
  }

  /** Takes a free call of an agent. Undefined: none is left in this hour, day or month. */
  async takeFree(asked: Asked, { calls, per }: FreeQuota): Promise<Authorisation | undefined> {
    // Everybody without credentials would share one quota, and the first of them would use it up.
    if (asked.principal.id === 'anonymous') return undefined
    const { principal, agent } = asked
    const key = storeKey(principal.tenant, 'money-free', principal.id, agent)
    const used = await this.#usedOf(key, WINDOWS[per])
    if (used.amount >= BigInt(calls)) return undefined
    used.amount += 1n
    return {
      id: `free_${this.#options.newId()}`,
      scheme: 'free',
      currency: asked.currency,
      locked: 0n,
      balance: undefined,
      expiresAt: undefined,
      extend: () => false,
      settle: (amount) => {
        if (amount === 0n) used.amount -= 1n
        return { operations: amount === 0n ? [] : [written(key, used, WINDOWS[per])], done: () => undefined }
      },
    }
  }

  #bound({ currency }: Asked): bigint | undefined {
    return this.#options.perDay?.[currency]
  }

  #key({ principal, currency }: Asked): string {
    return `${principalKey(principal).replace('/', '/money-spent/')}/${storeKey(currency)}`
  }

  #current(key: string, windowMs: number): Used | undefined {
    const used = this.#used.get(key)
    const window = Math.floor(this.#options.now() / windowMs)
    if (used && used.window !== window) {
      used.window = window
      used.amount = 0n
    }
    return used
  }

  async #usedOf(key: string, windowMs: number): Promise<Used> {
    const known = this.#current(key, windowMs)
    if (known) return known
    const stored = (await this.#options.store.get(key))?.value as { window: number; amount: string } | undefined
    const loaded = this.#current(key, windowMs)
    if (loaded) return loaded
    const used = { window: stored?.window ?? 0, amount: BigInt(stored?.amount ?? 0), locked: 0n }
    this.#used.set(key, used)
    if (this.#used.size > MOST) for (const [name, each] of this.#used) if (each.locked === 0n && name !== key) this.#used.delete(name)
    return this.#current(key, windowMs) ?? used
  }
}

function written(key: string, { window, amount }: Used, windowMs: number): Operation {
  return { op: 'set', key, value: { window, amount: `${amount}` }, options: { ttlMs: 2 * windowMs } }
}
