import type { Usage } from '../../protocol/usage.ts'

/** US dollars for a million tokens. Without a price of their own, cached tokens cost the same as input (UAMP events §8.7). */
export interface Price {
  readonly input: number
  readonly output: number
  readonly cacheRead?: number | undefined
  readonly cacheWrite?: number | undefined
}

/** Prices by `provider/model`. A name also covers its dated versions: `gpt-5` covers `gpt-5-2025-08-07`. */
export type PriceTable = Readonly<Record<string, Price>>

/** Anthropic charges a tenth of the input price for a cache read, and a quarter more for a cache write. */
const claude = (input: number, output: number): Price => ({ input, output, cacheRead: input / 10, cacheWrite: input * 1.25 })

/** Public list prices. They change: pass your own where a cent matters. */
export const PRICES: PriceTable = {
  'openai/gpt-5': { input: 1.25, output: 10, cacheRead: 0.125 },
  'openai/gpt-5-mini': { input: 0.25, output: 2, cacheRead: 0.025 },
  'openai/gpt-5-nano': { input: 0.05, output: 0.4, cacheRead: 0.005 },
  'openai/gpt-5-pro': { input: 15, output: 120 },
  'openai/gpt-5.1': { input: 1.25, output: 10, cacheRead: 0.125 },
  'openai/gpt-4.1': { input: 2, output: 8, cacheRead: 0.5 },
  'openai/gpt-4.1-mini': { input: 0.4, output: 1.6, cacheRead: 0.1 },
  'openai/gpt-4.1-nano': { input: 0.1, output: 0.4, cacheRead: 0.025 },
  'openai/gpt-4o': { input: 2.5, output: 10, cacheRead: 1.25 },
  'openai/gpt-4o-mini': { input: 0.15, output: 0.6, cacheRead: 0.075 },
  'openai/o3': { input: 2, output: 8, cacheRead: 0.5 },
  'openai/o4-mini': { input: 1.1, output: 4.4, cacheRead: 0.275 },
  'anthropic/claude-opus-4-5': claude(5, 25),
  'anthropic/claude-opus-4-1': claude(15, 75),
  'anthropic/claude-opus-4': claude(15, 75),
  'anthropic/claude-sonnet-4-5': claude(3, 15),
  'anthropic/claude-sonnet-4': claude(3, 15),
  'anthropic/claude-haiku-4-5': claude(1, 5),
  'anthropic/claude-3-5-haiku': claude(0.8, 4),
  'google/gemini-3-pro': { input: 2, output: 12, cacheRead: 0.2 },
  'google/gemini-2.5-pro': { input: 1.25, output: 10, cacheRead: 0.125 },
  'google/gemini-2.5-flash': { input: 0.3, output: 2.5, cacheRead: 0.03 },
  'google/gemini-2.5-flash-lite': { input: 0.1, output: 0.4, cacheRead: 0.01 },
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
