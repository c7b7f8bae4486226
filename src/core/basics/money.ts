export { formatAmount, isCurrency, parseAmount } from '../../protocol/money.ts'

/** `count` at `price` for every `per`, rounded up. A count that is no whole number, such as seconds, is exact to a millionth. */
export function costOf(price: bigint, count: number, per = 1n): bigint {
  if (!(count > 0)) return 0n
  const millionths = BigInt(Math.ceil(Math.min(count, Number.MAX_SAFE_INTEGER / 1e6) * 1e6))
  const divisor = 1_000_000n * per
  return (price * millionths + divisor - 1n) / divisor
}
