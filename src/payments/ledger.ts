import { formatAmount, parseAmount } from '../protocol/money.ts'
import { timeOrderedIds, type Clocks } from '../core/basics/time.ts'
import type { Signer } from '../core/ports/keys.ts'
import type { Asked, Authorisation, FreeQuota, HandedOn, Offer, Payments, Refusal } from '../core/ports/payments.ts'
import type { Operation, Page, PageRequest, Store } from '../core/ports/store.ts'
import type { Logger } from '../core/ports/transport.ts'
import { UampError } from '../protocol/errors.ts'
import { DECLINED, type Payment } from '../protocol/payment.ts'
import { Accounts, accountOf, movesOf, movementKey, refundsOf, type Movement } from './accounts.ts'
import { checkLedger, type LedgerReport } from './check.ts'
import { PaymentCounts } from './counts.ts'
import { handOn } from './hand-on.ts'
import { AccountMethod, NOT_OURS, TokenMethod } from './ledger-method.ts'
import { Locks, type PayLock } from './locks.ts'
import type { PaymentMethod } from './method.ts'
import { Spending } from './spending.ts'
import { EXPIRY, expirySort, tokenDue, Tokens, type PayToken } from './tokens.ts'
import { Underway, type PaymentFacts } from './underway.ts'

const SWEEP_MS = 60_000
/** How long a check rests after each slice of its work, which takes about one millisecond. */
const REST_MS = 2
const PAGE = 100

export interface LedgerOptions extends Clocks {
  readonly store: Store
  readonly signer: Pick<Signer, 'key' | 'publicJwks'>
  readonly ownUrl: () => string | undefined
  readonly log: Logger
  /** The most that a principal may spend in a day, by currency. */
  readonly perDay?: Readonly<Record<string, bigint>> | undefined
  /** Makes the other ways to pay. They are tried in this order, and a token of this ledger before them that are `last`. */
  readonly methods?:
    ((accounts: Accounts) => { readonly first: readonly PaymentMethod[]; readonly last: readonly PaymentMethod[] }) | undefined
}

type Transfer = Pick<Movement, 'kind' | 'from' | 'to' | 'currency' | 'principal' | 'agent' | 'of' | 'description'> & {
  readonly amount: bigint
  readonly key?: string | undefined
}

interface RefundRequest {
  readonly amount?: bigint | undefined
  readonly key?: string | undefined
  readonly description?: string | undefined
}

interface Refunded {
  readonly refund: string
  readonly amount: bigint
}

type Found = Promise<Authorisation | Refusal | undefined> | Authorisation | Refusal | undefined

/** This server's own ledger: accounts, tokens and locks, on the store that has the sessions. */
export class Ledger implements Payments {
  readonly accounts: Accounts
  readonly tokens: Tokens
  readonly locks: Locks
  readonly counts = new PaymentCounts()
  readonly #options: LedgerOptions
  readonly #spending: Spending
  readonly #account: AccountMethod
  readonly #methods: readonly PaymentMethod[]
  readonly #newId: () => string
  readonly #underway: Underway
  #timer: ReturnType<typeof setInterval> | undefined
  #sweeping: Promise<void> | undefined
  /** The last payment could not be stored. */
  #isUnwritten = false
  /** What must not be done twice at once, by its name. */
  readonly #busy = new Map<string, Promise<unknown>>()

