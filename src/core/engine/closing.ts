import { UampError } from '../../protocol/errors.ts'
import type { Draft } from '../../protocol/events.ts'
import { isRecord, type Slot } from '../../protocol/json.ts'
import { formatAmount } from '../../protocol/money.ts'
import type { Authorisation, Payments, Settlement } from '../ports/payments.ts'
import type { Operation } from '../ports/store.ts'
import type { End } from './run.ts'

/** A balance is low if it is less than this many responses of the same cost. */
const LOW = 5n

/** What one lock pays of a response. */
export interface PaidPart {
  readonly lock: Authorisation
  readonly amount: bigint
  readonly outside: Settlement['outside']
}

interface About {
  /** The client gets a question for money in place of what was said, which is not paid. */
  readonly isUnheard: boolean
  /** Called if the payments fail: what they paid is due again. */
  undo(): void
}

/** The end of the payments of one response. */
export class Closing {
  readonly #parts: readonly Settlement[]
  #paid: readonly PaidPart[]
  readonly #receipts: Slot[] = []
  readonly #about: About
  #isOver = false

  constructor(parts: readonly Settlement[], paid: readonly PaidPart[], about: About) {
    this.#parts = parts
    this.#paid = paid
    this.#about = about
  }

  /** True if the end of the response tells of a payment. */
  get isTold(): boolean {
    return this.#paid.length > 0
  }

  /** For the transaction that stores the end of the response. None, if the payments have failed. */
  get operations(): readonly Operation[] {
    return this.#isOver ? [] : this.#parts.flatMap(({ operations }) => operations)
  }

  /** Called once the operations are stored, or with the reason why they are not. Only the first call counts. */
  done(failure?: unknown): void {
    if (this.#isOver) return
    this.#isOver = true
    if (failure !== undefined) {
      this.#about.undo()
      this.#paid = []
    }
    for (const part of this.#parts) part.done(failure)
  }

  /**
   * Moves the money that is not in this server's ledger. If some of it does not move, the response has failed, nothing is taken for it,
   * and nobody gets its output who has not had it.
   */
  async end(given: End): Promise<End> {
    // Nor can they look it up: it is not stored.
    const end = this.#about.isUnheard ? { ...given, output: [] } : given
    try {
      for (const { outside } of this.#paid) {
        const receipt = await outside?.()
        if (receipt) this.#receipts.push(receipt)
      }
    } catch (thrown) {
      this.done(thrown)
      return { kind: 'failed', output: [], error: UampError.from(thrown).toBody() }
    }
    // A wallet that learns that nothing was charged has its reserve back.
    if (this.#parts.length === 0 || end.kind !== 'done') return end
    const uamp = end.extensions?.['uamp']
    return { ...end, extensions: { ...end.extensions, uamp: { ...(isRecord(uamp) && uamp), ...this.#told() } } }
  }

  /** What the end of the response says about its payments. */
  #told(): Slot {
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
    const last = this.#paid.findLast(({ lock }) => lock.balance !== undefined)
    if (!last || last.lock.balance === undefined) return undefined
    const { balance, currency, expiresAt } = last.lock
    const threshold = last.amount * LOW
    return {
      type: 'payment.balance',
      balance: formatAmount(balance),
      currency,
      low_balance_warning: balance < threshold,
      estimated_remaining: Number(balance / last.amount),
      ...(expiresAt !== undefined && { expires_at: Math.floor(expiresAt / 1000) }),
      balance_remaining: formatAmount(balance),
      threshold: formatAmount(threshold),
    }
  }
}

/** Gives back a lock that no response needs any more. */
export async function giveBack(lock: Authorisation, payments: Payments): Promise<void> {
  const settlement = lock.settle(0n)
  try {
    if (settlement.operations.length > 0) await payments.write(settlement.operations)
    settlement.done()
  } catch (thrown) {
    settlement.done(thrown)
  }
}
