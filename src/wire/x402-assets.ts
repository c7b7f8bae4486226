import { formatAmount } from '../protocol/money.ts'

/** Dollars as contracts: USDC on Base and on its test network. All of them have six decimals. */
export const DOLLARS: Readonly<Record<string, number>> = {
  '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913': 6,
  '0x036cbd53842c5426634e7929541ec2318f3dcf7e': 6,
}

/**
 * What one of the `accepts` of x402 costs, as a text such as `0.05`. V1 has another name for the amount. Undefined: it cannot be told, or
 * has two amounts that differ: what is signed would be the one that the signer reads, and not the one that was looked at.
 */
export function x402Amount(
  accept: Readonly<Record<string, unknown>>,
  assets: Readonly<Record<string, number>> = DOLLARS,
): string | undefined {
  const { asset, maxAmountRequired, amount = maxAmountRequired } = accept
  if (maxAmountRequired !== undefined && maxAmountRequired !== amount) return undefined
  const name = typeof asset === 'string' ? asset.toLowerCase() : ''
  const decimals = Object.hasOwn(assets, name) ? assets[name] : undefined
  if (decimals === undefined || typeof amount !== 'string' || !/^\d{1,30}$/.test(amount)) return undefined
  const places = 9 - decimals
  // Of a coin with more decimals than we count, a part counts as a whole.
  const exact =
    places >= 0 ? BigInt(amount) * 10n ** BigInt(places) : (BigInt(amount) + 10n ** BigInt(-places) - 1n) / 10n ** BigInt(-places)
  return formatAmount(exact)
}