  constructor(options: LedgerOptions) {
    const { store, now, methods, perDay } = options
    const newId = timeOrderedIds(now)
    this.#options = options
    this.#newId = newId
    this.#underway = new Underway(now)
    const accounts = new Accounts(store)
    this.accounts = accounts
    this.tokens = new Tokens({ ...options, accounts, newId })
    this.locks = new Locks({ store, accounts, tokens: this.tokens, now, newId })
    this.#spending = new Spending({ store, now, newId, perDay })
    const parts = { accounts, tokens: this.tokens, spending: this.#spending, now, newId }
    this.#account = new AccountMethod(parts)
    const { first = [], last = [] } = methods?.(accounts) ?? {}
    this.#methods = [...first, new TokenMethod(parts), ...last]
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
  authorise(asked: Asked, payment: Payment | undefined): Found {
    const found = this.#isUnwritten ? this.#writable().then(() => this.#authorise(asked, payment)) : this.#authorise(asked, payment)
    const noted = <F extends Authorisation | Refusal | undefined>(each: F) => this.#underway.follow(asked, this.counts.noted(each))
    return found instanceof Promise ? found.then(noted) : noted(found)
  }

  #authorise(asked: Asked, payment: Payment | undefined): Found {
    if (!payment) return this.#account.authorise(asked)
    const short = tooLittle(asked, payment.amount)
    if (short) return short
    const methods = this.#methods.filter((each) => each.takes(payment))
    if (methods.length > 0) return this.#firstOf(methods, asked, payment)
    const schemes = this.offer(asked).schemes.map(({ scheme }) => scheme)
    return { refused: 'token_invalid', message: `Pay by ${[...new Set(schemes)].join(' or ')}: this scheme is not accepted` }
  }

  /** A token of any form may be one of a ledger elsewhere, if this one does not know it. */
  #firstOf(methods: readonly PaymentMethod[], asked: Asked, payment: Payment): Promise<Authorisation | Refusal> | Authorisation | Refusal {
    const [method, ...rest] = methods
    const found = method?.authorise(asked, payment) ?? NOT_OURS
    if (rest.length === 0) return found
    const or = (first: Authorisation | Refusal) => (first === NOT_OURS ? this.#firstOf(rest, asked, payment) : first)
    return found instanceof Promise ? found.then(or) : or(found)
  }

  handOn(asked: Asked, payment: Payment, agent: string): Promise<HandedOn | Refusal> {
    const { now } = this.#options
    const { accounts, tokens } = this
    return handOn(asked, payment, { agent, accounts, tokens, spending: this.#spending, now, write: (operations) => this.write(operations) })
  }

  async isOwn({ token, scheme }: Payment): Promise<boolean> {
    return scheme !== DECLINED.scheme && token !== undefined && (await this.tokens.isOurs(token))
  }

  async takeFree(asked: Asked, free: FreeQuota): Promise<Authorisation | undefined> {
    if (this.#isUnwritten) await this.#writable()
    return this.#spending.takeFree(asked, free)
  }

  async write(operations: readonly Operation[]): Promise<void> {
    try {
      await this.#options.store.batch(operations, { sync: true })
    } catch (thrown) {
      this.#isUnwritten = true
      throw thrown
    }
  }

  /** Rejects while nothing can be stored: an answer that nobody could be charged for in the end is not begun. */
  async #writable(): Promise<void> {
    await this.#options.store.probe?.()
    this.#isUnwritten = false
  }

  /** Gives an account money, or takes some of it out of the ledger. Made again with the same `key`, it moves nothing. */
  async transfer(tenant: string, { key, ...move }: Transfer): Promise<string> {
    if (key === undefined) return this.#transfer(tenant, move, `move_${this.#newId()}`)
    const id = `${move.kind}_${key}`
    return this.#alone(movementKey(tenant, id), async () => {
      const before = await this.#movement(tenant, id)
      return before ? repeated(before, move) : this.#transfer(tenant, move, id)
    })
  }

  async #transfer(tenant: string, { from, to, amount, ...move }: Transfer, id: string): Promise<string> {
    const [source] = await Promise.all([this.accounts.get(tenant, from), this.accounts.get(tenant, to)])
    if (!from.startsWith('outside:') && source.available < amount) {
      const [balance_required, balance_current] = [formatAmount(amount), formatAmount(source.available)]
      throw new UampError('payment_required', `The account holds ${balance_current} ${move.currency}, and ${balance_required} are needed`, {
        details: { code: 'insufficient_balance', balance_required, balance_current, currency: move.currency },
      })
    }
    const moved = { ...move, id, from, to, amount: `${amount}`, at: this.#options.now() }
    await this.accounts.commit([this.accounts.prepare(tenant, moved)])
    return id
  }

  async #movement(tenant: string, id: string): Promise<Movement | undefined> {
    return (await this.#options.store.get(movementKey(tenant, id)))?.value as unknown as Movement | undefined
  }

  /** Runs what has one name one after the other. */
  #alone<T>(name: string, run: () => Promise<T>): Promise<T> {
    const done = (this.#busy.get(name) ?? Promise.resolve()).then(run, run)
    const quiet = done.catch(() => undefined)
    this.#busy.set(name, quiet)
    void quiet.then(() => this.#busy.get(name) === quiet && this.#busy.delete(name))
    return done
  }

  /** A payment that was made. */
  async payment(tenant: string, id: string): Promise<Movement | undefined> {
    const found = await this.#movement(tenant, id)
    return found?.kind === 'payment' ? found : undefined
  }

  /** A payment, and how it stands: while its turn runs, while somebody elsewhere settles it, and afterwards. */
  async find(tenant: string, id: string): Promise<PaymentFacts | undefined> {
    const running = this.#underway.find(tenant, id)
    if (running) return running
    const paid = await this.payment(tenant, id)
    if (paid) return { ...paid, state: 'settled', amount: BigInt(paid.amount) }
    for (const method of this.#methods) {
      const found = await method.find?.(tenant, id)
      if (found) return found
    }
    return undefined
  }

  /**
   * Gives back a payment, or a part of it. Without an amount, all that is left of it. If the token that paid has ended, the money goes to
   * where the rest of it went. The same key again gives the same answer, and moves nothing.
   */
  refund(tenant: string, payment: Movement, { amount, key, description }: RefundRequest = {}): Promise<Refunded> {
    return this.#alone(movementKey(tenant, payment.id), async () => {
      const refund = key === undefined ? `move_${this.#newId()}` : `refund_${payment.id}_${key}`
      const before = key === undefined ? undefined : await this.#movement(tenant, refund)
      if (before) {
        if (amount !== undefined && `${amount}` !== before.amount) throw otherKey()
        return { refund, amount: BigInt(before.amount) }
      }
      const left = BigInt(payment.amount) - (await this.refunded(tenant, payment.id))
      const back = amount ?? left
      if (back > left || back <= 0n) {
        throw new UampError('conflict', `Of this payment, ${formatAmount(left)} ${payment.currency} can be given back`, {
          details: { refundable: formatAmount(left), currency: payment.currency },
        })
      }
      const { id: of, to: from, currency, principal, agent } = payment
      const to = await this.#payerOf(tenant, payment)
      await this.#transfer(tenant, { kind: 'refund', from, to, amount: back, currency, principal, agent, of, description }, refund)
      return { refund, amount: back }
    })
  }

