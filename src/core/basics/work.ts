import { wholeInput, type Usage } from '../../protocol/usage.ts'
import type { Attributes } from '../ports/trace.ts'

/** Usage by OpenTelemetry's names, and the cost by ours. */
export function usageAttributes(usage: Usage): Attributes {
  const { output_tokens, output, cache_read, cached_tokens, reasoning, cost } = usage
  return {
    'gen_ai.usage.input_tokens': wholeInput(usage),
    'gen_ai.usage.output_tokens': output_tokens ?? output,
    'gen_ai.usage.cache_read.input_tokens': cache_read ?? cached_tokens,
    'gen_ai.usage.reasoning.output_tokens': reasoning,
    'uamp.cost': cost?.total_cost,
    'uamp.currency': cost && (cost.currency ?? 'USD'),
  }
}
