import { formatAmount, parseAmount } from '../../protocol/money.ts'
import type { Declined, Invoice, PayContext, Wallet } from '../../protocol/wallet.ts'

const DAY_MS = 86_400_000
/** Answers that are remembered. While so many are being paid for at once, another one is declined. */
const CALLS = 10_000

export interface BudgetOptions {
  /** The most that one answer may cost: `0.05`. */
  readonly perCall?: string
  /** The most of a day, which begins at midnight UTC. It is counted in memory. */
  readonly perDay?: string
  /** What everything is counted in. Another currency is declined. Default: `USD`. */
  readonly currency?: string
  /** An answer that costs more than `amount` is paid only if `approve` says so. Default: whoever the agent or program would ask. */
  readonly above?: { readonly amount: string; readonly approve?: PayContext['approve'] }
  /** Milliseconds since 1970. */
  readonly now?: () => number
}

/** A wallet that pays no more than this. What was not charged may be spent again; a signed proof counts in full, as it can still be used. */
export function budget(wallet: Wallet, options: BudgetOptions): Wallet {
  return new Budget(wallet, options)
}

interface Reserved {
  readonly call: string
  readonly amount: bigint
  readonly day: number
}

class Budget implements Wallet {
  readonly #wallet: Wallet
  readonly #currency: string
  readonly #perCall: bigint | undefined
  readonly #perDay: bigint | undefined
  readonly #limit: bigint | undefined
  readonly #options: BudgetOptions
  readonly #now: () => number
  readonly #calls = new Map<string, { amount: bigint; payments: number }>()
  readonly #reserved = new Map<string, Reserved>()
  #day = 0
  #spent = 0n

  constructor(wallet: Wallet, options: BudgetOptions) {
    const { perCall, perDay, currency = 'USD', above, now = Date.now, ...unknown } = options
    // A bound that is misspelt would be none.
    for (const name of Object.keys(unknown))
      throw new TypeError(`A budget has no option "${name}": there are perCall, perDay, currency, above`)
    this.#wallet = wallet
    this.#options = options
    this.#currency = currency
    this.#perCall = amountOf(perCall, 'perCall')
    this.#perDay = amountOf(perDay, 'perDay')
    this.#limit = amountOf(above?.amount, 'above.amount')
    this.#now = now
  }

  async pay(invoice: Invoice, context: PayContext): Promise<Awaited<ReturnType<Wallet['pay']>>> {
    const refused = this.#reserve(invoice)
    if (refused) return refused
    let payment
    try {
      payment = (await this.#refusal(invoice, context)) ?? (await this.#wallet.pay(invoice, context))
    } finally {
      if (!payment || 'declined' in payment) this.#release(invoice.id, 0n)
    }
    return payment
  }

  async done(...[invoice, outcome]: Parameters<NonNullable<Wallet['done']>>): Promise<string | undefined> {
    const known = await this.#wallet.done?.(invoice, outcome).catch(() => undefined)
    const isProof = outcome.payment.proof !== undefined
    const charged = known ?? (isProof ? undefined : outcome.charged)
    this.#release(invoice.id, charged === undefined ? undefined : parseAmount(charged))
    return known
  }

  /** Counts the amount before anything is awaited, so that no two payments find the same money. */
  #reserve({ id, call, requirements: { amount: text, currency } }: Invoice): Declined | undefined {
    const amount = parseAmount(text)
    if (amount === undefined) return { declined: 'What it wants is no amount' }
    if (currency !== this.#currency) return exceeded(`It wants ${currency}, and the budget is in ${this.#currency}`)
    const today = Math.floor(this.#now() / DAY_MS)
    // A clock that is set back does not make a new day.
    if (today > this.#day) [this.#day, this.#spent] = [today, 0n]
    const known = this.#calls.get(call)
    if (this.#reserved.has(id)) return { declined: 'It was paid already' }
    if (!known && this.#calls.size >= CALLS && !this.#forget()) return { declined: `The wallet pays for ${CALLS} answers already` }
    const sum = (known?.amount ?? 0n) + amount
    if (this.#perCall !== undefined && sum > this.#perCall) return this.#over(sum, this.#perCall, 'an answer')
    if (this.#perDay !== undefined && this.#spent + amount > this.#perDay) return this.#over(this.#spent + amount, this.#perDay, 'a day')
    this.#spent += amount
    this.#calls.set(call, { amount: sum, payments: (known?.payments ?? 0) + 1 })
    this.#reserved.set(id, { call, amount, day: this.#day })
    return undefined
  }

  async #refusal({ call, agent, requirements }: Invoice, { signal, approve: usual }: PayContext): Promise<Declined | undefined> {
    const cost = this.#calls.get(call)?.amount ?? 0n
    if (this.#limit === undefined || cost <= this.#limit) return undefined
    const approve = this.#options.above?.approve ?? usual
    if (!approve) return exceeded(`More than ${formatAmount(this.#limit)} ${this.#currency} needs approval, and nobody can be asked`)
    const { amount, currency, reason } = requirements
    const whom = agent === undefined ? '' : ` to ${agent}`
    const isApproved = await approve(`Pay ${amount} ${currency}${whom}?${reason === undefined ? '' : ` ${reason}`}`)
    return isApproved === true && !signal.aborted ? undefined : { declined: 'The payment was not approved' }
  }

  /** `charged`: undefined counts in full. */
  #release(id: string, charged: bigint | undefined): void {
    const reserved = this.#reserved.get(id)
    if (!reserved) return
    this.#reserved.delete(id)
    const { amount, day, call } = reserved
    const spent = charged === undefined || charged > amount ? amount : charged
    const back = amount - spent
    if (day === this.#day) this.#spent -= back
    const known = this.#calls.get(call)
    if (!known) return
    known.amount -= back
    if (--known.payments > 0) return
    // The agent may say that it took nothing, and ask again: what counts of an answer is kept for its next question.
    this.#calls.delete(call)
    if (known.amount > 0n) this.#calls.set(call, known)
  }

  /** Makes room for another answer: forgets the one that nothing was paid for the longest. False: all of them are being paid for. */
  #forget(): boolean {
    for (const [call, { payments }] of this.#calls) if (payments === 0) return this.#calls.delete(call)
    return false
  }

  #over(wanted: bigint, most: bigint, what: string): Declined {
    return exceeded(`${formatAmount(wanted)} ${this.#currency} is more than the budget for ${what}, ${formatAmount(most)}`)
  }
}

function exceeded(declined: string): Declined {
  return { declined, code: 'budget_exceeded' }
}

function amountOf(text: string | undefined, name: string): bigint | undefined {
  if (text === undefined) return undefined
  const amount = parseAmount(text)
  if (amount === undefined) throw new TypeError(`${name} is a text such as "0.05", but not ${JSON.stringify(text)}`)
  return amount
}
