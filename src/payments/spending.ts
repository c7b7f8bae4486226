import { formatAmount } from '../protocol/money.ts'
import { storeKey } from '../core/basics/store-key.ts'
import type { Asked, Authorisation, FreeQuota, Refusal, Settlement } from '../core/ports/payments.ts'
import type { Operation, Store } from '../core/ports/store.ts'

const HOUR_MS = 3_600_000
const WINDOWS = { hour: HOUR_MS, day: 24 * HOUR_MS, month: 30 * 24 * HOUR_MS } as const satisfies Record<FreeQuota['per'], number>
/** How many principals are remembered, beside those with payments under way. */
const MOST = 10_000

interface SpendingOptions {
  readonly store: Pick<Store, 'get'>
  readonly now: () => number
  readonly newId: () => string
  /** The most that a principal may spend in a day, by currency. */
  readonly perDay?: Readonly<Record<string, bigint>> | undefined
}

/**
 * What a principal has used of a bound in one hour, day or month. Each has a record of its own, so that a clock that is set back and
 * forth finds what was used before.
 */
interface Used {
  readonly key: string
  readonly windowMs: number
  amount: bigint
  /** Changes that are not stored yet. */
  busy: number
}

/** Bounds what principals spend in a day, and counts the calls that they have for free. */
export class Spending {
  readonly #options: SpendingOptions
  readonly #used = new Map<string, Used>()
  readonly #loading = new Map<string, Promise<Used>>()
  /** What is set aside by payments that are under way, whichever day they began on. */
  readonly #locked = new Map<string, bigint>()

  constructor(options: SpendingOptions) {
    this.#options = options
  }

  /** True if the others can answer at once. */
  isLoaded(asked: Asked): boolean {
    return this.#bound(asked) === undefined || this.#used.has(this.#windowed(spentKey(asked), WINDOWS.day))
  }

  /** Reads what a principal has spent today. */
  async load(asked: Asked): Promise<void> {
    // The day may end while it is read.
    while (!this.isLoaded(asked)) await this.#usedOf(spentKey(asked), WINDOWS.day)
  }

  /** Why a principal may not spend so much more today. */
  refusal(asked: Asked): Refusal | undefined {
    const bound = this.#bound(asked)
    if (bound === undefined) return undefined
    const key = spentKey(asked)
    const used = this.#used.get(this.#windowed(key, WINDOWS.day))
    const left = bound - (used?.amount ?? 0n) - (this.#locked.get(key) ?? 0n)
    if (asked.amount <= left) return undefined
    const message = `This would be more than the ${formatAmount(bound)} ${asked.currency} that may be spent in a day`
    return { refused: 'rate_limited', message, balance: left > 0n ? left : 0n, canRetry: false }
  }

  lock(asked: Asked, amount: bigint): void {
    if (this.#bound(asked) === undefined) return
    const key = spentKey(asked)
    this.#locked.set(key, (this.#locked.get(key) ?? 0n) + amount)
  }

  /** Ends what was locked. What could not be stored is not spent. */
  settle(asked: Asked, { locked, amount }: { readonly locked: bigint; readonly amount: bigint }): Settlement {
    if (this.#bound(asked) === undefined) return NOTHING
    const key = spentKey(asked)
    const left = (this.#locked.get(key) ?? 0n) - locked
    if (left > 0n) this.#locked.set(key, left)
    else this.#locked.delete(key)
    if (amount === 0n) return NOTHING
    const name = this.#windowed(key, WINDOWS.day)
    const used = this.#used.get(name) ?? this.#remember({ key: name, windowMs: WINDOWS.day, amount: 0n, busy: 0 })
    used.amount += amount
    return changed(used, amount)
  }

  /** Takes a free call of an agent. Undefined: none is left in this hour, day or month. */
  async takeFree(asked: Asked, { calls, per }: FreeQuota): Promise<Authorisation | undefined> {
    // Everybody without credentials would share one quota, and the first of them would use it up.
    if (asked.principal.id === 'anonymous') return undefined
    const { principal, agent } = asked
    const used = await this.#usedOf(storeKey(principal.tenant, 'money-free', principal.id, agent), WINDOWS[per])
    if (used.amount >= BigInt(calls)) return undefined
    used.amount += 1n
    used.busy++
    return {
      id: `free_${this.#options.newId()}`,
      scheme: 'free',
      currency: asked.currency,
      locked: 0n,
      balance: undefined,
      expiresAt: undefined,
      extend: () => false,
      settle: (amount) => {
        used.busy--
        if (amount > 0n) return changed(used, 1n)
        used.amount -= 1n
        return NOTHING
      },
    }
  }

  #bound({ currency }: Asked): bigint | undefined {
    return this.#options.perDay?.[currency]
  }

  #windowed(key: string, windowMs: number): string {
    return `${key}/${Math.floor(this.#options.now() / windowMs)}`
  }

  async #usedOf(base: string, windowMs: number): Promise<Used> {
    const key = this.#windowed(base, windowMs)
    const known = this.#used.get(key)
    if (known) return known
    const loading = this.#loading.get(key) ?? this.#load(key, windowMs).finally(() => this.#loading.delete(key))
    this.#loading.set(key, loading)
    return loading
  }

  async #load(key: string, windowMs: number): Promise<Used> {
    const stored = (await this.#options.store.get(key))?.value as { amount: string } | undefined
    return this.#used.get(key) ?? this.#remember({ key, windowMs, amount: BigInt(stored?.amount ?? 0), busy: 0 })
  }

  #remember(used: Used): Used {
    this.#used.set(used.key, used)
    if (this.#used.size <= MOST) return used
    for (const [key, { busy }] of this.#used) {
      if (this.#used.size <= MOST * 0.9) break
      if (busy === 0 && key !== used.key) this.#used.delete(key)
    }
    return used
  }
}

const NOTHING: Settlement = { operations: [], done: () => undefined }

/** Writes what was used, and takes it back if that fails. */
function changed(used: Used, by: bigint): Settlement {
  used.busy++
  const { key, amount, windowMs } = used
  const set: Operation = { op: 'set', key, value: { amount: `${amount}` }, options: { ttlMs: 2 * windowMs } }
  return {
    operations: [set],
    done: (failure) => {
      used.busy--
      if (failure !== undefined) used.amount -= by
    },
  }
}

function spentKey({ principal, currency }: Asked): string {
  return storeKey(principal.tenant, 'money-spent', principal.id, currency)
}
