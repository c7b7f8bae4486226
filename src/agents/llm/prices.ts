import type { Usage } from '../../protocol/usage.ts'
import { TABLE } from './price-table.ts'

/** US dollars for a million tokens. Without a price of their own, cached tokens cost the same as input (UAMP events §8.7). */
export interface Price {
  readonly input: number
  readonly output: number
  readonly cacheRead?: number | undefined
  readonly cacheWrite?: number | undefined
}

/** Prices by `provider/model`. A name also covers its dated versions: `gpt-5` covers `gpt-5-2025-08-07`. */
export type PriceTable = Readonly<Record<string, Price>>

/** Public list prices. They change: pass your own where a cent matters. */
export const PRICES: PriceTable = {
  ...TABLE,
  // The table has older ones.
  'deepseek/deepseek-chat': { input: 0.28, output: 0.42, cacheRead: 0.028 },
  'deepseek/deepseek-reasoner': { input: 0.28, output: 0.42, cacheRead: 0.028 },
}

/**
 * What may follow a name in the table: a date, `latest`, `preview` and its date; but not `-mini`, which is another model. `(?!\d)` takes
 * a number whole, because the pattern would otherwise try every way to cut a long one.
 */
const VERSION = /^[-@:](?:latest|preview|exp|\d{2,}(?!\d))(?:[-@:.]?(?:latest|preview|exp|\d+(?!\d)))*$/

export function priceOf(provider: string, model: string, table: PriceTable = PRICES): Price | undefined {
  const name = `${provider}/${model}`
  if (Object.hasOwn(table, name)) return table[name]
  let best = ''
  for (const known of Object.keys(table)) {
    if (known.length > best.length && name.startsWith(known) && VERSION.test(name.slice(known.length))) best = known
  }
  return best === '' ? undefined : table[best]
}

/** The cost of the tokens. Prefers the exact fields, because `input_tokens` has another meaning with each provider. */
export function costOf(usage: Usage, { input, output, cacheRead = input, cacheWrite = input }: Price): NonNullable<Usage['cost']> {
  const { input_uncached: uncached = usage.input_tokens ?? 0, cache_read: read = 0, cache_write: written = 0 } = usage
  const input_cost = (uncached * input + read * cacheRead + written * cacheWrite) / 1e6
  const output_cost = ((usage.output ?? usage.output_tokens ?? 0) * output) / 1e6
  return { input_cost, output_cost, total_cost: input_cost + output_cost, currency: 'USD' }
}
