import { UampError } from './errors.ts'
import type { EventOf } from './events.ts'
import { fieldsOf, type Slot } from './json.ts'
import type { PaymentScheme } from './payment.ts'

/** How long an offer to pay by token holds. */
const TOKEN_SECONDS = 300

/** How a client of HTTP pays, for the people who read the refusal. */
export const BY_HEADER = 'Send the request again with a payment token in the header X-PAYMENT'

type Question = Pick<EventOf<'payment.required'>, 'requirements' | 'extra'>

/** A demand for payment as a refusal: over HTTP it is 402, with every way to pay. `how` tells people how they pay with a token. */
export function paymentRefusal({ requirements, extra = {} }: Question, how?: string): UampError {
  const { amount, currency, schemes = [{ scheme: 'token' }], reason, expires_at, ap2 } = requirements
  const { x402, ...more } = extra
  const common = {
    amount,
    currency,
    ...(reason !== undefined && { reason }),
    ...(expires_at !== undefined && { expires_at }),
    ...(ap2 && { ap2 }),
  }
  const accepts = schemes.map((scheme) => {
    const all = { ...more, ...ofScheme(scheme), ...(scheme.scheme === 'crypto' && x402 !== undefined && { x402 }) }
    return { ...common, ...(scheme.scheme === 'token' && { asset: currency, maxTimeoutSeconds: TOKEN_SECONDS }), extra: all, ...scheme }
  })
  const takesToken = schemes.some(({ scheme }) => scheme === 'token')
  return new UampError('payment_required', demandInWords({ requirements, extra }, takesToken ? how : undefined), {
    details: { accepts: accepts.map(filled), ...(x402 !== undefined && { x402 }) },
  })
}

/** What is to be paid and for what; and why the last payment was refused, or how to pay. */
export function demandInWords({ requirements: { amount, currency, reason }, extra }: Question, how?: string): string {
  const wanted = `Payment required: ${amount} ${currency}${reason === undefined ? '' : ` (${reason})`}`
  const { message } = fieldsOf(extra?.['error'])
  if (typeof message === 'string') return `${wanted}. The payment was refused: ${message}`
  return how === undefined ? wanted : `${wanted}. ${how}`
}

function ofScheme({ scheme }: PaymentScheme): Slot {
  return scheme === 'token' ? { tokenType: 'jwt' } : {}
}

function filled({ extra, ...entry }: Slot & { readonly extra: Slot }): Slot {
  return Object.keys(extra).length > 0 ? { ...entry, extra } : entry
}
