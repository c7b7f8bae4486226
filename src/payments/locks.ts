import { formatAmount } from '../protocol/money.ts'
import { storeKey } from '../core/basics/store-key.ts'
import type { Operation, Store } from '../core/ports/store.ts'
import { UampError } from '../protocol/errors.ts'
import type { Json } from '../protocol/json.ts'
import { accountOf, type Accounts, type Movement } from './accounts.ts'
import { EXPIRY, expirySort, type PayToken, type Tokens } from './tokens.ts'

/** How long an ended lock can still be looked at: a settlement that is repeated finds its answer as long. */
const KEPT_MS = 7 * 86_400_000
/** How often one lock may be settled in parts. */
const PARTS = 100

/** Money that a caller of the REST API has set aside. It outlives the process, and ends by itself when its time is over. */
export interface PayLock {
  readonly id: string
  readonly tenant: string
  readonly token: string
  readonly owner: string
  /** Who is paid from it. */
  readonly agent: string
  /** The principal that opened it, and may settle it. */
  readonly openedBy: string
  readonly currency: string
  readonly createdAt: number
  readonly expiresAt: number
  readonly state: 'open' | 'settled' | 'released'
  /** What was taken from it, by idempotency key. */
  readonly parts: Readonly<Record<string, Part>>
}

/** One settlement, and the answer to it. */
interface Part {
  readonly charged: string
  readonly remaining: string
  readonly payment?: string | undefined
}

export interface Settled {
  readonly charged: bigint
  readonly remaining: bigint
  /** Names the payment, so that it can be given back. Undefined: nothing was paid. */
  readonly payment: string | undefined
}

export interface LockRequest {
  readonly agent: string
  readonly openedBy: string
  readonly amount: bigint
  readonly ttlMs: number
}

export interface SettleRequest {
  readonly amount: bigint
  /** The same key again gives the same answer, and moves nothing. */
  readonly key: string
  /** Gives back what is left. */
  readonly release: boolean
  readonly description?: string | undefined
}

interface LocksOptions {
  readonly store: Store
  readonly accounts: Accounts
  readonly tokens: Pick<Tokens, 'checkOpen' | 'heir'>
  readonly now: () => number
  readonly newId: () => string
}

type Changed = Partial<Pick<PayLock, 'state' | 'parts'>>

/** Locks of the REST API. Each has an account of its own, so that the sums of the ledger hold while money is set aside. */
export class Locks {
  readonly #options: LocksOptions
  /** Changes of one lock are made one after the other. */
  readonly #busy = new Map<string, Promise<unknown>>()

  constructor(options: LocksOptions) {
    this.#options = options
  }

  async get(tenant: string, id: string): Promise<PayLock | undefined> {
    return (await this.#options.store.get(lockKey(tenant, id)))?.value as unknown as PayLock | undefined
  }

  async open(token: PayToken, { agent, openedBy, amount, ttlMs }: LockRequest): Promise<PayLock> {
    const { now, newId } = this.#options
    const { tenant, owner, currency } = token
    const createdAt = now()
    const expiresAt = Math.min(createdAt + ttlMs, token.expiresAt)
    const lock: PayLock = {
      id: `lock_${newId()}`,
      tenant,
      token: token.id,
      owner,
      agent,
      openedBy,
      currency,
      createdAt,
      expiresAt,
      state: 'open',
      parts: {},
    }
    await this.#fill(lock, { amount, token, beside: [set(lock)] })
    return lock
  }

  /** Locks more of the same token. */
  extend(lock: PayLock, { amount, token }: { readonly amount: bigint; readonly token: PayToken }): Promise<bigint> {
    return this.#alone(lock, async (current) => {
      this.#checkOpen(current)
      await this.#fill(current, { amount, token })
      return (await this.#account(current)).balance
    })
  }

