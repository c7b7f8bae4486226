import type { Slot } from '../protocol/json.ts'
import { formatAmount, parseAmount } from '../protocol/money.ts'
import type { Payment, PaymentRequirements } from '../protocol/payment.ts'
import { fieldsOf, isRecord, recordsIn, uampIn } from '../protocol/records.ts'
import type { Declined, Invoice, PayContext, Wallet } from '../protocol/wallet.ts'

/** Payments of one answer. An agent that asks for more of them gets none. */
const MOST = 64

export interface PurseOptions extends Pick<Invoice, 'call' | 'agent' | 'url'> {
  readonly wallet: Wallet
  readonly approve?: PayContext['approve']
}

export interface Demand {
  readonly id?: string | undefined
  readonly requirements: PaymentRequirements
  readonly extra?: Slot | undefined
}

interface Given {
  readonly invoice: Invoice
  readonly payment: Payment
}

/** What an agent says that it took. */
export interface Taken {
  readonly amount: string
  readonly currency: string
}

/** What a wallet pays for one answer. */
export class Purse {
  readonly #options: PurseOptions
  #given: Given[] = []
  #count = 0
  #over = false

  constructor(options: PurseOptions) {
    this.#options = options
  }

  /** What was paid so far. */
  get given(): readonly Given[] {
    return this.#given
  }

  async pay({ id, requirements, extra }: Demand, signal: AbortSignal): Promise<Payment | Declined> {
    const { wallet, approve, ...about } = this.#options
    const number = ++this.#count
    if (number > MOST) return { declined: `It has asked for money ${MOST} times in one answer` }
    // It took nothing of the last payment, or says so: the wallet decides whether to believe that.
    if (extra?.['error'] !== undefined) await this.#tell(this.#given.splice(-1), '0')
    const invoice = { ...about, id: id ?? `${about.call}#${number}`, requirements, extra }
    const payment = await wallet.pay(invoice, { signal, approve }).catch((cause: unknown) => ({ declined: 'The wallet failed', cause }))
    if (!payment) return { declined: 'The wallet does not pay this' }
    if ('declined' in payment) return payment
    if (this.#over || signal.aborted) {
      await this.#tell([{ invoice, payment }], '0')
      return { declined: 'The answer is over' }
    }
    this.#given.push({ invoice, payment })
    return payment
  }

  /** Tells the wallet what became of its payments. `taken`: undefined if the agent did not say. */
  async end(taken: readonly Taken[] | undefined): Promise<void> {
    if (this.#over) return
    this.#over = true
    const left = new Map<string, bigint>()
    for (const { amount, currency } of taken ?? []) left.set(currency, (left.get(currency) ?? 0n) + (parseAmount(amount) ?? 0n))
    const given = this.#given
    this.#given = []
    for (const each of given) {
      const { amount, currency } = each.invoice.requirements
      const most = parseAmount(each.payment.amount ?? amount) ?? 0n
      const there = left.get(currency) ?? 0n
      // What is more than was asked for belongs to the last one.
      const part = there < most || each === given.findLast((other) => other.invoice.requirements.currency === currency) ? there : most
      left.set(currency, there - part)
      await this.#tell([each], taken && formatAmount(part))
    }
  }

  async #tell(given: readonly Given[], charged: string | undefined): Promise<void> {
    for (const { invoice, payment } of given) await this.#options.wallet.done?.(invoice, { payment, charged }).catch(() => undefined)
  }
}

/**
 * What the end of an answer says about payments: `payments` in `extensions.uamp`, and `handed_on`, which others were paid of the same
 * money. Undefined: it says nothing.
 */
export function takenIn(extensions: unknown): readonly (Taken & Slot)[] | undefined {
  const { payments, handed_on } = isRecord(extensions) ? uampIn(extensions) : {}
  if (!Array.isArray(payments) && !Array.isArray(handed_on)) return undefined
  return [...recordsIn(payments), ...recordsIn(handed_on)].flatMap((each) => {
    const { amount, currency } = each
    return typeof amount === 'string' && typeof currency === 'string' ? [{ ...each, amount, currency }] : []
  })
}

/** What the end of a response took: nothing, if it failed for another reason than money. Undefined: it does not say. */
export function takenBy(event: { readonly type: string }): readonly Taken[] | undefined {
  const { response, error } = event as { response?: unknown; error?: unknown }
  if (event.type === 'response.done') return takenIn(fieldsOf(response)['extensions'])
  return event.type === 'response.error' && fieldsOf(error)['code'] !== 'payment_required' ? [] : undefined
}
