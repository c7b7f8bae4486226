/** Payments by the extension a2a-x402: they are in the metadata of messages of the same task. */
import type { Draft, EventOf } from '../../../protocol/events.ts'
import { isRecord, type Json } from '../../../protocol/json.ts'
import type { Payment } from '../../../protocol/payment.ts'
import { X402 } from '../../../wire/a2a/extensions.ts'
import type { Message, Struct } from '../model.ts'

/** How long an offer holds if the agent does not say. */
const OFFER_SECONDS = 600

/** The metadata of a question for payment: every way to pay. */
export function offer({ requirements, extra }: Draft<EventOf<'payment.required'>>, now: number): Struct {
  const { amount, currency, schemes = [{ scheme: 'token' }], reason = 'Payment required', expires_at } = requirements
  const seconds = expires_at === undefined ? OFFER_SECONDS : Math.max(0, Math.floor((expires_at - now) / 1000))
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
    extra: { amount, currency, ...(min_amount !== undefined && { min_amount }), ...(extra as Record<string, Json> | undefined) },
  }))
  return { [X402.status]: 'payment-required', [X402.required]: { x402Version: 1, error: reason, accepts } }
}

/** The payment in a message. */
export function paymentIn({ metadata }: Message): Payment | undefined {
  const payload = metadata?.[X402.payload]
  if (typeof payload === 'string') return { scheme: 'token', token: payload }
  if (!isRecord(payload)) return undefined
  // Version 2 has scheme and network in `accepted`.
  const { scheme, network } = isRecord(payload['accepted']) ? payload['accepted'] : payload
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

/** What became of the payments of a response; undefined if there were none. */
export function receipts(outcomes: readonly Outcome[]): { readonly text: string; readonly metadata: Struct } | undefined {
  const last = outcomes.at(-1)
  if (!last) return undefined
  const history = outcomes.map((outcome) =>
    outcome.type === 'payment.accepted'
      ? { success: true, transaction: outcome.payment_id, network: '' }
      : { success: false, transaction: '', network: '', errorReason: outcome.code },
  )
  if (last.type === 'payment.accepted') {
    return { text: 'The payment was accepted.', metadata: { [X402.status]: 'payment-completed', [X402.receipts]: history } }
  }
  return { text: last.message, metadata: { [X402.status]: 'payment-failed', [X402.receipts]: history, [X402.error]: last.code } }
}
