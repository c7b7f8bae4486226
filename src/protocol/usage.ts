import * as z from 'zod/mini'

/** More than a token of the cheapest model needs. */
const COST_DECIMALS = 15

const count = z.optional(z.number())

const counts = {
  input_tokens: count,
  output_tokens: count,
  total_tokens: count,
  cached_tokens: count,
  input_uncached: count,
  cache_read: count,
  cache_write: count,
  output: count,
  reasoning: count,
}
const costs = { input_cost: count, output_cost: count, total_cost: count }
const seconds = { input_seconds: count, output_seconds: count }

/**
 * UAMP events §8.7. `input_tokens` keeps each provider's own meaning. The exact fields (`input_uncached` … `reasoning`) mean the same
 * everywhere, and the cost is computed from them.
 */
export const Usage = z.object({
  ...counts,
  cost: z.optional(z.object({ ...costs, currency: z.optional(z.string()) })),
  audio: z.optional(z.object(seconds)),
})
export type Usage = z.infer<typeof Usage>

/** Adds the fields that either side has. */
function added<K extends string>(
  fields: Readonly<Record<K, unknown>>,
  a: Partial<Record<NoInfer<K>, number | undefined>> | undefined,
  b: Partial<Record<NoInfer<K>, number | undefined>> | undefined,
): Partial<Record<K, number>> {
  const sum: Partial<Record<K, number>> = {}
  for (const key in fields) if (a?.[key] !== undefined || b?.[key] !== undefined) sum[key] = (a?.[key] ?? 0) + (b?.[key] ?? 0)
  return sum
}

type Cost = NonNullable<Usage['cost']>

/** Costs are numbers: without rounding, a dime and two of them would be 0.30000000000000004. */
function summedCost(a: Cost, b: Cost): Cost {
  const summed: Cost = { ...added(costs, a, b), currency: b.currency ?? a.currency }
  for (const key of ['input_cost', 'output_cost', 'total_cost'] as const) {
    const sum = summed[key]
    if (sum !== undefined) summed[key] = Number(sum.toFixed(COST_DECIMALS))
  }
  return summed
}

/** `usage.delta` events are increments: their sum is the usage of the response. */
export function addUsage(a: Usage | undefined, b: Usage): Usage {
  const cost = a?.cost && b.cost ? summedCost(a.cost, b.cost) : (a?.cost ?? b.cost)
  return {
    ...added(counts, a, b),
    ...(cost && { cost }),
    ...((a?.audio ?? b.audio) && { audio: added(seconds, a?.audio, b.audio) }),
  }
}

/** All input tokens, including those from a cache, as OpenAI counts them. Some providers leave the cache out of `input_tokens`. */
export function wholeInput({ input_tokens, input_uncached, cache_read = 0, cache_write = 0 }: Usage): number {
  return input_uncached === undefined ? (input_tokens ?? 0) : input_uncached + cache_read + cache_write
}
