import { UampError } from './errors.ts'
import type { EventOf } from './events.ts'
import type { Slot } from './json.ts'
import type { PaymentScheme } from './payment.ts'

/** How long an offer to pay by token holds. */
const TOKEN_SECONDS = 300

/** A demand for payment as a refusal: over HTTP it is 402, with every way to pay. */
export function paymentRefusal({ requirements, extra = {} }: EventOf<'payment.required'>): UampError {
  const { amount, currency, schemes = [{ scheme: 'token' }], reason, expires_at, ap2 } = requirements
  const { x402, ...more } = extra
  const common = { amount, currency, ...(expires_at !== undefined && { expires_at }), ...(ap2 && { ap2 }) }
  const accepts = schemes.map((scheme) => {
    const all = { ...more, ...ofScheme(scheme), ...(scheme.scheme === 'crypto' && x402 !== undefined && { x402 }) }
    return { ...common, ...(scheme.scheme === 'token' && { asset: currency, maxTimeoutSeconds: TOKEN_SECONDS }), extra: all, ...scheme }
  })
  return new UampError('payment_required', reason ?? `Payment required: ${amount} ${currency}`, {
    details: { accepts: accepts.map(filled), ...(x402 !== undefined && { x402 }) },
  })
}

function ofScheme({ scheme }: PaymentScheme): Slot {
  return scheme === 'token' ? { tokenType: 'jwt' } : {}
}

function filled({ extra, ...entry }: Slot & { readonly extra: Slot }): Slot {
  return Object.keys(extra).length > 0 ? { ...entry, extra } : entry
}
