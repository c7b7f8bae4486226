import { formatAmount } from '../protocol/money.ts'
import type { Asked, Authorisation, Refusal, Settlement } from '../core/ports/payments.ts'
import type { Payment } from '../protocol/payment.ts'
import { accountOf, type Account, type Accounts } from './accounts.ts'
import type { PaymentMethod } from './method.ts'
import type { Spending } from './spending.ts'
import type { PayToken, Tokens } from './tokens.ts'

export interface LedgerMethodOptions {
  readonly accounts: Accounts
  readonly tokens: Tokens
  readonly spending: Spending
  readonly now: () => number
  readonly newId: () => string
}

/** Names in a refusal, and the letters of each. */
const NAMES = 5
const LETTERS = 64

export const NOT_OURS = {
  refused: 'token_invalid',
  message: 'The payment token is not one of this server: send the text of a token, and not its id',
} as const satisfies Refusal

/** Pays with a token of this server's ledger. */
export class TokenMethod implements PaymentMethod {
  readonly #options: LedgerMethodOptions

  constructor(options: LedgerMethodOptions) {
    this.#options = options
  }

  offer(): { schemes: [{ scheme: string; network: string }] } {
    return { schemes: [{ scheme: 'token', network: 'uamp' }] }
  }

  takes({ scheme, token }: Payment): boolean {
    return scheme === 'token' || token !== undefined
  }

  authorise(asked: Asked, { token: text = '' }: Payment): Promise<Authorisation | Refusal> | Authorisation | Refusal {
    const { tokens, accounts, spending } = this.#options
    const { tenant } = asked.principal
    const seen = tokens.seen(tenant, text)
    const seller = accountOf.agent(asked.agent, asked.currency)
    if (seen && accounts.known(tenant, seller) && spending.isLoaded(asked)) return this.#lock(asked, seen)
    return this.#look(asked, text)
  }

