import type { Asked, Authorisation, Offer, Refusal } from '../core/ports/payments.ts'
import type { Payment } from '../protocol/payment.ts'
import type { PaymentFacts } from './underway.ts'

/** One way to pay. */
export interface PaymentMethod {
  /** What a client is told of it. No schemes: this amount cannot be paid in this way. */
  offer(asked: Asked): Offer
  /** True if a payment is of this kind. It may still be worthless. */
  takes(payment: Payment): boolean
  authorise(asked: Asked, payment: Payment): Promise<Authorisation | Refusal> | Authorisation | Refusal
  /** A payment that is not in the ledger, because its money is elsewhere. */
  find?(tenant: string, id: string): Promise<PaymentFacts | undefined>
  /** How many payments wait to be settled elsewhere. */
  readonly unsettled?: (() => Promise<number>) | undefined
  /** Goes on with what the last run of the server left undone, until `signal` aborts. */
  start?(signal: AbortSignal): void
}
