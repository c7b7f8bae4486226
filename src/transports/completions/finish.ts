import { stopReason } from '../../core/reading/response-fold.ts'
import type { EventOf } from '../../protocol/events.ts'
import { fieldsOf } from '../../protocol/json.ts'
import { addUsage, wholeInput, type Usage } from '../../protocol/usage.ts'

/** Why an answer ended. `pending`: the client has to run calls. */
export function finishReason(
  end: EventOf<'response.done'>,
  { pending, legacy }: { readonly pending: boolean; readonly legacy: boolean },
): string {
  const reason = stopReason(end)
  if (reason === 'length' || reason === 'content_filter') return reason
  if (pending) return legacy ? 'function_call' : 'tool_calls'
  return 'stop'
}

/** What a model of OpenAI's kind said beside its answer: providers tell it with the end. */
export function saidBy(end: EventOf<'response.done'> | undefined): Pick<OpenAiEnd, 'logprobs' | 'system_fingerprint'> {
  return fieldsOf(end?.response.extensions?.['openai'])
}

interface OpenAiEnd {
  readonly logprobs?: unknown
  readonly system_fingerprint?: unknown
}

/** Clients add usage up, so for an agent that reports none it is 0. */
export function toUsage(usages: readonly (Usage | undefined)[]): object {
  const sum = (pick: (usage: Usage) => number | undefined): number =>
    usages.reduce((total, usage) => total + ((usage && pick(usage)) ?? 0), 0)
  const prompt = sum(wholeInput)
  const completion = sum((usage) => usage.output_tokens)
  const cost = usages.reduce<Usage | undefined>((all, usage) => (usage?.cost ? addUsage(all, { cost: usage.cost }) : all), undefined)?.cost
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_tokens_details: { cached_tokens: sum((usage) => usage.cached_tokens ?? usage.cache_read), audio_tokens: 0 },
    completion_tokens_details: { reasoning_tokens: sum((usage) => usage.reasoning), audio_tokens: 0 },
    ...(cost && { cost }),
  }
}
