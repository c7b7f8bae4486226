import type { Accounts } from './accounts.ts'
import { ap2Config, Ap2Method } from './ap2.ts'
import type { PaymentMethod } from './method.ts'
import { PlatformMethod, type PlatformOptions } from './platform.ts'
import type { PaymentSettings } from './settings.ts'
import { X402Method, type X402Options } from './x402/method.ts'
import { x402Config } from './x402/settings.ts'

type Parts = Omit<X402Options, 'config' | 'accounts'> & Pick<PlatformOptions, 'newId' | 'http'>

/** The ways to pay that are configured beside tokens. Throws if their settings are wrong. */
export function methodsOf(
  { x402, ap2, platform }: PaymentSettings,
  given: Parts,
): (accounts: Accounts) => { readonly first: readonly PaymentMethod[]; readonly last: readonly PaymentMethod[] } {
  const [chain, mandates] = [x402 && x402Config(x402), ap2 && ap2Config(ap2)]
  const elsewhere = platform && new PlatformMethod({ ...given, ...platform })
  return (accounts) => ({
    first: [
      ...(mandates ? [new Ap2Method({ ...given, accounts, config: mandates })] : []),
      ...(chain ? [new X402Method({ ...given, accounts, config: chain })] : []),
    ],
    last: elsewhere ? [elsewhere] : [],
  })
}
