import { fieldsOf, isRecord } from '../../protocol/json.ts'
import type { Usage } from '../../protocol/usage.ts'
import { present } from '../../wire/fields.ts'

/** UAMP events §8.7: here `input_tokens` includes the cache, and `cached_tokens` counts what was read from it. */
export function toUsage(told: Readonly<Record<string, unknown>>): Usage {
  const input = count(told['prompt_tokens'])
  const output = count(told['completion_tokens'])
  const prompt = fieldsOf(told['prompt_tokens_details'])
  const completion = fieldsOf(told['completion_tokens_details'])
  // DeepSeek counts hits and misses of the cache beside the sum.
  const read = count(prompt['cached_tokens']) ?? count(told['prompt_cache_hit_tokens'])
  const written = count(prompt['cache_write_tokens'])
  const missed = count(told['prompt_cache_miss_tokens'])
  return present({
    input_tokens: input,
    output_tokens: output,
    total_tokens: count(told['total_tokens']),
    cached_tokens: read,
    input_uncached: missed ?? (input === undefined ? undefined : Math.max(0, input - (read ?? 0) - (written ?? 0))),
    cache_read: read,
    cache_write: written,
    output,
    reasoning: count(completion['reasoning_tokens']) ?? count(told['reasoning_tokens']),
    cost: isRecord(told['cost']) ? costIn(told['cost']) : undefined,
  })
}

/** The cost that another UAMP server reports. */
function costIn({ input_cost, output_cost, total_cost, currency }: Readonly<Record<string, unknown>>): Usage['cost'] {
  if (count(total_cost) === undefined) return undefined
  return present({
    input_cost: count(input_cost),
    output_cost: count(output_cost),
    total_cost: count(total_cost),
    currency: typeof currency === 'string' ? currency : undefined,
  })
}

function count(value: unknown): number | undefined {
  return typeof value === 'number' && value >= 0 ? value : undefined
}
