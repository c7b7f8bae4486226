import type { Usage } from '../../protocol/usage.ts'
import type { AgentPrice } from '../ports/payments.ts'
import { costOf, isCurrency, parseAmount } from './money.ts'

const PER_MILLION = 1_000_000n

/** Throws a `TypeError` that says what is wrong with a price. */
export function checkPrice(price: AgentPrice): AgentPrice {
  const { currency = 'USD', free, call, input, cached, output, audioSecond, reserve } = price
  if (!isCurrency(currency)) throw new TypeError(`A currency is a name such as "USD", but not ${JSON.stringify(currency)}`)
  for (const amount of [call, input, cached, output, audioSecond, reserve]) if (amount !== undefined) amountIn(amount)
  if (free && !(Number.isInteger(free.calls) && free.calls >= 0)) throw new TypeError('The number of free calls is a whole number')
  return price
}

/** What usage costs. The sum is computed exactly and rounded once. */
export function ratesOf({ input, cached, output, audioSecond }: AgentPrice): {
  readonly perUse: boolean
  cost(usage: Usage): bigint
} {
  const rate = (text: string | undefined): bigint => (text === undefined ? 0n : amountIn(text))
  const [ofInput, ofOutput, ofAudio] = [rate(input), rate(output), rate(audioSecond)]
  const ofCached = cached === undefined ? ofInput : rate(cached)
  return {
    perUse: [input, cached, output, audioSecond].some((text) => text !== undefined),
    cost(usage) {
      const { fresh, fromCache, said, seconds } = countsIn(usage)
      const tokens = BigInt(fresh) * ofInput + BigInt(fromCache) * ofCached + BigInt(said) * ofOutput
      return (tokens + PER_MILLION - 1n) / PER_MILLION + costOf(ofAudio, seconds)
    },
  }
}

/** Tokens as they are paid for: the exact fields where a provider has them. */
function countsIn(usage: Usage): { fresh: number; fromCache: number; said: number; seconds: number } {
  const { input_tokens, cached_tokens, input_uncached, cache_read, cache_write = 0, output, output_tokens, audio } = usage
  const fromCache = whole(cache_read ?? cached_tokens)
  const fresh = input_uncached === undefined ? Math.max(0, whole(input_tokens) - fromCache) : whole(input_uncached) + whole(cache_write)
  const seconds = (audio?.input_seconds ?? 0) + (audio?.output_seconds ?? 0)
  return { fresh, fromCache, said: whole(output_tokens ?? output), seconds }
}

/** A count of a provider may be anything. */
function whole(count: number | undefined): number {
  return count !== undefined && count > 0 && Number.isFinite(count) ? Math.min(Math.ceil(count), Number.MAX_SAFE_INTEGER) : 0
}

function amountIn(text: string): bigint {
  const amount = parseAmount(text)
  if (amount === undefined) throw new TypeError(`A price is a text such as "0.05", but not ${JSON.stringify(text)}`)
  return amount
}
