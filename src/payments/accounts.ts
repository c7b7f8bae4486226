import { storeKey } from '../core/basics/store-key.ts'
import type { Settlement } from '../core/ports/payments.ts'
import type { Operation, Place, Store } from '../core/ports/store.ts'
import { UampError } from '../protocol/errors.ts'
import type { Json } from '../protocol/json.ts'

/** After so many movements the balance of an account is written down, so that it is not summed up from its first day. */
const SNAPSHOT = 64
/** How many accounts stay in memory beside those that somebody uses. */
const MOST = 10_000
const PAGE = 500

/** One movement of money. It has two sides by its form: what one account loses, the other gets. */
export interface Movement {
  readonly id: string
  readonly kind: 'issue' | 'topup' | 'delegate' | 'return' | 'payment' | 'lock' | 'release' | 'refund' | 'deposit' | 'withdraw'
  readonly from: string
  readonly to: string
  /** A whole number of 10⁻⁹ units, as text. */
  readonly amount: string
  readonly currency: string
  /** Milliseconds since 1970. */
  readonly at: number
  /** What was paid for, and by whom. */
  readonly principal?: string | undefined
  readonly agent?: string | undefined
  readonly session?: string | undefined
  readonly response?: string | undefined
  readonly question?: string | undefined
  readonly description?: string | undefined
  /** The payment that a refund gives back. */
  readonly of?: string | undefined
}

/** What an account had at some movement. */
interface Snapshot {
  readonly balance: string
  readonly seq: number
}

/**
 * An account in memory. Its balance changes at once for money that leaves, and when a movement is stored for money that comes, so that
 * money is never spent that could still fail to arrive.
 */
export class Account {
  readonly tenant: string
  readonly id: string
  /** The index of its movements. */
  readonly moves: string
  #balance: bigint
  #locked = 0n
  #seq: number
  /** The balance and the number up to which every movement is decided. */
  #settled: { balance: bigint; seq: number }
  #written: number
  readonly #open = new Map<number, bigint>()
  readonly #decided = new Map<number, bigint>()

  constructor(tenant: string, id: string, { balance, seq, written }: { balance: bigint; seq: number; written: number }) {
    this.tenant = tenant
    this.id = id
    this.moves = movesOf(tenant, id)
    this.#balance = balance
    this.#seq = seq
    this.#settled = { balance, seq }
    this.#written = written
  }

  /** What can still be spent. */
  get available(): bigint {
    return this.#balance - this.#locked
  }

  get locked(): bigint {
    return this.#locked
  }

  /** What the stored movements add up to. */
  get balance(): bigint {
    return this.#balance
  }

  /** True if money has ever come or gone. */
  get isUsed(): boolean {
    return this.#seq > 0
  }

  /** The number of its last movement. */
  get seq(): number {
    return this.#seq
  }

  get isBusy(): boolean {
    return this.#locked > 0n || this.#open.size > 0
  }

  /** Sets money aside. False: there is not enough. */
  lock(amount: bigint): boolean {
    if (amount > this.available) return false
    this.#locked += amount
    return true
  }

  unlock(amount: bigint): void {
    this.#locked -= amount
  }

  /** Begins a movement of this account, and gives it its number. */
  begin(change: bigint): number {
    const seq = ++this.#seq
    this.#open.set(seq, change)
    if (change < 0n) this.#balance += change
    return seq
  }

  /** The movement is stored, or never will be. */
  decide(seq: number, isStored: boolean): void {
    const change = this.#open.get(seq)
    if (change === undefined) return
    this.#open.delete(seq)
    if (isStored && change > 0n) this.#balance += change
    if (!isStored && change < 0n) this.#balance -= change
    this.#decided.set(seq, isStored ? change : 0n)
    for (let next = this.#settled.seq + 1; ; next++) {
      const decided = this.#decided.get(next)
      if (decided === undefined) return
      this.#decided.delete(next)
      this.#settled = { balance: this.#settled.balance + decided, seq: next }
    }
  }

  /** The operation that writes the balance down, if it is time to. */
  snapshot(): Operation[] {
    const { balance, seq } = this.#settled
    if (seq - this.#written < SNAPSHOT) return []
    this.#written = seq
    return [{ op: 'set', key: accountKey(this.tenant, this.id), value: { balance: `${balance}`, seq } }]
  }
}

interface ReadOptions {
  readonly fromFirst?: boolean
  readonly rest?: () => Promise<void>
}

/** The accounts of a store. One process has them: what it knows of a balance is what there is. */
export class Accounts {
  readonly #store: Store
  readonly #most: number
  /** The least recently used first. */
  readonly #known = new Map<string, Account>()
  /** Those that were dropped. While somebody still has one, it must not be made a second time: each would spend the same money. */
  readonly #dropped = new Map<string, WeakRef<Account>>()
  readonly #loading = new Map<string, Promise<Account>>()

  constructor(store: Store, most = MOST) {
    this.#store = store
    this.#most = most
  }

  /** The account, if it is in memory. */
  known(tenant: string, id: string): Account | undefined {
    const key = nameOf(tenant, id)
    const account = this.#known.get(key) ?? this.#dropped.get(key)?.deref()
    if (!account) return undefined
    this.#remember(key, account)
    return account
  }