  /** What was given back of a payment so far. */
  async refunded(tenant: string, payment: string): Promise<bigint> {
    let sum = 0n
    for (let after: string | undefined; ;) {
      const page = await this.#options.store.list(refundsOf(tenant, payment), { limit: PAGE, ...(after !== undefined && { after }) })
      for (const { value } of page.items) sum += BigInt((value as unknown as Movement).amount)
      if ((after = page.next) === undefined) return sum
    }
  }

  /** Where the money of a payment came from. A lock or a token may have ended since. */
  async #payerOf(tenant: string, { from, currency, principal = '' }: Movement): Promise<string> {
    const [kind, id] = [from.slice(0, from.indexOf(':')), from.slice(from.indexOf(':') + 1)]
    if (kind !== 'lock' && kind !== 'token') return from
    const token = kind === 'token' ? id : (await this.locks.get(tenant, id))?.token
    const heir = token === undefined ? undefined : await this.tokens.heir(tenant, token)
    if (heir !== undefined) return heir
    // A lock names the owner of its token, but a turn whoever asked.
    if (kind === 'lock') return accountOf.principal(principal, currency)
    throw new UampError('conflict', 'The token that paid is forgotten, so nobody knows any more whom to give it back to')
  }

  /** The movements of an account, the newest first. */
  async statement(tenant: string, account: string, page: PageRequest): Promise<Page<Movement>> {
    const { items, next } = await this.#options.store.list(movesOf(tenant, account), { ...page, descending: true })
    return { items: items.map(({ value }) => value as unknown as Movement), next }
  }

  /** Works for less than half of the time, so that callers are answered meanwhile. */
  async check(): Promise<LedgerReport> {
    const rest = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, REST_MS))
    const report = await checkLedger(this.#options.store, this.accounts, rest)
    this.counts.problems = report.problems.length
    return report
  }

  /** How many payments wait to be settled elsewhere. */
  async unsettled(): Promise<number> {
    let sum = 0
    for (const { unsettled } of this.#methods) sum += (await unsettled?.()) ?? 0
    return sum
  }

  /** Checks the sums, and ends what is over from time to time until `signal` aborts. */
  start(signal: AbortSignal): void {
    // A server may be closed before it has started: nobody would stop the timer.
    if (signal.aborted) return
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
    for (const method of this.#methods) method.start?.(signal)
  }

  /** Gives back the money of tokens and locks whose time is over. */
  sweep(): Promise<void> {
    return (this.#sweeping ??= this.#sweep().finally(() => (this.#sweeping = undefined)))
  }

  async #sweep(): Promise<void> {
    const until = expirySort(this.#options.now())
    const failures: unknown[] = []
    for (let after: string | undefined; ;) {
      const page = await this.#options.store.list(EXPIRY, { limit: PAGE, ...(after !== undefined && { after }) })
      let isOver = (after = page.next) === undefined
      for (const { value } of page.items) {
        const due = value as unknown as PayToken | PayLock
        isOver = expirySort('parts' in due ? due.expiresAt : tokenDue(due)) > until
        if (isOver) break
        // One that cannot be ended keeps none of the others from it.
        await ('parts' in due ? this.locks.release(due) : this.tokens.end(due)).catch((error: unknown) => failures.push(error))
      }
      if (isOver || after === undefined) break
    }
    if (failures.length > 0) throw failures[0]
  }
}

/** The answer to a transfer that is made again. */
function repeated({ id, from, to, amount }: Movement, again: Transfer): string {
  if (from === again.from && to === again.to && amount === `${again.amount}`) return id
  throw otherKey()
}

function otherKey(): UampError {
  return new UampError('conflict', 'This idempotency key was used for something else')
}

/** A payment may say how much it is at most, however it pays; one that says too little is not what was asked for. */
function tooLittle({ amount, currency }: Asked, offered: string | undefined): Refusal | undefined {
  const given = offered === undefined ? amount : parseAmount(offered)
  if (given !== undefined && given >= amount) return undefined
  const wanted = `${formatAmount(amount)} ${currency}`
  if (given === undefined) return { refused: 'payment_failed', message: `The amount must be a text such as "0.05"; ${wanted} are needed` }
  return { refused: 'insufficient_balance', message: `${wanted} are needed, and the payment offers ${formatAmount(given)}` }
}
