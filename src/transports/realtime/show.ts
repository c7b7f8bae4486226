/** What both dialects show alike. */
import type { Slot } from '../../protocol/json.ts'
import type { ToolDefinition } from '../../protocol/tools.ts'
import { wholeInput, type Usage } from '../../protocol/usage.ts'
import type { ResponseState } from './model.ts'

export function showTools(tools: readonly ToolDefinition[]): Slot[] {
  return tools.map((tool) => ({ type: 'function', ...tool.function }))
}

/** The fields of a response that have the same name in both dialects, without its items. */
export function showResponse({ id, status, details, usage, conversationId, metadata, settings }: ResponseState): Slot {
  return {
    object: 'realtime.response',
    id,
    status,
    status_details: details,
    conversation_id: conversationId,
    max_output_tokens: settings.maxOutputTokens,
    metadata,
    usage: usage ? showUsage(usage) : null,
  }
}

/** Agents do not say how many tokens were sound, so all count as text. */
function showUsage(usage: Usage): Slot {
  const input = wholeInput(usage)
  const { output_tokens: output = 0, cache_read, cached_tokens } = usage
  const cached = cache_read ?? cached_tokens ?? 0
  return {
    total_tokens: input + output,
    input_tokens: input,
    output_tokens: output,
    input_token_details: {
      text_tokens: input,
      audio_tokens: 0,
      image_tokens: 0,
      cached_tokens: cached,
      cached_tokens_details: { text_tokens: cached, audio_tokens: 0, image_tokens: 0 },
    },
    output_token_details: { text_tokens: output, audio_tokens: 0 },
  }
}
