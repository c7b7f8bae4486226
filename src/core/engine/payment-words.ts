import type { Draft } from '../../protocol/events.ts'
import type { Slot } from '../../protocol/json.ts'
import { formatAmount } from '../../protocol/money.ts'
import type { QuestionDraft } from '../ports/agent.ts'
import type { Asked, Authorisation, Offer, Refusal } from '../ports/payments.ts'

export type PaymentQuestion = QuestionDraft<'payment.required'>

interface Demand {
  readonly offer: Offer
  /** When nobody waits for the payment any more, in milliseconds since 1970. */
  readonly until: number
  /** The response has begun, or was paid before. */
  readonly isTopup: boolean
  /** Why the payment before was not taken. */
  readonly refusal: Refusal | undefined
}

/** The agent's question with the ways to pay. What the agent says itself wins, except for the amount: that is what is missing. */
export function demand(question: PaymentQuestion, asked: Asked, { offer, until, isTopup, refusal }: Demand): PaymentQuestion {
  const extra: Slot = {
    ...offer.extra,
    ...(isTopup && { action: 'topup' }),
    ...(refusal && { error: { code: refusal.refused, message: refusal.message } }),
    ...question.extra,
  }
  return {
    requirements: {
      schemes: [...offer.schemes],
      expires_at: seconds(until),
      ...question.requirements,
      amount: formatAmount(asked.amount),
    },
    ...(Object.keys(extra).length > 0 && { extra }),
  }
}

export function accepted({ id, balance, expiresAt }: Authorisation): Draft {
  return {
    type: 'payment.accepted',
    payment_id: id,
    ...(balance !== undefined && { balance_remaining: formatAmount(balance) }),
    ...(expiresAt !== undefined && { expires_at: seconds(expiresAt) }),
  }
}

export function refused({ amount }: Asked, { refused: code, message, balance, canRetry = true }: Refusal): Draft {
  return {
    type: 'payment.error',
    code,
    message,
    balance_required: formatAmount(amount),
    ...(balance !== undefined && { balance_current: formatAmount(balance) }),
    can_retry: canRetry,
  }
}

function seconds(ms: number): number {
  return Math.floor(ms / 1000)
}
