import { UampError } from '../../protocol/errors.ts'
import type { Draft, EventOf } from '../../protocol/events.ts'
import { isCurrency, parseAmount } from '../../protocol/money.ts'
import type { Principal } from '../ports/access.ts'
import type { AskOptions } from '../ports/agent.ts'
import type {
  Asked,
  Authorisation,
  ChargeRequest,
  Charged,
  FreeQuota,
  HandedOn,
  HandOnRequest,
  Payments,
  Refusal,
  Settlement,
} from '../ports/payments.ts'
import type { PaysAnew } from '../ports/session.ts'
import { Closing, giveBack, type PaidPart } from './closing.ts'
import { accepted, demand, refused, type PaymentQuestion } from './payment-words.ts'
import { PaidBefore, type Paid } from './paid-before.ts'
import { hasRoom, purseOf, type Purse } from './purse.ts'
import type { QuestionBook } from './questions.ts'
import type { End } from './run.ts'

/** How often a question for money is put again after a payment that was not taken. */
const TRIES = 5
const TIMEOUT_MS = 300_000
const USD = 'USD'

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
  /** The client answers a question for money by its whole request again. */
  readonly paysAnew: PaysAnew | undefined
  /** Why the turn is over. Undefined: it goes on. */
  readonly over: UampError | undefined
  emit(draft: Draft): void
}

interface Charge {
  readonly currency: string
  due: bigint
}

interface Lock {
  readonly lock: Authorisation
  readonly purse: Purse | undefined
}

interface Wanted {
  readonly question: PaymentQuestion
  readonly timeoutMs?: number | undefined
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
  readonly #locks: Lock[] = []
  /** Free calls: they count if the response is due, and cost nothing. */
  readonly #free: Authorisation[] = []
  /** The payments of this turn: what they hold may be used again when a response has settled its part. */
  readonly #purses: Purse[] = []
  #before: PaidBefore
  readonly #numbers = new Map<string, number>()
  #failed = false
  /** A question for money is open, or was when the turn was stopped. */
  #isAsking = false
  /** Charges are made one after the other: two at once would both take the same money for theirs. */
  #last: Promise<unknown> = Promise.resolve()

  constructor(turn: Billed, options: BillOptions) {
    this.#turn = turn
    this.#options = options
    this.#before = new PaidBefore(options.paid)
  }

