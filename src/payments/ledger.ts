import { timeOrderedIds, type Clocks } from '../core/basics/time.ts'
import type { Signer } from '../core/ports/keys.ts'
import type { Asked, Authorisation, FreeQuota, Offer, Payments, Refusal } from '../core/ports/payments.ts'
import type { Operation, Page, PageRequest, Store } from '../core/ports/store.ts'
import type { Logger } from '../core/ports/transport.ts'
import { UampError } from '../protocol/errors.ts'
import { DECLINED, type Payment } from '../protocol/payment.ts'
import { Accounts, accountOf, movesOf, movementKey, type Movement } from './accounts.ts'
import { checkLedger, type LedgerReport } from './check.ts'
import { AccountMethod, TokenMethod } from './ledger-method.ts'
import { Locks, type PayLock } from './locks.ts'
import type { PaymentMethod } from './method.ts'
import { Spending } from './spending.ts'
import { EXPIRY, expirySort, Tokens, type PayToken } from './tokens.ts'

const SWEEP_MS = 60_000
const PAGE = 100

export interface LedgerOptions extends Clocks {
  readonly store: Store
  readonly signer: Pick<Signer, 'key' | 'publicJwks'>
  readonly ownUrl: () => string | undefined
  readonly log: Logger
  /** The most that a principal may spend in a day, by currency. */
  readonly perDay?: Readonly<Record<string, bigint>> | undefined
  /** Other ways to pay. */
  readonly methods?: readonly PaymentMethod[] | undefined
}

/** This server's own ledger: accounts, tokens and locks, on the store that has the sessions. */
export class Ledger implements Payments {
  readonly accounts: Accounts
  readonly tokens: Tokens
  readonly locks: Locks
  readonly #options: LedgerOptions
  readonly #spending: Spending
  readonly #account: AccountMethod
  readonly #methods: readonly PaymentMethod[]
  readonly #newId: () => string
  #timer: ReturnType<typeof setInterval> | undefined
  #sweeping: Promise<void> | undefined
  #refunding: Promise<unknown> = Promise.resolve()

