/** Payments by the extension a2a-x402: they are in the metadata of messages of the same task. */
import type { Draft, EventOf } from '../../../protocol/events.ts'
import { fieldsOf, isRecord, recordsIn, type Json, type Slot } from '../../../protocol/json.ts'
import type { Payment } from '../../../protocol/payment.ts'
import { X402 } from '../../../wire/a2a/extensions.ts'
import { paymentOf } from '../../../wire/payment.ts'
import { isReceipt, requiredIn, requiredV1, type Receipt } from '../../../wire/x402.ts'
import type { Message, Struct } from '../model.ts'

/** How long an offer holds if the agent does not say. */
const OFFER_SECONDS = 600

/** The metadata of a question for payment: every way to pay. */
export function offer({ requirements, extra = {} }: Draft<EventOf<'payment.required'>>, now: number): Struct {
  const { amount, currency, schemes = [{ scheme: 'token' }], reason = 'Payment required', expires_at } = requirements
  const seconds = expires_at === undefined ? OFFER_SECONDS : Math.max(0, Math.floor(expires_at - now / 1000))
  const { x402, ...more } = extra
  const exact = requiredIn(x402, { error: reason, description: reason })
  // The extension knows x402 alone, in its version 1. Other ways to pay are in the question, which is a part of the message.
  if (exact) return { [X402.status]: 'payment-required', [X402.required]: requiredV1(exact) as Struct }
  const accepts = schemes.map(({ scheme, network, address, min_amount, max_amount }) => ({
    scheme,
    network: network ?? '',
    maxAmountRequired: max_amount ?? amount,
    asset: currency,
    payTo: address ?? '',
    resource: '',
    description: reason,
    mimeType: '',
    maxTimeoutSeconds: seconds,
    extra: { amount, currency, ...(min_amount !== undefined && { min_amount }), ...(more as Record<string, Json>) },
  }))
  return { [X402.status]: 'payment-required', [X402.required]: { x402Version: 1, error: reason, accepts } }
}

/** The payment in a message. */
export function paymentIn({ metadata }: Message): Payment | undefined {
  const payload = metadata?.[X402.payload]
  if (typeof payload === 'string') return paymentOf(payload)
  if (!isRecord(payload)) return undefined
  const hasToken = typeof fieldsOf(payload['payload'])['token'] === 'string'
  if (hasToken || 'x402Version' in payload) return paymentOf(payload)
  // A payment of another kind, which the agent may know.
  const { scheme, network } = payload
  return {
    scheme: typeof scheme === 'string' ? scheme : 'exact',
    ...(typeof network === 'string' && { network }),
    proof: payload,
  }
}

export function rejectsPayment({ metadata }: Message): boolean {
  return metadata?.[X402.status] === 'payment-rejected'
}

export const REJECTED: Struct = { [X402.status]: 'payment-rejected' }

type Outcome = Draft<EventOf<'payment.accepted' | 'payment.error'>>

/** How the response ended that was paid for: what its end says of receipts, or why it failed. */
export interface PaidEnd {
  readonly extensions?: Slot | undefined
  readonly details?: Slot | undefined
}

/** What became of the payments of a response; undefined if there were none. */
export function receipts(
  outcomes: readonly Outcome[],
  { extensions, details }: PaidEnd,
): { readonly text: string; readonly metadata: Struct } | undefined {
  const last = outcomes.at(-1)
  if (!last) return undefined
  const settled = recordsIn(fieldsOf(extensions?.['uamp'])['receipts']).filter(isReceipt)
  const failed = details?.['receipt']
  const told = isReceipt(failed) ? [...settled, failed] : settled
  const refused = outcomes.filter((outcome) => outcome.type === 'payment.error').map(asRefused)
  const accepted = outcomes.filter((outcome) => outcome.type === 'payment.accepted').map(asAccepted)
  // A receipt of the chain says more than that the payment was accepted.
  const history = [...refused, ...(told.length > 0 ? told : accepted)] as readonly Receipt[] as unknown as Json
  if (isReceipt(failed)) return { text: 'The payment failed.', metadata: failure(history, failed.errorReason ?? 'payment_failed') }
  if (last.type === 'payment.error') return { text: last.message, metadata: failure(history, last.code) }
  return { text: 'The payment was accepted.', metadata: { [X402.status]: 'payment-completed', [X402.receipts]: history } }
}

function failure(history: Json, error: string): Struct {
  return { [X402.status]: 'payment-failed', [X402.receipts]: history, [X402.error]: error }
}

function asAccepted({ payment_id }: Extract<Outcome, { type: 'payment.accepted' }>): Receipt {
  return { success: true, transaction: payment_id, network: '' }
}

function asRefused({ code }: Extract<Outcome, { type: 'payment.error' }>): Receipt {
  return { success: false, transaction: '', network: '', errorReason: code }
}