  /** Charges an amount: takes it from what was paid before, or asks for it. Rejects with `payment_required` if nobody pays. */
  async charge({ amount: text, currency = USD, reason, key, timeoutMs }: ChargeRequest): Promise<Charged> {
    const amount = checked(text, currency)
    const name = this.#named('charge', key)
    const requirements = { amount: text, currency, ...(reason !== undefined && { reason }) }
    const charge = await this.#alone(async () => {
      await this.#cover(name, amount, { question: { requirements }, timeoutMs })
      return this.#add(name, amount, currency)
    })
    // What an earlier response of the turn has paid is not due again.
    const before = this.#before.of(name)
    return {
      settle: (actual) => {
        const cost = checked(actual, currency)
        const due = (cost < amount ? cost : amount) - before
        charge.due = due > 0n ? due : 0n
      },
    }
  }

  /** What the running response costs so far. */
  due(currency: string): bigint {
    let due = 0n
    for (const charge of this.#charges.values()) if (charge.currency === currency) due += charge.due
    return due
  }

  /** As `charge`, in the agent's own words, and with the payment as its answer. */
  async ask(question: PaymentQuestion, { key, timeoutMs }: AskOptions = {}): Promise<Submitted> {
    const { amount: text, currency } = question.requirements
    const amount = checked(text, currency)
    const name = this.#named('payment.required', key)
    const answer = await this.#alone(async () => {
      const covered = await this.#cover(name, amount, { question, timeoutMs })
      this.#add(name, amount, currency)
      return covered
    })
    return answer ?? { type: 'payment.submit', event_id: `pay_${this.#turn.id}_${name}`, payment: { scheme: 'account' } }
  }

  /** Splits money off what the client pays with, for another agent. */
  handOn({ agent, amount: text, currency = USD }: HandOnRequest): Promise<HandedOn> {
    const { payments } = this.#options
    const amount = checked(text, currency)
    const asked = this.#askedFor(`${this.#named('hand-on')} ${agent}`, amount, currency)
    return this.#alone(async () => {
      const { handOn } = payments
      if (!handOn) throw new UampError('not_supported', 'Payments of this server cannot be handed on')
      const split = async (purse: Purse): Promise<HandedOn | Refusal> => {
        if (!hasRoom(purse, amount)) return { refused: 'insufficient_balance', message: 'The payment was for less than this' }
        const found = await handOn.call(payments, asked, purse.payment, agent)
        if (!('refused' in found)) purse.used += amount
        return found
      }
      for (const purse of this.#purses) {
        const found = await split(purse)
        if (!('refused' in found)) return found
      }
      const question = { requirements: { amount: text, currency, reason: `${agent} is to be paid` } }
      const { found } = await this.#fromClient(asked, { question }, async (purse) => {
        const given = await split(purse)
        if (!('refused' in given)) this.#purses.push(purse)
        return given
      })
      return found
    })
  }

  /** Takes a free call, once in a turn. False: none is left. */
  async takeFree(free: FreeQuota): Promise<boolean> {
    if (this.#free.length > 0 || this.#before.isFree) return true
    const taken = await this.#options.payments.takeFree(this.#askedFor('free', 0n, USD), free)
    if (taken && this.#turn.over) await giveBack(taken, this.#options.payments)
    else if (taken) this.#free.push(taken)
    return taken !== undefined
  }

  /** The client has sent another payment: the ones before are not used any more. */
  payAnew(): void {
    this.#purses.length = 0
  }

  /** The agent is run again in the same response: charges that it makes again are the same ones. */
  restart(): void {
    this.#numbers.clear()
  }

  /** The name of a charge is the same when the turn is run again. What is charged under one name is one charge, and may grow. */
  #named(kind: string, key?: string): string {
    if (key !== undefined) return `${kind} ${key}`
    const number = (this.#numbers.get(kind) ?? 0) + 1
    this.#numbers.set(kind, number)
    return `${kind}#${number}`
  }

  #alone<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#last.then(work, work)
    this.#last = done.catch(() => undefined)
    return done
  }

  #add(name: string, amount: bigint, currency: string): Charge {
    const before = this.#before.of(name)
    const charge = { currency, due: amount > before ? amount - before : 0n }
    this.#charges.set(name, charge)
    return charge
  }

  /** Money that is locked and not charged yet. */
  #spare(currency: string): bigint {
    let spare = -this.due(currency)
    for (const { lock } of this.#locks) if (lock.currency === currency) spare += lock.locked
    return spare
  }

  /** What was charged under a name already: in an earlier response, or before the agent was run again. */
  #chargedFor(name: string): bigint {
    return this.#before.of(name) + (this.#charges.get(name)?.due ?? 0n)
  }

  /** Sees to it that an amount is locked. Resolves with the payment that answered the question, if one was asked. */
  async #cover(name: string, wanted: bigint, { question, timeoutMs }: Wanted): Promise<Submitted | undefined> {
    const { currency } = question.requirements
    const missing = wanted - this.#chargedFor(name) - this.#spare(currency)
    if (missing <= 0n) return this.#turn.questions.known(name) as Submitted | undefined
    if (await this.#extend(missing, currency)) return undefined
    const asked = this.#askedFor(name, missing, currency)
    const isTopup = !this.#turn.paysAnew && (this.#locks.length > 0 || this.#turn.hasSpoken)
    const before = this.#turn.questions.known(name) ? undefined : await this.#fromBefore(asked)
    if (before === true) return undefined
    const { answer } = await this.#fromClient(asked, { question, timeoutMs, isTopup, refusal: before }, async (purse) => {
      // On a one-way transport the answer has opened another response, and that one is paid for.
      const found = await this.#options.payments.authorise({ ...asked, response: this.#turn.responseId }, purse.payment)
      if ('refused' in found) return found
      this.#purses.push(purse)
      await this.#accept(found, purse)
      return found
    })
    return answer
  }

  async #extend(amount: bigint, currency: string): Promise<boolean> {
    for (const { lock, purse } of this.#locks) {
      if (lock.currency !== currency || (purse && !hasRoom(purse, amount)) || !(await lock.extend(amount))) continue
      if (purse) purse.used += amount
      return true
    }
    return false
  }

  /** Tries money that needs no question: what was accepted before in this turn, and the account of whoever asks. */
  async #fromBefore(asked: Asked): Promise<true | Refusal | undefined> {
    const { payments } = this.#options
    for (const purse of this.#purses) {
      if (!hasRoom(purse, asked.amount)) continue
      const found = await payments.authorise(asked, purse.payment)
      if (!('refused' in found)) return this.#accept(found, purse)
    }
    if (this.#turn.questions.payment || this.#purses.length > 0) return undefined
    const found = await payments.authorise(asked, undefined)
    if (!found || 'refused' in found) return found
    return this.#accept(found, undefined)
  }

  /** Asks the client for a payment, until `take` takes one. */
  async #fromClient<T extends object>(
    asked: Asked,
    {
      question,
      timeoutMs = TIMEOUT_MS,
      isTopup = false,
      refusal: given,
    }: Wanted & { readonly isTopup?: boolean; readonly refusal?: Refusal | undefined },
    take: (purse: Purse) => Promise<T | Refusal>,
  ): Promise<{ readonly found: T; readonly answer: Submitted }> {
    const { payments, now } = this.#options
    // A client that begins anew is asked for all of it, also for what earlier responses have paid.
    const again = this.due(asked.currency) + this.#before.in(asked.currency)
    const whole = this.#turn.paysAnew ? { ...asked, amount: asked.amount + again } : asked
    let refusal = given
    if (refusal) this.#turn.emit(refused(asked, refusal))
    for (let turn = 1; turn <= TRIES; turn++) {
      const key = turn === 1 ? asked.question : `${asked.question}~${turn}`
      const draft = demand(question, whole, {
        offer: payments.offer(whole),
        until: now() + timeoutMs,
        isTopup,
        refusal,
      })
      this.#isAsking = true
      const answer = await this.#turn.questions.ask('payment.required', draft, { key, timeoutMs }).catch(unpaid)
      this.#isAsking = false
      const found = await take(purseOf(answer.payment))
      if (!('refused' in found)) return { found, answer }
      refusal = found
      this.#turn.emit(refused(asked, refusal))
      if (refusal.canRetry === false) break
    }
    this.#failed = true
    throw new UampError('payment_required', refusal?.message ?? 'Nobody paid', { details: { reason: refusal?.refused } })
  }

  async #accept(lock: Authorisation, purse: Purse | undefined): Promise<true> {
    // The turn may have been stopped while the payment was verified: then nobody else would end the lock.
    const { over } = this.#turn
    if (over) {
      await giveBack(lock, this.#options.payments)
      throw over
    }
    this.#locks.push({ lock, purse })
    if (purse) purse.used += lock.locked
    this.#turn.emit(accepted(lock))
    return true
  }

  #askedFor(question: string, amount: bigint, currency: string): Asked {
    const { principal, sessionId: session, id: turn, responseId: response, paysAnew } = this.#turn
    const about = { agent: this.#options.agent, session, turn, response, question }
    return { principal, ...about, amount, currency, isPart: paysAnew !== undefined }
  }

  /** What the turn has paid so far, for a response that ends with questions. */
  get paid(): Paid | undefined {
    return this.#before.stored
  }

  /**
   * Settles what a response costs, and gives back the rest. What was charged is due if the response is complete, or if it was the reader
   * or the payer who ended it after the agent had said something. A response that fails otherwise costs nothing.
   */
  close(end: End): Closing | undefined {
    const { hasSpoken, paysAnew } = this.#turn
    const isRefused = paysAnew !== undefined && this.#isAsking
    // The client may get a question for money instead of what was said.
    const isUnheard = isRefused && !paysAnew.isHeard
    if (this.#locks.length === 0 && this.#free.length === 0 && !isUnheard) return undefined
    const isOver = end.kind === 'done' || (hasSpoken && (end.kind === 'cancelled' || this.#isPayersFault(end)))
    const isDue = isOver && !isUnheard && (hasSpoken || !isRefused)
    const locks = this.#locks.splice(0)
    const isFree = this.#free.length > 0
    const parts: Settlement[] = this.#free.splice(0).map((call) => call.settle(isDue ? 1n : 0n))
    const paid: PaidPart[] = []
    const before = this.#before
    const due = isDue ? this.#due() : new Map<string, bigint>()
    if (isDue && isFree) this.#before = this.#before.withFreeCall()
    this.#charges.clear()
    for (const { lock, purse } of locks) {
      const left = due.get(lock.currency) ?? 0n
      const amount = left < lock.locked ? left : lock.locked
      due.set(lock.currency, left - amount)
      if (purse) purse.used -= lock.locked - amount
      const part = lock.settle(amount)
      parts.push(part)
      if (amount > 0n) paid.push({ lock, amount: part.taken ?? amount, outside: part.outside })
    }
    return new Closing(parts, paid, { isUnheard, undo: () => (this.#before = before) })
  }

  /** Gives back what is locked for a turn that nobody goes on with. */
  async abandon(error: UampError): Promise<void> {
    const closing = this.close({ kind: 'failed', output: [], error: error.toBody() })
    if (!closing) return
    const { operations } = closing
    const written = operations.length > 0 ? this.#options.payments.write(operations) : Promise.resolve()
    await written.then(
      () => closing.done(),
      (failure: unknown) => closing.done(failure),
    )
  }

  /** What is due by currency. It counts as paid from now on. */
  #due(): Map<string, bigint> {
    const due = new Map<string, bigint>()
    for (const { currency, due: more } of this.#charges.values()) due.set(currency, (due.get(currency) ?? 0n) + more)
    this.#before = this.#before.with(this.#charges)
    return due
  }

  /** Who does not answer the agent has stopped it. */
  #isPayersFault(end: End): boolean {
    return end.kind === 'failed' && (this.#failed || end.error.code === 'payment_required' || this.#turn.questions.hasMissed(end.error))
  }
}

function checked(text: string, currency: string): bigint {
  const amount = parseAmount(text)
  if (amount === undefined) throw new TypeError(`An amount is a text such as "0.05", but not ${JSON.stringify(text)}`)
  if (!isCurrency(currency)) throw new TypeError(`A currency is a name in capitals, such as "USD", but not ${JSON.stringify(currency)}`)
  return amount
}

/** A question for money that nobody answers ends the response as one that was not paid. */
function unpaid(thrown: unknown): never {
  if (!(thrown instanceof UampError) || thrown.code !== 'timeout') throw thrown
  throw new UampError('payment_required', 'Nobody paid in time', { cause: thrown, details: { reason: 'timeout' } })
}
