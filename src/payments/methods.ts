import type { Accounts } from './accounts.ts'
import type { PaymentMethod } from './method.ts'
import type { PaymentSettings } from './settings.ts'
import { X402Method, type X402Options } from './x402/method.ts'
import { x402Config } from './x402/settings.ts'

/** The ways to pay that are configured beside tokens. Throws if their settings are wrong. */
export function methodsOf({ x402 }: PaymentSettings, given: Omit<X402Options, 'config' | 'accounts'>): (accounts: Accounts) => PaymentMethod[] {
  const config = x402 && x402Config(x402)
  return (accounts) => (config ? [new X402Method({ ...given, accounts, config })] : [])
}
