/**
 * Amounts of money are whole numbers of 10⁻⁹ of their currency's unit, as BigInt: no sum is ever rounded. What a price and a count make
 * is computed exactly and rounded once, up, to the next whole number: see `ratesOf`.
 */

const DECIMALS = 9
const UNIT = 10n ** BigInt(DECIMALS)
/** The most that one amount may be: a quadrillion units. */
const MOST = 10n ** 15n * UNIT

const AMOUNT = /^(\d{1,16})(?:\.(\d{1,9}))?$/
const CURRENCY = /^[A-Z][A-Z0-9]{1,15}$/

/** The amount that a text such as `0.05` names. Undefined: it is negative, too large, has more than nine decimals, or is no number. */
export function parseAmount(text: unknown): bigint | undefined {
  const [, whole, decimals = ''] = (typeof text === 'string' && AMOUNT.exec(text)) || []
  if (whole === undefined) return undefined
  const amount = BigInt(whole) * UNIT + BigInt(decimals.padEnd(DECIMALS, '0'))
  return amount > MOST ? undefined : amount
}

/** An amount with two decimals, or with as many as it needs. */
export function formatAmount(amount: bigint): string {
  const sign = amount < 0n ? '-' : ''
  const digits = (amount < 0n ? -amount : amount).toString().padStart(DECIMALS + 1, '0')
  const decimals = digits.slice(-DECIMALS).replace(/0+$/, '').padEnd(2, '0')
  return `${sign}${digits.slice(0, -DECIMALS)}.${decimals}`
}

/** True for names of currencies: `USD`, `EUR`, `USDC`. Only in capitals: `usd` would be another currency than `USD`. */
export function isCurrency(text: unknown): text is string {
  return typeof text === 'string' && CURRENCY.test(text)
}
