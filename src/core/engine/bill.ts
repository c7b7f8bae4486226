import { UampError } from '../../protocol/errors.ts'
import type { Draft, EventOf } from '../../protocol/events.ts'
import { isRecord, type Slot } from '../../protocol/json.ts'
import type { Payment } from '../../protocol/payment.ts'
import { formatAmount, isCurrency, parseAmount } from '../basics/money.ts'
import type { Principal } from '../ports/access.ts'
import type { AskOptions, QuestionDraft } from '../ports/agent.ts'
import type { Asked, Authorisation, ChargeRequest, Charged, FreeQuota, Payments, Refusal, Settlement } from '../ports/payments.ts'
import type { QuestionBook } from './questions.ts'
import type { End } from './run.ts'

/** How often a question for money is put again after a payment that was not taken. */
const TRIES = 5
const TIMEOUT_MS = 300_000
const USD = 'USD'

type Question = QuestionDraft<'payment.required'>
type Submitted = EventOf<'payment.submit'>

/** The part of a turn that its bill uses. */
export interface Billed {
  readonly id: string
  readonly responseId: string
  readonly sessionId: string
  readonly principal: Principal
  readonly questions: QuestionBook
  /** True once the turn has said something. */
  readonly hasSpoken: boolean
  emit(draft: Draft): void
}

/** What a turn costs, by the keys of its charges: written down when it waits, so that a turn that is run again does not pay twice. */
export type Paid = Readonly<Record<string, string>>

interface Charge {
  readonly currency: string
  due: bigint
}

interface BillOptions {
  readonly payments: Payments
  readonly agent: string
  readonly now: () => number
  /** What earlier responses of the turn have paid. */
  readonly paid?: Paid | undefined
}

/** What one turn costs, and the money that is locked for it. */
export class Bill {
  readonly #turn: Billed
  readonly #options: BillOptions
  readonly #charges = new Map<string, Charge>()
  #locks: Authorisation[] = []
  /** Free calls: they count if the response is due, and cost nothing. */
  #free: Authorisation[] = []
  /** Payments that were accepted in this turn: their money may be used again when a response has settled its part. */
  readonly #accepted: Payment[] = []
  #settledKeys: Record<string, string>
  #asked = 0
  #charged = 0
  #failed = false
  /** The turn has ended: money that is locked from now on is given back. */
  #isOver = false
  /** Charges are made one after the other: two at once would both take the same money for theirs. */
  #last: Promise<unknown> = Promise.resolve()

  constructor(turn: Billed, options: BillOptions) {
    this.#turn = turn
    this.#options = options
    this.#settledKeys = { ...options.paid }
  }