  async get(tenant: string, id: string): Promise<Account> {
    const known = this.known(tenant, id)
    if (known) return known
    const key = nameOf(tenant, id)
    let loading = this.#loading.get(key)
    if (!loading) {
      loading = this.read(tenant, id)
        .then((account) => {
          this.#remember(key, account)
          return account
        })
        .finally(() => this.#loading.delete(key))
      this.#loading.set(key, loading)
    }
    return loading
  }

  /**
   * The account as the store has it. Nothing may be spent from it: movements that are under way are not in it. `fromFirst` adds up every
   * movement, and `rest` comes after each page: an agent may have a million, and the store reads a page without waiting.
   */
  async read(tenant: string, id: string, { fromFirst = false, rest }: ReadOptions = {}): Promise<Account> {
    const snapshot = fromFirst ? undefined : ((await this.#store.get(accountKey(tenant, id)))?.value as Snapshot | undefined)
    let [balance, seq] = [BigInt(snapshot?.balance ?? 0), snapshot?.seq ?? 0]
    const written = seq
    for (let after: string | undefined; ;) {
      const from = after === undefined ? { afterSort: sortable(written) } : { after }
      const page = await this.#store.list(movesOf(tenant, id), { ...from, limit: PAGE })
      for (const { value } of page.items) {
        const move = value as unknown as Movement & { readonly seq: Readonly<Record<'from' | 'to', number>> }
        balance += changeOf(move, id)
        seq = Math.max(seq, move.from === id ? move.seq.from : move.seq.to)
      }
      if ((after = page.next) === undefined) break
      await rest?.()
    }
    return new Account(tenant, id, { balance, seq, written })
  }

  #remember(key: string, account: Account): void {
    // While there is much room the order does not count, and most accounts are used for every payment.
    if (this.#known.size * 2 > this.#most) this.#known.delete(key)
    this.#known.set(key, account)
    if (this.#known.size > this.#most) this.#forget()
  }

  #forget(): void {
    for (const [key, dropped] of this.#dropped) if (!dropped.deref()) this.#dropped.delete(key)
    for (const [key, account] of this.#known) {
      if (this.#known.size <= this.#most * 0.9) return
      if (account.isBusy) continue
      this.#known.delete(key)
      this.#dropped.set(key, new WeakRef(account))
    }
  }

  /**
   * Prepares a movement between two accounts that are in memory. The money has left its account when this returns, and comes back if the
   * operations could not be stored.
   */
  prepare(tenant: string, move: Movement): Settlement {
    const [from, to] = [this.knownOrThrow(tenant, move.from), this.knownOrThrow(tenant, move.to)]
    const amount = BigInt(move.amount)
    checkMove(move, amount)
    const seq = { from: from.begin(-amount), to: to.begin(amount) }
    const index: Place[] = [
      [from.moves, sortable(seq.from)],
      [to.moves, sortable(seq.to)],
      ...(move.of === undefined ? [] : [[refundsOf(tenant, move.of), move.id] as const]),
    ]
    const value = { ...move, seq } as unknown as Json
    const set: Operation = { op: 'set', key: movementKey(tenant, move.id), value, options: { ifVersion: 0, index } }
    return {
      operations: [set, ...from.snapshot(), ...to.snapshot()],
      done: (failure) => {
        from.decide(seq.from, failure === undefined)
        to.decide(seq.to, failure === undefined)
      },
    }
  }

  /** Stores prepared movements together with other operations, all or nothing. Resolves when a loss of power cannot undo it. */
  async commit(prepared: readonly Settlement[], beside: readonly Operation[] = []): Promise<void> {
    try {
      await this.#store.batch([...prepared.flatMap(({ operations }) => operations), ...beside], { sync: true })
    } catch (thrown) {
      for (const { done } of prepared) done(thrown)
      throw thrown
    }
    for (const { done } of prepared) done()
  }

  knownOrThrow(tenant: string, id: string): Account {
    const account = this.known(tenant, id)
    if (!account) throw new UampError('internal', `The account ${id} is not in memory`)
    return account
  }
}

/** What no caller can cause: it would make money, or mix two currencies. */
function checkMove({ id, from, to, currency }: Movement, amount: bigint): void {
  const currencies = [from, to].map(currencyOf)
  if (amount > 0n && from !== to && currencies.every((each) => each === undefined || each === currency)) return
  throw new UampError('internal', `The movement ${id} of ${amount} ${currency} from ${from} to ${to} cannot be`)
}

/** The currency of an account that has it in its name. Tokens and locks say it in their records. */
function currencyOf(account: string): string | undefined {
  return /^(?:outside|principal|agent):([^:]*)/.exec(account)?.[1]
}

/** What a movement does to one of its accounts. */
export function changeOf({ from, to, amount }: Pick<Movement, 'from' | 'to' | 'amount'>, account: string): bigint {
  return (to === account ? BigInt(amount) : 0n) - (from === account ? BigInt(amount) : 0n)
}

/** Names an account in memory: cheaper than its key in the store, and as that one the same for ids that differ in half a surrogate pair. */
function nameOf(tenant: string, id: string): string {
  return `${tenant}\0${id.toWellFormed()}`
}

function accountKey(tenant: string, id: string): string {
  return storeKey(tenant, 'money-account', id)
}

export function movementKey(tenant: string, id: string): string {
  return storeKey(tenant, 'money', id)
}

/** The index of the movements of one account, in order. */
export function movesOf(tenant: string, account: string): string {
  return storeKey(tenant, 'money-moves', account)
}

/** The index of what was given back of one payment. */
export function refundsOf(tenant: string, payment: string): string {
  return storeKey(tenant, 'money-refunds', payment)
}

function sortable(seq: number): string {
  return String(seq).padStart(12, '0')
}

/** Where money comes from and goes to, as the ledger names it. */
export const accountOf = {
  /** The world outside: what it lacks is what there is inside. */
  outside: (currency: string) => `outside:${currency}`,
  principal: (id: string, currency: string) => `principal:${currency}:${id}`,
  agent: (name: string, currency: string) => `agent:${currency}:${name}`,
  token: (jti: string) => `token:${jti}`,
  lock: (id: string) => `lock:${id}`,
} as const
