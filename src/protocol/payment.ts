import * as z from 'zod/mini'
import { Slot } from './json.ts'

export { DECLINED } from './wallet.ts'

/** UAMP events §7.2. */
export const PaymentScheme = z.object({
  scheme: z.string(),
  network: z.optional(z.string()),
  address: z.optional(z.string()),
  min_amount: z.optional(z.string()),
  max_amount: z.optional(z.string()),
})
export type PaymentScheme = z.infer<typeof PaymentScheme>

export const PaymentRequirements = z.object({
  amount: z.string(),
  currency: z.string(),
  schemes: z.optional(z.array(PaymentScheme)),
  expires_at: z.optional(z.number()),
  reason: z.optional(z.string()),
  ap2: z.optional(
    z.object({
      mandate_uri: z.optional(z.string()),
      credential_types: z.optional(z.array(z.string())),
      checkout_session_uri: z.optional(z.string()),
    }),
  ),
})
export type PaymentRequirements = z.infer<typeof PaymentRequirements>

export const Payment = z.object({
  scheme: z.string(),
  network: z.optional(z.string()),
  token: z.optional(z.string()),
  proof: z.optional(z.unknown()),
  amount: z.optional(z.string()),
  ap2_credential: z.optional(Slot),
})
export type Payment = z.infer<typeof Payment>

/** A `payment_token` as a payment. */
export function tokenPayment(token: string | undefined): Payment | undefined {
  return token === undefined ? undefined : { scheme: 'token', token }
}
