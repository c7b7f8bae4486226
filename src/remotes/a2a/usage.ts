import { uampIn } from '../../protocol/extensions.ts'
import { isRecord } from '../../protocol/json.ts'
import type { Usage } from '../../protocol/usage.ts'
import type { Struct } from './model.ts'

/** A2A has no field for what an answer cost; agents put it into metadata, under the names of whose model they use. */
const NAMES: Readonly<Record<'input_tokens' | 'output_tokens' | 'total_tokens', readonly string[]>> = {
  input_tokens: ['input_tokens', 'inputTokens', 'prompt_tokens', 'promptTokens', 'promptTokenCount'],
  output_tokens: ['output_tokens', 'outputTokens', 'completion_tokens', 'completionTokens', 'candidatesTokenCount'],
  total_tokens: ['total_tokens', 'totalTokens', 'totalTokenCount'],
}
const PLACES = ['usage', 'token_usage', 'tokenUsage', 'adk_usage_metadata']

export function usageIn(metadata: Struct | undefined): Usage | undefined {
  const places = [uampIn(metadata)['usage'], ...PLACES.map((name) => metadata?.[name])]
  const given = places.find(isRecord)
  if (!given) return undefined
  const counts = Object.entries(NAMES).flatMap(([name, names]) => {
    const value = names.map((other) => given[other]).find((count) => typeof count === 'number' && count >= 0)
    return value === undefined ? [] : [[name, value]]
  })
  return counts.length > 0 ? (Object.fromEntries(counts) as Usage) : undefined
}