  constructor(options: LedgerOptions) {
    const { store, now, methods = [], perDay } = options
    const newId = timeOrderedIds(now)
    this.#options = options
    this.#newId = newId
    const accounts = new Accounts(store)
    this.accounts = accounts
    this.tokens = new Tokens({ ...options, accounts, newId })
    this.locks = new Locks({ store, accounts, now, newId, home: (tenant, token) => this.tokens.home(tenant, token) })
    this.#spending = new Spending({ store, now, newId, perDay })
    const parts = { accounts, tokens: this.tokens, spending: this.#spending, now, newId }
    this.#account = new AccountMethod(parts)
    // A token may be of any form, so it is looked for last.
    this.#methods = [...methods, new TokenMethod(parts)]
  }

  offer(asked: Asked): Offer {
    const offers = this.#methods.map((method) => method.offer(asked))
    const extra = Object.assign({}, ...offers.map((offer) => offer.extra ?? {})) as Record<string, unknown>
    // Tokens first: everybody can use them.
    const schemes = offers.flatMap((offer) => offer.schemes).reverse()
    return { schemes, ...(Object.keys(extra).length > 0 && { extra }) }
  }

  authorise(asked: Asked, payment: Payment): Promise<Authorisation | Refusal> | Authorisation | Refusal
  authorise(asked: Asked, payment: undefined): Promise<Authorisation | Refusal | undefined>
  authorise(
    asked: Asked,
    payment: Payment | undefined,
  ): Promise<Authorisation | Refusal | undefined> | Authorisation | Refusal | undefined {
    if (!payment) return this.#account.authorise(asked)
    const method = this.#methods.find((each) => each.takes(payment))
    if (method) return method.authorise(asked, payment)
    const schemes = this.offer(asked).schemes.map(({ scheme }) => scheme)
    return { refused: 'token_invalid', message: `Pay by ${[...new Set(schemes)].join(' or ')}: this scheme is not accepted` }
  }

  isOwn({ token, scheme }: Payment): boolean {
    if (scheme === DECLINED.scheme || token === undefined) return false
    return this.tokens.isOurs(token)
  }

  takeFree(asked: Asked, free: FreeQuota): Promise<Authorisation | undefined> {
    return this.#spending.takeFree(asked, free)
  }

  write(operations: readonly Operation[]): Promise<void> {
    return this.#options.store.batch(operations, { sync: true })
  }

  /** Gives an account money, or takes some of it out of the ledger. */
  async transfer(
    tenant: string,
    {
      from,
      to,
      ...move
    }: Pick<Movement, 'kind' | 'from' | 'to' | 'currency' | 'principal' | 'agent' | 'of' | 'description'> & { amount: bigint },
  ): Promise<string> {
    const [source] = await Promise.all([this.accounts.get(tenant, from), this.accounts.get(tenant, to)])
    if (!from.startsWith('outside:') && source.available < move.amount) {
      throw new UampError('payment_required', 'There is not enough money in this account', { details: { code: 'insufficient_balance' } })
    }
    const id = `move_${this.#newId()}`
    const moved = { ...move, id, from, to, amount: `${move.amount}`, at: this.#options.now() }
    await this.accounts.commit([this.accounts.prepare(tenant, moved)])
    return id
  }

  /** Gives back a payment, or a part of it, to the account that it came from. */
  refund(tenant: string, payment: string, amount: bigint | undefined): Promise<bigint> {
    // One after the other: two at once would both give back what is left.
    const done = this.#refunding.then(() => this.#refund(tenant, payment, amount))
    this.#refunding = done.catch(() => undefined)
    return done
  }

  async #refund(tenant: string, payment: string, amount: bigint | undefined): Promise<bigint> {
    const found = (await this.#options.store.get(movementKey(tenant, payment)))?.value as unknown as Movement | undefined
    if (found?.kind !== 'payment') throw new UampError('not_found', `There is no payment "${payment}"`)
    const given = await this.#refunded(tenant, found)
    const most = BigInt(found.amount) - given
    const back = amount ?? most
    if (back > most || back <= 0n) throw new UampError('conflict', 'The payment is smaller than this, or was given back already')
    const { from, to, currency, principal, agent } = found
    await this.transfer(tenant, { kind: 'refund', from: to, to: from, amount: back, currency, principal, agent, of: payment })
    return back
  }

  /** What was given back of a payment so far. */
  async #refunded(tenant: string, { id, from }: Movement): Promise<bigint> {
    let sum = 0n
    for (let after: string | undefined; ;) {
      const page = await this.statement(tenant, from, { limit: PAGE, ...(after !== undefined && { after }) })
      for (const move of page.items) if (move.kind === 'refund' && move.of === id) sum += BigInt(move.amount)
      if ((after = page.next) === undefined) return sum
    }
  }

  /** The movements of an account, the newest first. */
  async statement(tenant: string, account: string, page: PageRequest): Promise<Page<Movement>> {
    const { items, next } = await this.#options.store.list(movesOf(tenant, account), { ...page, descending: true })
    return { items: items.map(({ value }) => value as unknown as Movement), next }
  }

  check(): Promise<LedgerReport> {
    return checkLedger(this.#options.store, this.accounts)
  }

  /** Checks the sums, and ends what is over from time to time until `signal` aborts. */
  start(signal: AbortSignal): void {
    const { log } = this.#options
    const failed = (error: unknown): void => {
      if (!signal.aborted) log('error', 'The ledger could not be tidied up', { error })
    }
    this.#timer = setInterval(() => void this.sweep().catch(failed), SWEEP_MS)
    ;(this.#timer as { unref?: () => void }).unref?.()
    signal.addEventListener('abort', () => clearInterval(this.#timer), { once: true })
    const checked = async (): Promise<void> => {
      const { problems } = await this.check()
      if (problems.length > 0) log('error', 'The ledger does not add up: see `uamp ledger check`', { problems: problems.slice(0, 10) })
    }
    void this.sweep().then(checked).catch(failed)
  }

  /** Gives back the money of tokens and locks whose time is over. */
  sweep(): Promise<void> {
    return (this.#sweeping ??= this.#sweep().finally(() => (this.#sweeping = undefined)))
  }

  async #sweep(): Promise<void> {
    const until = expirySort(this.#options.now())
    for (let after: string | undefined; ;) {
      const page = await this.#options.store.list(EXPIRY, { limit: PAGE, ...(after !== undefined && { after }) })
      for (const { value } of page.items) {
        const due = value as unknown as PayToken | PayLock
        if (expirySort('parts' in due ? due.expiresAt : (due.endedAt ?? due.expiresAt)) > until) return
        await ('parts' in due ? this.locks.release(due) : this.tokens.end(due))
      }
      if ((after = page.next) === undefined) return
    }
  }

  /** The account that pays for tokens of a principal. */
  accountOf(principal: string, currency: string): string {
    return accountOf.principal(principal, currency)
  }
}
