import { UampError } from '../protocol/errors.ts'
import type { EventOf } from '../protocol/events.ts'
import type { Payment } from '../protocol/payment.ts'

/** The newest name first; the older ones are still sent. */
const HEADERS = ['payment-signature', 'x-payment', 'x-payment-token']

/** The payment of a request. Two headers that differ are refused: we must not guess which money to take. */
export function paymentFrom(headers: Headers): Payment | undefined {
  let token: string | undefined
  for (const name of HEADERS) {
    const value = headers.get(name)
    if (value === null) continue
    if (token !== undefined && token !== value) throw new UampError('invalid_request', 'Two payment headers differ: send one')
    token = value
  }
  return token === undefined ? undefined : { scheme: 'token', token }
}

/** A demand for payment as a refusal: over HTTP it is 402, with every way to pay. */
export function paymentRefusal({ requirements, extra }: EventOf<'payment.required'>): UampError {
  const { amount, currency, schemes = [{ scheme: 'token' }], reason, expires_at, ap2 } = requirements
  const common = { amount, currency, ...(expires_at !== undefined && { expires_at }), ...(ap2 && { ap2 }), ...(extra && { extra }) }
  return new UampError('payment_required', reason ?? `Payment required: ${amount} ${currency}`, {
    details: { accepts: schemes.map((scheme) => ({ ...common, ...scheme })) },
  })
}
