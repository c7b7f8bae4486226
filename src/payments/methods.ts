import type { Accounts } from './accounts.ts'
import { ap2Config, Ap2Method } from './ap2.ts'
import type { PaymentMethod } from './method.ts'
import type { PaymentSettings } from './settings.ts'
import { X402Method, type X402Options } from './x402/method.ts'
import { x402Config } from './x402/settings.ts'

/** The ways to pay that are configured beside tokens. Throws if their settings are wrong. */
export function methodsOf(
  { x402, ap2 }: PaymentSettings,
  given: Omit<X402Options, 'config' | 'accounts'>,
): (accounts: Accounts) => PaymentMethod[] {
  const [chain, mandates] = [x402 && x402Config(x402), ap2 && ap2Config(ap2)]
  return (accounts) => [
    ...(mandates ? [new Ap2Method({ ...given, accounts, config: mandates })] : []),
    ...(chain ? [new X402Method({ ...given, accounts, config: chain })] : []),
  ]
}