  async #fill(
    lock: PayLock,
    { amount, token, beside }: { readonly amount: bigint; readonly token: PayToken; readonly beside?: readonly Operation[] },
  ): Promise<void> {
    const { accounts, tokens } = this.#options
    const source = await accounts.get(lock.tenant, accountOf.token(lock.token))
    await this.#account(lock)
    tokens.checkOpen(token)
    if (source.available < amount) {
      const [wanted, there] = [formatAmount(amount), formatAmount(source.available)]
      throw new UampError('payment_required', `The payment token holds ${there} ${lock.currency}, and ${wanted} are needed`, {
        details: { code: 'insufficient_balance', balance_required: wanted, balance_current: there },
      })
    }
    const move = this.#move(lock, { kind: 'lock', from: accountOf.token(lock.token), to: accountOf.lock(lock.id), amount })
    await accounts.commit([accounts.prepare(lock.tenant, move)], beside)
  }

  /** Pays the agent from a lock. The same key again gives the same answer, and moves nothing. */
  settle(lock: PayLock, { amount, key, release, description }: SettleRequest): Promise<Settled> {
    return this.#alone(lock, async (current) => {
      const { accounts } = this.#options
      const before = Object.hasOwn(current.parts, key) ? current.parts[key] : undefined
      if (before) return repeated(before, amount)
      const account = await this.#account(current)
      this.#checkOpen(current)
      if (amount > account.available) {
        const [wanted, there] = [formatAmount(amount), formatAmount(account.available)]
        throw new UampError('payment_required', `The lock holds ${there} ${current.currency}, and ${wanted} are to be settled`, {
          details: { code: 'insufficient_balance', balance_required: wanted, balance_current: there },
        })
      }
      if (Object.keys(current.parts).length >= PARTS) throw new UampError('conflict', `A lock can be settled in ${PARTS} parts`)
      const seller = accountOf.agent(current.agent, current.currency)
      await accounts.get(current.tenant, seller)
      const [from, left] = [accountOf.lock(current.id), account.available - amount]
      const what = description === undefined ? {} : { description }
      const paid = amount > 0n ? [this.#move(current, { kind: 'payment', from, to: seller, amount, ...what })] : []
      const ends = release || left === 0n
      const back = ends ? await this.#back(current, left) : []
      const answer = { charged: amount, remaining: ends ? 0n : left, payment: paid[0]?.id }
      const part: Part = { ...answer, charged: `${amount}`, remaining: `${answer.remaining}` }
      await this.#commit(current, [...paid, ...back], { parts: { ...current.parts, [key]: part }, ...(ends && { state: 'settled' }) })
      return answer
    })
  }

  /** Gives back what is left. A lock that has ended stays as it is. */
  release(lock: PayLock): Promise<void> {
    return this.#alone(lock, async (current) => {
      if (current.state !== 'open') return
      const { balance } = await this.#account(current)
      const state = Object.keys(current.parts).length > 0 ? 'settled' : 'released'
      await this.#commit(current, await this.#back(current, balance), { state })
    })
  }

  async #back(lock: PayLock, amount: bigint): Promise<Movement[]> {
    const { accounts, tokens } = this.#options
    const to = (await tokens.heir(lock.tenant, lock.token)) ?? accountOf.principal(lock.owner, lock.currency)
    await accounts.get(lock.tenant, to)
    return amount > 0n ? [this.#move(lock, { kind: 'release', from: accountOf.lock(lock.id), to, amount })] : []
  }

  #commit(lock: PayLock, moves: readonly Movement[], change: Changed): Promise<void> {
    const { accounts } = this.#options
    return accounts.commit(
      moves.map((move) => accounts.prepare(lock.tenant, move)),
      [set({ ...lock, ...change })],
    )
  }

  #move(
    { currency, owner, agent }: PayLock,
    { amount, ...move }: Pick<Movement, 'kind' | 'from' | 'to' | 'description'> & { readonly amount: bigint },
  ): Movement {
    const { newId, now } = this.#options
    const prefix = move.kind === 'payment' ? 'pay' : 'move'
    return { id: `${prefix}_${newId()}`, ...move, amount: `${amount}`, currency, at: now(), principal: owner, agent }
  }

  #account({ tenant, id }: PayLock) {
    return this.#options.accounts.get(tenant, accountOf.lock(id))
  }

  #checkOpen({ state, expiresAt }: PayLock): void {
    if (state !== 'open') throw new UampError('conflict', `The lock was ${state}`, { details: { state } })
    if (expiresAt <= this.#options.now()) throw new UampError('conflict', 'The lock has expired', { details: { state: 'expired' } })
  }

  #alone<T>({ tenant, id }: PayLock, work: (current: PayLock) => Promise<T>): Promise<T> {
    const key = lockKey(tenant, id)
    const run = async (): Promise<T> => {
      const current = await this.get(tenant, id)
      if (!current) throw new UampError('not_found', `There is no lock "${id}"`)
      return work(current)
    }
    const done = (this.#busy.get(key) ?? Promise.resolve()).then(run, run)
    const quiet = done.catch(() => undefined)
    this.#busy.set(key, quiet)
    void quiet.then(() => this.#busy.get(key) === quiet && this.#busy.delete(key))
    return done
  }
}

function repeated({ charged, remaining, payment }: Part, amount: bigint): Settled {
  if (BigInt(charged) === amount) return { charged: amount, remaining: BigInt(remaining), payment }
  throw new UampError('conflict', 'This idempotency key was used for something else')
}

function set(lock: PayLock): Operation {
  const isOpen = lock.state === 'open'
  const index = isOpen ? [[EXPIRY, expirySort(lock.expiresAt)] as const] : []
  const options = { index, ...(!isOpen && { ttlMs: KEPT_MS }) }
  return { op: 'set', key: lockKey(lock.tenant, lock.id), value: lock as unknown as Json, options }
}

export function lockKey(tenant: string, id: string): string {
  return storeKey(tenant, 'money-lock', id)
}