  /** Charges an amount: takes it from what was paid before, or asks for it. Rejects with `payment_required` if nobody pays. */
  async charge({ amount: text, currency = USD, reason, key, timeoutMs }: ChargeRequest): Promise<Charged> {
    const amount = checked(text, currency)
    const name = key ?? `charge#${++this.#charged}`
    const requirements = { amount: text, currency, ...(reason !== undefined && { reason }) }
    const charge = await this.#alone(async () => {
      await this.#cover(name, amount, { question: { requirements }, timeoutMs })
      return this.#add(name, amount, currency)
    })
    return {
      settle: (actual) => {
        const cost = checked(actual, currency)
        charge.due = cost < amount ? cost : amount
      },
    }
  }

  /** As `charge`, in the agent's own words, and with the payment as its answer. */
  async ask(question: Question, { key, timeoutMs }: AskOptions = {}): Promise<Submitted> {
    const { amount: text, currency } = question.requirements
    const amount = checked(text, currency)
    const name = key ?? `payment.required#${++this.#asked}`
    const answer = await this.#alone(async () => {
      const covered = await this.#cover(name, amount, { question, timeoutMs })
      this.#add(name, amount, currency)
      return covered
    })
    return answer ?? { type: 'payment.submit', event_id: `pay_${this.#turn.id}_${name}`, payment: { scheme: 'account' } }
  }

  /** The agent is run again in this response, and its charges get the numbers that they had. */
  again(): void {
    this.#charged = this.#asked = 0
  }

  /** The turn was given up between two responses. */
  drop(): void {
    this.#isOver = true
    this.#giveBack([...this.#locks.splice(0), ...this.#free.splice(0)])
  }

  #giveBack(locks: readonly Authorisation[]): void {
    for (const lock of locks) {
      const settled = lock.settle(0n)
      if (settled.operations.length === 0) settled.done()
      else
        void this.#options.payments.write(settled.operations).then(
          () => settled.done(),
          (failure: unknown) => settled.done(failure),
        )
    }
  }

  /** Takes a free call. False: none is left. */
  async takeFree(free: FreeQuota): Promise<boolean> {
    const taken = await this.#options.payments.takeFree(this.#askedFor('free', 0n, USD), free)
    if (taken && this.#isOver) this.#giveBack([taken])
    else if (taken) this.#free.push(taken)
    return taken !== undefined
  }

  #alone<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#last.then(work, work)
    this.#last = done.catch(() => undefined)
    return done
  }

  #add(name: string, amount: bigint, currency: string): Charge {
    const before = BigInt(this.#settledKeys[name] ?? 0)
    const charge = { currency, due: amount > before ? amount - before : 0n }
    this.#charges.set(name, charge)
    return charge
  }

  /** Money that is locked and not charged yet. */
  #spare(currency: string): bigint {
    let spare = 0n
    for (const lock of this.#locks) if (lock.currency === currency) spare += lock.locked
    for (const charge of this.#charges.values()) if (charge.currency === currency) spare -= charge.due
    return spare
  }

  /** Sees to it that an amount is locked. Resolves with the payment that answered the question, if one was asked. */
  async #cover(
    name: string,
    wanted: bigint,
    { question, timeoutMs }: { readonly question: Question; readonly timeoutMs?: number | undefined },
  ): Promise<Submitted | undefined> {
    const { currency } = question.requirements
    if (this.#isOver) throw new UampError('cancelled', 'The turn has ended')
    const amount = wanted - BigInt(this.#settledKeys[name] ?? 0)
    // Under a name that was charged before in this response, its own money is there already.
    const missing = amount - this.#spare(currency) - (this.#charges.get(name)?.due ?? 0n)
    if (missing <= 0n) return this.#turn.questions.known(name) as Submitted | undefined
    for (const lock of this.#locks) if (lock.currency === currency && (await lock.extend(missing))) return undefined
    const asked = this.#askedFor(name, missing, currency)
    const isTopup = this.#locks.length > 0 || this.#turn.hasSpoken
    const before = this.#turn.questions.known(name) ? undefined : await this.#fromBefore(asked)
    if (before === true) return undefined
    return this.#fromClient(asked, { question, timeoutMs, isTopup, refusal: before })
  }

  /** Tries money that needs no question: what was accepted before in this turn, and the account of whoever asks. */
  async #fromBefore(asked: Asked): Promise<true | Refusal | undefined> {
    const { payments } = this.#options
    for (const payment of this.#accepted) {
      const found = await payments.authorise(asked, payment)
      if (!('refused' in found)) return this.#accept(found, undefined)
    }
    if (this.#turn.questions.payment || this.#accepted.length > 0) return undefined
    const found = await payments.authorise(asked, undefined)
    if (!found || 'refused' in found) return found
    return this.#accept(found, undefined)
  }

  async #fromClient(
    asked: Asked,
    {
      question,
      timeoutMs,
      isTopup,
      refusal: given,
    }: {
      readonly question: Question
      readonly timeoutMs: number | undefined
      readonly isTopup: boolean
      readonly refusal: Refusal | undefined
    },
  ): Promise<Submitted> {
    const { payments } = this.#options
    let refusal = given
    if (refusal) this.#refuse(asked, refusal)
    for (let turn = 1; turn <= TRIES; turn++) {
      const key = turn === 1 ? asked.question : `${asked.question}~${turn}`
      const draft = this.#question(asked, { question, timeoutMs, isTopup, refusal })
      const answer = await this.#turn.questions.ask('payment.required', draft, { key, timeoutMs: timeoutMs ?? TIMEOUT_MS }).catch(unpaid)
      // On a one-way transport the answer has opened another response, and that one is paid for.
      const found = await payments.authorise({ ...asked, response: this.#turn.responseId }, answer.payment)
      if (!('refused' in found)) {
        this.#accept(found, answer.payment)
        return answer
      }
      refusal = found
      this.#refuse(asked, refusal)
      if (refusal.canRetry === false) break
    }
    this.#failed = true
    throw new UampError('payment_required', refusal?.message ?? 'Nobody paid', { details: { reason: refusal?.refused } })
  }

  #accept(lock: Authorisation, payment: Payment | undefined): true {
    if (this.#isOver) {
      this.#giveBack([lock])
      throw new UampError('cancelled', 'The turn ended before its payment was accepted')
    }
    this.#locks.push(lock)
    if (payment && !this.#accepted.includes(payment)) this.#accepted.push(payment)
    const { id, balance, expiresAt } = lock
    this.#turn.emit({
      type: 'payment.accepted',
      payment_id: id,
      ...(balance !== undefined && { balance_remaining: formatAmount(balance) }),
      ...(expiresAt !== undefined && { expires_at: seconds(expiresAt) }),
    })
    return true
  }

  #refuse({ amount }: Asked, { refused, message, balance, canRetry = true }: Refusal): void {
    this.#turn.emit({
      type: 'payment.error',
      code: refused,
      message,
      balance_required: formatAmount(amount),
      ...(balance !== undefined && { balance_current: formatAmount(balance) }),
      can_retry: canRetry,
    })
  }

  #question(
    asked: Asked,
    {
      question,
      timeoutMs = TIMEOUT_MS,
      isTopup,
      refusal,
    }: {
      readonly question: Question
      readonly timeoutMs: number | undefined
      readonly isTopup: boolean
      readonly refusal: Refusal | undefined
    },
  ): Question {
    const { schemes, extra: offered } = this.#options.payments.offer(asked)
    const extra: Slot = {
      ...offered,
      ...(isTopup && { action: 'topup' }),
      ...(refusal && { error: { code: refusal.refused, message: refusal.message } }),
      ...question.extra,
    }
    return {
      requirements: {
        schemes: [...schemes],
        expires_at: seconds(this.#options.now() + timeoutMs),
        ...question.requirements,
        amount: formatAmount(asked.amount),
      },
      ...(Object.keys(extra).length > 0 && { extra }),
    }
  }

  #askedFor(question: string, amount: bigint, currency: string): Asked {
    const { principal, sessionId: session, id: turn, responseId: response } = this.#turn
    return { principal, agent: this.#options.agent, session, turn, response, question, amount, currency }
  }

  /** What the turn has paid so far, for a response that ends with questions. */
  get paid(): Paid | undefined {
    return Object.keys(this.#settledKeys).length > 0 ? this.#settledKeys : undefined
  }

  /**
   * Settles what a response costs, and gives back the rest. What was charged is due if the response is complete, or if it was the reader
   * or the payer who ended it after the agent had said something. A response that fails otherwise costs nothing.
   */
  close(end: End): Closing | undefined {
    this.#isOver = end.kind !== 'done' || end.waiting === undefined
    if (this.#locks.length === 0 && this.#free.length === 0) return undefined
    const isDue = end.kind === 'done' || (this.#turn.hasSpoken && (end.kind === 'cancelled' || this.#isPayersFault(end)))
    const [locks, free] = [this.#locks, this.#free]
    this.#locks = []
    this.#free = []
    const parts: Settlement[] = free.map((call) => call.settle(isDue ? 1n : 0n))
    const receipts: PaidPart[] = []
    const due = new Map<string, bigint>()
    const before = { ...this.#settledKeys }
    for (const [key, charge] of this.#charges) {
      if (!isDue) continue
      due.set(charge.currency, (due.get(charge.currency) ?? 0n) + charge.due)
      this.#settledKeys[key] = `${BigInt(this.#settledKeys[key] ?? 0) + charge.due}`
    }
    this.#charges.clear()
    for (const lock of locks) {
      const left = due.get(lock.currency) ?? 0n
      const amount = left < lock.locked ? left : lock.locked
      due.set(lock.currency, left - amount)
      const part = lock.settle(amount)
      parts.push(part)
      if (amount > 0n) receipts.push({ lock, amount, outside: part.outside })
    }
    return new Closing(parts, receipts, () => (this.#settledKeys = before))
  }

  #isPayersFault(end: End): boolean {
    return end.kind === 'failed' && (this.#failed || end.error.code === 'payment_required')
  }
}

interface PaidPart {
  readonly lock: Authorisation
  readonly amount: bigint
  readonly outside: Settlement['outside']
}

/** The end of the payments of one response. */
export class Closing implements Settlement {
  readonly operations: Settlement['operations']
  readonly #parts: readonly Settlement[]
  readonly #paid: readonly PaidPart[]
  readonly #receipts: Slot[] = []
  readonly #undo: () => void
  #isDone = false

  constructor(parts: readonly Settlement[], paid: readonly PaidPart[], undo: () => void) {
    this.#parts = parts
    this.#paid = paid
    this.#undo = undo
    this.operations = parts.flatMap(({ operations }) => operations)
  }

  /** Only the first call counts. */
  done(failure?: unknown): void {
    if (this.#isDone) return
    this.#isDone = true
    if (failure !== undefined) this.#undo()
    for (const part of this.#parts) part.done(failure)
  }

  /** Moves money that is not in this ledger. Undefined: there is none. */
  get outside(): (() => Promise<undefined>) | undefined {
    if (!this.#paid.some(({ outside }) => outside)) return undefined
    return async () => {
      for (const { outside } of this.#paid) {
        const receipt = await outside?.()
        if (receipt) this.#receipts.push(receipt)
      }
      return undefined
    }
  }

  /** What the end of the response says about its payments; undefined if nothing was paid. */
  get told(): Slot | undefined {
    if (this.#paid.length === 0) return undefined
    const payments = this.#paid.map(({ lock, amount }) => ({
      payment_id: lock.id,
      scheme: lock.scheme,
      amount: formatAmount(amount),
      currency: lock.currency,
    }))
    return { payments, ...(this.#receipts.length > 0 && { receipts: this.#receipts }) }
  }

  /** What is left afterwards; undefined if nobody here knows. */
  balance(): Draft | undefined {
    const [last] = this.#paid.filter(({ lock }) => lock.balance !== undefined).slice(-1)
    if (!last || last.lock.balance === undefined) return undefined
    const { balance, currency, expiresAt } = last.lock
    const threshold = last.amount * LOW
    return {
      type: 'payment.balance',
      balance: formatAmount(balance),
      currency,
      low_balance_warning: balance < threshold,
      estimated_remaining: Number(balance / last.amount),
      ...(expiresAt !== undefined && { expires_at: seconds(expiresAt) }),
      balance_remaining: formatAmount(balance),
      threshold: formatAmount(threshold),
    }
  }
}

/**
 * The end of a response with what was paid for it. If money elsewhere did not move, the response has failed, and nobody gets its output
 * who has not had it.
 */
export async function paidEnd(end: End, closing: Closing): Promise<End> {
  try {
    await closing.outside?.()
  } catch (thrown) {
    return { kind: 'failed', output: [], error: UampError.from(thrown).toBody() }
  }
  const { told } = closing
  if (!told || end.kind !== 'done') return end
  const uamp = end.extensions?.['uamp']
  return { ...end, extensions: { ...end.extensions, uamp: { ...(isRecord(uamp) && uamp), ...told } } }
}

/** A balance is low if it is less than this many responses of the same cost. */
const LOW = 5n

function checked(text: string, currency: string): bigint {
  const amount = parseAmount(text)
  if (amount === undefined) throw new TypeError(`An amount is a text such as "0.05", but not ${JSON.stringify(text)}`)
  if (!isCurrency(currency)) throw new TypeError(`A currency is a name such as "USD", but not ${JSON.stringify(currency)}`)
  return amount
}

/** A question for money that nobody answers ends the response as one that was not paid. */
function unpaid(thrown: unknown): never {
  if (!(thrown instanceof UampError) || thrown.code !== 'timeout') throw thrown
  throw new UampError('payment_required', 'Nobody paid in time', { cause: thrown, details: { reason: 'timeout' } })
}

function seconds(ms: number): number {
  return Math.floor(ms / 1000)
}
