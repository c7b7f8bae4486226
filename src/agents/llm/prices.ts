import type { ModelTable, Price } from '../../core/ports/models.ts'
import type { Usage } from '../../protocol/usage.ts'
import { TABLE } from './price-table.ts'

/** Prices by `provider/model`. A name also covers its dated versions: `gpt-5` covers `gpt-5-2025-08-07`. */
export type PriceTable = Readonly<Record<string, Price>>

/** Public list prices, and the tokens that fit into a request. They change: `uamp models update` gets newer ones. */
export const MODELS: ModelTable = {
  ...TABLE,
  // The table has older ones.
  'deepseek/deepseek-chat': { input: 0.28, output: 0.42, cacheRead: 0.028, contextWindow: 131_072 },
  'deepseek/deepseek-reasoner': { input: 0.28, output: 0.42, cacheRead: 0.028, contextWindow: 131_072 },
}
/** Public list prices. They change: pass your own where a cent matters. */
export const PRICES: PriceTable = MODELS

/**
 * What may follow a name in the table: a date, `latest`, `preview` and its date; but not `-mini`, which is another model. `(?!\d)` takes
 * a number whole, because the pattern would otherwise try every way to cut a long one.
 */
const VERSION = /^[-@:](?:latest|preview|exp|\d{2,}(?!\d))(?:[-@:.]?(?:latest|preview|exp|\d+(?!\d)))*$/

/** The row of a `provider/model`, or of the model that it is a version of. */
export function rowOf<T>(name: string, table: Readonly<Record<string, T>>): T | undefined {
  if (Object.hasOwn(table, name)) return table[name]
  let best = ''
  for (const known of Object.keys(table))
    if (known.length > best.length && name.startsWith(known) && VERSION.test(name.slice(known.length))) best = known
  return best === '' ? undefined : table[best]
}

export function priceOf(provider: string, model: string, table: PriceTable = PRICES): Price | undefined {
  return rowOf(`${provider}/${model}`, table)
}

/** The cost of the tokens. Prefers the exact fields, because `input_tokens` has another meaning with each provider. */
export function costOf(usage: Usage, { input, output, cacheRead = input, cacheWrite = input }: Price): NonNullable<Usage['cost']> {
  const { input_uncached: uncached = usage.input_tokens ?? 0, cache_read: read = 0, cache_write: written = 0 } = usage
  const input_cost = (uncached * input + read * cacheRead + written * cacheWrite) / 1e6
  const output_cost = ((usage.output ?? usage.output_tokens ?? 0) * output) / 1e6
  return { input_cost, output_cost, total_cost: input_cost + output_cost, currency: 'USD' }
}
