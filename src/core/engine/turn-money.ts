import { UampError } from '../../protocol/errors.ts'
import { parseAmount } from '../../protocol/money.ts'
import type { Payment } from '../../protocol/payment.ts'
import type { AskOptions } from '../ports/agent.ts'
import type { Charged, ChargeRequest, FreeQuota, HandedOn, HandOnRequest, Payments } from '../ports/payments.ts'
import { Bill, type Billed } from './bill.ts'
import type { Paid } from './paid-before.ts'
import type { Answer } from './questions.ts'
import type { PaymentQuestion } from './payment-words.ts'

interface MoneyOptions {
  /** Undefined: this server takes no payments. */
  readonly payments: Payments | undefined
  /** Whoever opened the session takes the money. */
  readonly isThere: boolean
  readonly agent: () => string
  readonly now: () => number
  readonly paid?: Paid | undefined
}

interface PaidTurn extends Billed {
  /** Resolves when its last response has ended. */
  readonly finished: Promise<void>
}

/** The money of one turn. Its bill is made for the first charge: most turns cost nothing. */
export class TurnMoney {
  readonly #turn: PaidTurn
  readonly #options: MoneyOptions
  #bill: Bill | undefined
  /** What was paid there, by charge. */
  readonly #there = new Map<string, { readonly amount: bigint; readonly currency: string }>()

  constructor(turn: PaidTurn, options: MoneyOptions) {
    this.#turn = turn
    this.#options = options
  }

  /** Undefined: nothing was charged. */
  get bill(): Bill | undefined {
    return this.#bill
  }

  /** What the running response costs so far. */
  due(currency: string): bigint {
    let due = this.#bill?.due(currency) ?? 0n
    for (const charge of this.#there.values()) if (charge.currency === currency) due += charge.amount
    return due
  }

  async ask(question: PaymentQuestion, options: AskOptions = {}): Promise<Extract<Answer, { type: 'payment.submit' }>> {
    const { payments, isThere } = this.#options
    if (isThere) return this.#turn.questions.ask('payment.required', question, options)
    if (payments && !options.relay) return this.#open(payments).ask(question, options)
    const { questions } = this.#turn
    // A token of this server is money here, and must not reach others.
    const isOwn = async (payment: Payment | undefined): Promise<boolean> =>
      payment !== undefined && (await payments?.isOwn(payment)) === true
    const anew = await isOwn(questions.payment)
    const answer = await questions.ask('payment.required', question, anew ? { ...options, anew } : options)
    if (!(await isOwn(answer.payment))) return answer
    throw new UampError('payment_required', 'This token pays agents of this server, and the money is for another one', {
      details: { reason: 'token_invalid' },
    })
  }

  /** The client goes on with this payment. */
  bring(payment: Payment): void {
    this.#turn.questions.payment = payment
    this.#bill?.payAnew()
  }

  charge(request: ChargeRequest): Promise<Charged> {
    if (this.#options.isThere) return watched(this.#chargeThere(request))
    return watched(this.#opened().then((bill) => bill.charge(request)))
  }

  handOn(request: HandOnRequest): Promise<HandedOn> {
    return watched(this.#opened().then((bill) => this.#lent(bill.handOn(request))))
  }

  /** What the agent does not give back is given back for it: nobody else would, and it counts as spent until then. */
  async #lent(handed: Promise<HandedOn>): Promise<HandedOn> {
    const given = await handed
    void this.#turn.finished.then(() => given.giveBack().catch(() => undefined))
    return given
  }

  /** Takes a call that is free for whoever asks. */
  async takeFree(free: FreeQuota): Promise<boolean> {
    const { payments, isThere } = this.#options
    return payments && !isThere ? this.#open(payments).takeFree(free) : false
  }

  /** The question is the charge, so it is of all that may be due. */
  async #chargeThere({ amount, currency = 'USD', reason, ...options }: ChargeRequest): Promise<Charged> {
    const requirements = { amount, currency, ...(reason !== undefined && { reason }) }
    const { key, timeoutMs } = options
    const given = { ...(key !== undefined && { key }), ...(timeoutMs !== undefined && { timeoutMs }) }
    await this.#turn.questions.ask('payment.required', { requirements }, given)
    this.#there.set(key ?? `#${this.#there.size}`, { amount: parseAmount(amount) ?? 0n, currency })
    return { settle: () => undefined }
  }

  async #opened(): Promise<Bill> {
    const { payments, isThere } = this.#options
    if (!payments || isThere) throw new UampError('not_supported', 'This server takes no payments')
    return this.#open(payments)
  }

  #open(payments: Payments): Bill {
    const { agent, now, paid } = this.#options
    return (this.#bill ??= new Bill(this.#turn, { payments, agent: agent(), now, paid }))
  }
}

/** A stopped agent may never await this promise: its rejection must not count as unhandled. */
export function watched<T>(answer: Promise<T>): Promise<T> {
  answer.catch(() => undefined)
  return answer
}
