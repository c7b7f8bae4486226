import { fieldsOf, isRecord, recordsIn } from '../../protocol/records.ts'
import { parseAmount } from '../../protocol/money.ts'
import type { Wallet } from '../../protocol/wallet.ts'
import { DOLLARS, x402Amount } from '../../wire/x402-assets.ts'

/** The part of an `x402Client` of `@x402/core` that the wallet uses. */
export interface X402Signer {
  createPaymentPayload(required: never): Promise<object>
}

export interface X402WalletOptions {
  /** The decimals of each contract that counts as the currency of the demand. Default: USDC on Base and its test network. */
  readonly assets?: Readonly<Record<string, number>>
  /** What these contracts are worth, one for one. Default: `USD`. */
  readonly currency?: string
}

/**
 * Pays with signed proofs of x402. It signs for known contracts only, and for no more than the agent said in `requirements.amount`, which
 * is what a budget counts.
 */
export function x402Wallet(signer: X402Signer, { assets = DOLLARS, currency = 'USD' }: X402WalletOptions = {}): Wallet {
  const known = Object.fromEntries(Object.entries(assets).map(([asset, decimals]) => [asset.toLowerCase(), decimals]))
  return {
    async pay({ requirements, extra }) {
      const required = extra?.['x402']
      if (!isRecord(required)) return { declined: 'It does not take x402' }
      if (requirements.currency !== currency) return { declined: `It wants ${requirements.currency}, and the wallet has ${currency}` }
      const most = parseAmount(requirements.amount)
      const accepts = recordsIn(required['accepts']).filter((accept) => {
        const cost = parseAmount(x402Amount(accept, known))
        return cost !== undefined && most !== undefined && cost <= most
      })
      if (accepts.length === 0) return { declined: `It does not take x402 for ${requirements.amount} ${requirements.currency}` }
      const proof = await signer.createPaymentPayload({ ...required, accepts } as never)
      const { accepted, scheme, network } = fieldsOf(proof)
      const chosen = { scheme, network, ...fieldsOf(accepted) }
      return {
        scheme: typeof chosen.scheme === 'string' ? chosen.scheme : 'exact',
        ...(typeof chosen.network === 'string' && { network: chosen.network }),
        proof,
        amount: requirements.amount,
      }
    },
  }
}
