import type { Usage } from '../../protocol/usage.ts'
import type { AgentPrice, FreeQuota } from '../ports/payments.ts'
import type { ToolPrice } from '../ports/skill.ts'
import { isCurrency, parseAmount } from '../../protocol/money.ts'

const PER_MILLION = 1_000_000n
/** Seconds are exact to a millionth, and more than a century of them is a mistake. */
const MOST_SECONDS = 4e9
/** The amounts that a price may have. */
const AMOUNTS = ['call', 'input', 'cached', 'output', 'audioSecond', 'reserve'] as const
const FIELDS: readonly string[] = ['currency', ...AMOUNTS, 'free', 'tools']
const PERIODS: readonly FreeQuota['per'][] = ['hour', 'day', 'month']

/** Throws a `TypeError` that says what is wrong with a price. */
export function checkPrice<P extends AgentPrice>(price: P): P {
  if (typeof price !== 'object') throw new TypeError(`A price is an object such as { call: "0.05" }, but not ${JSON.stringify(price)}`)
  // An agent whose price is misspelt would be free.
  const unknown = Object.keys(price).find((name) => !FIELDS.includes(name))
  if (unknown !== undefined) throw new TypeError(`A price has no field "${unknown}": there are ${FIELDS.join(', ')}`)
  const { currency = 'USD', free, tools = {} } = price
  checkCurrency(currency)
  for (const name of AMOUNTS) if (price[name] !== undefined) amountIn(price[name])
  for (const [name, tool] of Object.entries(tools)) checkToolPrice(name, toolPriceOf(tool, currency))
  if (free && !(Number.isSafeInteger(free.calls) && free.calls >= 0)) throw new TypeError('The number of free calls is a whole number')
  if (free && !PERIODS.includes(free.per)) throw new TypeError(`Free calls are counted per ${PERIODS.join(', ')}`)
  return price
}

/** Throws a `TypeError` that says what is wrong with the price of a tool. */
export function checkToolPrice(name: string, price: ToolPrice): void {
  checkCurrency(price.currency ?? 'USD')
  if ('amount' in price) amountIn(price.amount)
  else if (typeof price.lock !== 'function') throw new TypeError(`The price of the tool "${name}" needs an "amount", or a function "lock"`)
}

/** A tool's price, which may be written as an amount. */
export function toolPriceOf(price: string | ToolPrice, currency: string | undefined): ToolPrice {
  if (typeof price === 'string') return { amount: price, ...(currency !== undefined && { currency }) }
  return price.currency === undefined && currency !== undefined ? { ...price, currency } : price
}

/** What usage costs. The sum is computed exactly and rounded once, up. */
export function ratesOf({ input, cached, output, audioSecond }: AgentPrice): {
  readonly perUse: boolean
  readonly perSecond: boolean
  cost(usage: Usage): bigint
} {
  const rate = (text: string | undefined): bigint => (text === undefined ? 0n : amountIn(text))
  const [ofInput, ofOutput, ofAudio] = [rate(input), rate(output), rate(audioSecond)]
  const ofCached = cached === undefined ? ofInput : rate(cached)
  return {
    perUse: [input, cached, output, audioSecond].some((text) => text !== undefined),
    perSecond: audioSecond !== undefined,
    cost(usage) {
      const { fresh, fromCache, said, microseconds } = countsIn(usage)
      // Both tokens and seconds are counted in millionths here.
      const millionths = fresh * ofInput + fromCache * ofCached + said * ofOutput + microseconds * ofAudio
      return (millionths + PER_MILLION - 1n) / PER_MILLION
    },
  }
}

/** Tokens as they are paid for: the exact fields where a provider has them. */
function countsIn(usage: Usage): Record<'fresh' | 'fromCache' | 'said' | 'microseconds', bigint> {
  const { input_tokens, cached_tokens, input_uncached, cache_read, cache_write, output, output_tokens, audio } = usage
  const fromCache = whole(cache_read ?? cached_tokens)
  const all = whole(input_tokens)
  // Some providers leave the cache out of `input_tokens`. It then may be smaller than what came from there.
  const rest = all >= fromCache ? all - fromCache : all
  const fresh = input_uncached === undefined ? rest : whole(input_uncached) + whole(cache_write)
  const microseconds = microsecondsIn(audio?.input_seconds) + microsecondsIn(audio?.output_seconds)
  return { fresh, fromCache, said: whole(output ?? output_tokens), microseconds }
}

/** A count of an agent may be anything. */
function whole(count: number | undefined): bigint {
  if (count === undefined || !(count > 0)) return 0n
  return BigInt(Math.ceil(Math.min(count, Number.MAX_SAFE_INTEGER)))
}

function microsecondsIn(seconds: number | undefined): bigint {
  if (seconds === undefined || !(seconds > 0)) return 0n
  return BigInt(Math.round(Math.min(seconds, MOST_SECONDS) * 1e6))
}

function amountIn(text: string): bigint {
  const amount = parseAmount(text)
  if (amount === undefined) throw new TypeError(`A price is a text such as "0.05", but not ${JSON.stringify(text)}`)
  return amount
}

function checkCurrency(currency: string): void {
  if (!isCurrency(currency)) throw new TypeError(`A currency is a name in capitals, such as "USD", but not ${JSON.stringify(currency)}`)
}
