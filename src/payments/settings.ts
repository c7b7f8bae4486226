import { isCurrency, parseAmount } from '../protocol/money.ts'
import type { Payments } from '../core/ports/payments.ts'
import type { PlatformSettings } from './platform.ts'
import { UampError } from '../protocol/errors.ts'
import type { Ap2Settings } from './ap2.ts'
import type { X402Settings } from './x402/settings.ts'

/** How this server is paid. Without any, callers pay with tokens of its own ledger, and from accounts that its operator filled. */
export interface PaymentSettings {
  /** The most that a principal may spend in a day, by currency: `{ USD: '20' }`. Default: no bound. */
  readonly perDay?: Readonly<Record<string, string>> | undefined
  /** A ledger elsewhere, whose tokens are taken beside those of this server. */
  readonly platform?: PlatformSettings | undefined
  /** Payments on a chain. */
  readonly x402?: X402Settings | undefined
  /** Mandates of AP2. Default: every mandate is refused. */
  readonly ap2?: Ap2Settings | undefined
}

export function isPayments(given: Payments | PaymentSettings): given is Payments {
  return 'authorise' in given
}

const FIELDS: readonly string[] = ['perDay', 'platform', 'x402', 'ap2'] satisfies (keyof PaymentSettings)[]

/** Throws for a field that there is not: a bound that is misspelt would be none. */
export function checkSettings(given: PaymentSettings): void {
  const unknown = Object.keys(given).find((name) => !FIELDS.includes(name))
  if (unknown === undefined) return
  throw new UampError('invalid_request', `payments has no field "${unknown}": there are ${FIELDS.join(', ')}`)
}

/** Amounts by currency, as the ledger counts them. Throws where one is none. */
export function amountsIn(given: Readonly<Record<string, string>>, what: string): Record<string, bigint> {
  return Object.fromEntries(
    Object.entries(given).map(([currency, text]) => {
      const amount = parseAmount(text)
      if (amount === undefined || !isCurrency(currency)) {
        throw new UampError(
          'invalid_request',
          `${what} has amounts by currency, such as { USD: '20' }, but not ${currency}: ${JSON.stringify(text)}`,
        )
      }
      return [currency, amount]
    }),
  )
}