  async #look(asked: Asked, text: string): Promise<Authorisation | Refusal> {
    const { tokens, accounts, spending } = this.#options
    const { tenant } = asked.principal
    const found = await tokens.verify(tenant, text)
    if (!found) return NOT_OURS
    await spending.load(asked)
    await accounts.get(tenant, accountOf.agent(asked.agent, asked.currency))
    return this.#lock(asked, found)
  }

  #lock(asked: Asked, { token, account }: { readonly token: PayToken; readonly account: Account }): Authorisation | Refusal {
    const refusal = refusalOf(asked, token, this.#options.now())
    return refusal ?? lockOf(asked, account, { parts: this.#options, scheme: 'token', expiresAt: token.expiresAt })
  }
}

/** Why a token does not pay for this, whatever it holds. */
export function refusalOf({ agent, currency }: Asked, token: PayToken, now: number): Refusal | undefined {
  if (token.expiresAt <= now) return { refused: 'token_expired', message: 'The payment token has expired' }
  if (token.endedAt !== undefined) return { refused: 'token_invalid', message: 'The payment token was revoked' }
  if (!token.agents.includes('*') && !token.agents.includes(agent)) {
    return { refused: 'token_invalid', message: `The payment token pays ${namesOf(token.agents)}, and not "${agent}"` }
  }
  if (token.currency === currency) return undefined
  return { refused: 'token_invalid', message: `The payment token holds ${token.currency}, and the price is in ${currency}` }
}

/** For people: the agents that a token pays. A long list is cut off. */
export function namesOf(agents: readonly string[]): string {
  const shown = agents.slice(0, NAMES).map((agent) => `"${agent.slice(0, LETTERS)}"`)
  return `${shown.join(', ')}${agents.length > NAMES ? ' and others' : ''}`
}

/** Pays from the account of whoever asks. */
export class AccountMethod {
  readonly #options: LedgerMethodOptions

  constructor(options: LedgerMethodOptions) {
    this.#options = options
  }

  /** Undefined: they have no account. */
  async authorise(asked: Asked): Promise<Authorisation | Refusal | undefined> {
    const { principal, agent, currency } = asked
    if (principal.id === 'anonymous') return undefined
    const { accounts, spending } = this.#options
    const account = await accounts.get(principal.tenant, accountOf.principal(principal.id, currency))
    if (!account.isUsed) return undefined
    await spending.load(asked)
    await accounts.get(principal.tenant, accountOf.agent(agent, currency))
    return lockOf(asked, account, { parts: this.#options, scheme: 'account', expiresAt: undefined })
  }
}

interface LockOptions {
  readonly parts: LedgerMethodOptions
  readonly scheme: string
  readonly expiresAt: number | undefined
}

function lockOf(asked: Asked, account: Account, options: LockOptions): Authorisation | Refusal {
  const { amount, currency } = asked
  const over = options.parts.spending.refusal(asked)
  if (over) return over
  if (account.lock(amount)) {
    options.parts.spending.lock(asked, amount)
    return new Lock(asked, account, options)
  }
  const [wanted, there] = [formatAmount(amount), formatAmount(account.available)]
  const purse = options.scheme === 'account' ? 'Your account' : 'The payment token'
  const message = `${purse} holds ${there} ${currency}, and ${wanted} are needed`
  return { refused: 'insufficient_balance', message, balance: account.available }
}

/** Money of one account that is set aside for a turn. A crash gives it back: nothing is taken before it is settled. */
class Lock implements Authorisation {
  readonly id: string
  readonly scheme: string
  readonly currency: string
  readonly expiresAt: number | undefined
  readonly #asked: Asked
  readonly #account: Account
  /** Kept in memory by this: a payment ends there without waiting. */
  readonly #seller: Account
  readonly #parts: LedgerMethodOptions
  #locked: bigint
  #isSettled = false

  constructor(asked: Asked, account: Account, options: LockOptions) {
    this.id = `pay_${options.parts.newId()}`
    this.scheme = options.scheme
    this.currency = asked.currency
    this.expiresAt = options.expiresAt
    this.#asked = asked
    this.#account = account
    this.#seller = options.parts.accounts.knownOrThrow(asked.principal.tenant, accountOf.agent(asked.agent, asked.currency))
    this.#parts = options.parts
    this.#locked = asked.amount
  }

  get locked(): bigint {
    return this.#locked
  }

  get balance(): bigint {
    return this.#account.available
  }

  extend(amount: bigint): boolean | Promise<boolean> {
    const { spending } = this.#parts
    return spending.isLoaded(this.#asked) ? this.#extend(amount) : spending.load(this.#asked).then(() => this.#extend(amount))
  }

  #extend(amount: bigint): boolean {
    const { spending, now } = this.#parts
    if (this.#isSettled) return false
    if (this.expiresAt !== undefined && this.expiresAt <= now()) return false
    if (spending.refusal({ ...this.#asked, amount }) || !this.#account.lock(amount)) return false
    spending.lock(this.#asked, amount)
    this.#locked += amount
    return true
  }

  settle(amount: bigint): Settlement {
    const { accounts, spending, now } = this.#parts
    const { principal, agent, session, response, question, currency } = this.#asked
    this.#isSettled = true
    this.#account.unlock(this.#locked)
    const spent = spending.settle(this.#asked, { locked: this.#locked, amount })
    this.#locked = 0n
    if (amount === 0n) return spent
    const moved = accounts.prepare(principal.tenant, {
      id: this.id,
      kind: 'payment',
      from: this.#account.id,
      to: this.#seller.id,
      amount: `${amount}`,
      currency,
      at: now(),
      principal: principal.id,
      agent,
      session,
      response,
      question,
    })
    return {
      operations: [...moved.operations, ...spent.operations],
      done: (failure) => {
        moved.done(failure)
        spent.done(failure)
      },
    }
  }
}
