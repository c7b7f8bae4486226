import type { Slot } from './json.ts'
import type { Payment, PaymentRequirements } from './payment.ts'

/** What an agent wants to be paid, as a wallet is asked for it. */
export interface Invoice {
  /** Names this demand. */
  readonly id: string
  /** Names the answer that it is paid for: an agent may want more in the middle of one. */
  readonly call: string
  readonly agent?: string | undefined
  /** Where the agent is. */
  readonly url?: string | undefined
  readonly requirements: PaymentRequirements
  readonly extra?: Slot | undefined
}

/** Why a wallet does not pay, for people: never with anything of a payment in it. */
export interface Declined {
  readonly declined: string
  readonly code?: 'payment_declined' | 'budget_exceeded' | undefined
  readonly cause?: unknown
}

export interface PayContext {
  /** Aborted when nobody wants the payment any more. */
  readonly signal: AbortSignal
  /** Asks whoever decides here. Undefined: there is nobody. */
  readonly approve?: ((question: string) => boolean | Promise<boolean>) | undefined
}

/** What became of a payment. `charged`: undefined if nobody said. */
export interface Outcome {
  readonly payment: Payment
  readonly charged: string | undefined
}

/** Where the money of a client comes from. */
export interface Wallet {
  /** Undefined: it does not pay. */
  pay(invoice: Invoice, context: PayContext): Promise<Payment | Declined | undefined>
  /** Called once for each payment, when the answer that it paid for is over. Resolves with what was charged, if the wallet knows better. */
  done?(invoice: Invoice, outcome: Outcome): Promise<string | undefined>
}

/** Says that the client does not pay. `turn.ask('payment.required', …)` then fails. */
export const DECLINED: Payment = { scheme: 'declined' }
