import { isRecord } from '../../protocol/json.ts'
import type { Usage } from '../../protocol/usage.ts'

/** What an answer used (UAMP events §8.7). OpenAI counts cached tokens among those of the prompt. */
export function toUsage(given: Readonly<Record<string, unknown>>): Usage {
  const input = count(given['prompt_tokens'])
  const output = count(given['completion_tokens'])
  const cached = count(inside(given, 'prompt_tokens_details')['cached_tokens']) ?? count(given['prompt_cache_hit_tokens'])
  const reasoning = count(inside(given, 'completion_tokens_details')['reasoning_tokens'])
  const cost = inside(given, 'cost')
  return {
    ...(input !== undefined && { input_tokens: input, input_uncached: Math.max(0, input - (cached ?? 0)) }),
    ...(output !== undefined && { output_tokens: output, output }),
    ...(cached !== undefined && { cache_read: cached, cached_tokens: cached }),
    ...(reasoning !== undefined && { reasoning }),
    ...(count(cost['total_cost']) !== undefined && { cost: costOf(cost) }),
  }
}

function costOf({ input_cost, output_cost, total_cost, currency }: Readonly<Record<string, unknown>>): Usage['cost'] {
  const [input, output, total] = [count(input_cost), count(output_cost), count(total_cost)]
  return {
    ...(input !== undefined && { input_cost: input }),
    ...(output !== undefined && { output_cost: output }),
    ...(total !== undefined && { total_cost: total }),
    ...(typeof currency === 'string' && { currency }),
  }
}

function inside(given: Readonly<Record<string, unknown>>, field: string): Readonly<Record<string, unknown>> {
  const value = given[field]
  return isRecord(value) ? value : {}
}

function count(value: unknown): number | undefined {
  return typeof value === 'number' && value >= 0 ? value : undefined
}
