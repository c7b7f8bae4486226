import type { Draft } from '../../protocol/events.ts'
import { isRecord } from '../../protocol/json.ts'
import { addUsage, type Usage } from '../../protocol/usage.ts'

/** What a run cost, model by model. */
export function usageOf(given: unknown): Draft[] {
  const entries = Array.isArray(given) ? given.filter(isRecord) : []
  if (entries.length === 0) return []
  const sum = entries.reduce<Usage>((before, entry) => addUsage(before, oneOf(entry)), {})
  return [{ type: 'usage.delta', delta: sum }]
}

function oneOf(entry: Readonly<Record<string, unknown>>): Usage {
  const count = (name: string): number | undefined => (typeof entry[name] === 'number' ? entry[name] : undefined)
  return {
    input_tokens: count('inputTokens'),
    output_tokens: count('outputTokens'),
    cached_tokens: count('cachedInputTokens'),
    cache_write: count('cacheWriteInputTokens'),
    reasoning: count('reasoningTokens'),
  }
}
