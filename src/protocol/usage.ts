import * as z from 'zod/mini'

const count = z.optional(z.number())

/**
 * UAMP events §8.7. `input_tokens` keeps the meaning that each provider gives it; the exact fields beside it
 * (`input_uncached` … `reasoning`) mean the same everywhere, and cost is computed from them.
 */
export const Usage = z.object({
  input_tokens: count,
  output_tokens: count,
  total_tokens: count,
  cached_tokens: count,
  input_uncached: count,
  cache_read: count,
  cache_write: count,
  output: count,
  reasoning: count,
  cost: z.optional(z.object({ input_cost: count, output_cost: count, total_cost: count, currency: z.optional(z.string()) })),
  audio: z.optional(z.object({ input_seconds: count, output_seconds: count })),
})
export type Usage = z.infer<typeof Usage>

const COUNTS = [
  'input_tokens',
  'output_tokens',
  'total_tokens',
  'cached_tokens',
  'input_uncached',
  'cache_read',
  'cache_write',
  'output',
  'reasoning',
] as const

function addCounts<K extends string>(
  keys: readonly K[],
  a: Partial<Record<K, number | undefined>> | undefined,
  b: Partial<Record<K, number | undefined>> | undefined,
): Partial<Record<K, number>> {
  const sum: Partial<Record<K, number>> = {}
  for (const key of keys) if (a?.[key] !== undefined || b?.[key] !== undefined) sum[key] = (a?.[key] ?? 0) + (b?.[key] ?? 0)
  return sum
}

/** `usage.delta` events are increments: their sum is the usage of the response. */
export function addUsage(a: Usage | undefined, b: Usage): Usage {
  return {
    ...addCounts(COUNTS, a, b),
    ...((a?.cost ?? b.cost) && {
      cost: { ...addCounts(['input_cost', 'output_cost', 'total_cost'], a?.cost, b.cost), currency: b.cost?.currency ?? a?.cost?.currency },
    }),
    ...((a?.audio ?? b.audio) && { audio: addCounts(['input_seconds', 'output_seconds'], a?.audio, b.audio) }),
  }
}

/** All that was read, what came from a cache with it: what OpenAI counts as input. Some providers count `input_tokens` without it. */
export function wholeInput({ input_tokens, input_uncached, cache_read = 0, cache_write = 0 }: Usage): number {
  return input_uncached === undefined ? (input_tokens ?? 0) : input_uncached + cache_read + cache_write
}
