import type { SessionConfig } from '../../protocol/session-config.ts'
import { fieldsOf, isRecord } from '../../protocol/json.ts'
import { wholeInput, type Usage } from '../../protocol/usage.ts'

/** What is known of a response before the agent says anything. */
export interface ResponseHead {
  readonly id: string
  readonly agent: string
  /** The settings of the request, which the client is told back. */
  readonly config: SessionConfig
}

export interface ResponseState {
  readonly status: 'queued' | 'in_progress' | 'completed' | 'incomplete' | 'failed' | 'cancelled'
  readonly output: readonly object[]
  readonly completedAt: number | null
  readonly error: object | null
  readonly reason: 'max_output_tokens' | 'content_filter' | undefined
  readonly usage: object | null
  readonly signature: string | undefined
  /** What was paid. */
  readonly paid: object | undefined
}

/** The settings that a stored response was asked with. */
export function settingsOf({ extensions }: SessionConfig): Readonly<Record<string, unknown>> {
  return fieldsOf(extensions?.['openai'])
}

/** The time at which a response began is kept with its settings, so that it never changes. */
const BEGUN = 'responses'

export function withBegun(config: SessionConfig, now: number): SessionConfig {
  return { ...config, extensions: { ...config.extensions, [BEGUN]: { created_at: Math.floor(now / 1000) } } }
}

/**
 * The response object, with every field that OpenAI's type and Open Responses demand. Settings that the client left out have OpenAI's
 * defaults, as Open Responses allows null for few of them.
 */
export function responseObject({ id, agent, config }: ResponseHead, state: ResponseState): object {
  const settings = settingsOf(config)
  const text = fieldsOf(settings['text'])
  const { tools, reasoning } = settings
  const given = (name: string, usual: unknown): unknown => settings[name] ?? usual
  return {
    id,
    object: 'response',
    created_at: Number(fieldsOf(config.extensions?.[BEGUN])['created_at'] ?? 0),
    status: state.status,
    background: given('background', false),
    completed_at: state.completedAt,
    error: state.error,
    incomplete_details: state.reason === undefined ? null : { reason: state.reason },
    instructions: given('instructions', null),
    max_output_tokens: given('max_output_tokens', null),
    max_tool_calls: given('max_tool_calls', null),
    model: agent,
    output: state.output,
    parallel_tool_calls: given('parallel_tool_calls', true),
    previous_response_id: given('previous_response_id', null),
    prompt_cache_key: given('prompt_cache_key', null),
    reasoning: { effort: null, summary: null, ...fieldsOf(reasoning) },
    safety_identifier: given('safety_identifier', null),
    service_tier: 'default',
    store: given('store', true),
    temperature: given('temperature', 1),
    text: { ...text, format: text['format'] || { type: 'text' } },
    tool_choice: given('tool_choice', 'auto'),
    tools: Array.isArray(tools) ? tools.map(shownTool) : [],
    top_logprobs: given('top_logprobs', 0),
    top_p: given('top_p', 1),
    presence_penalty: given('presence_penalty', 0),
    frequency_penalty: given('frequency_penalty', 0),
    truncation: given('truncation', 'disabled'),
    usage: state.usage,
    user: given('user', null),
    metadata: given('metadata', {}),
    ...(state.signature !== undefined && { signature: state.signature }),
    ...(state.paid && { uamp: state.paid }),
  }
}

function shownTool(tool: unknown): unknown {
  if (!isRecord(tool) || tool['type'] !== 'function') return tool
  return { description: null, parameters: null, strict: null, ...tool }
}

/** Clients add these numbers up, so an agent that tells none counts as zero. */
export function shownUsage(usage: Usage = {}): object {
  const input_tokens = wholeInput(usage)
  const { output_tokens = 0, cached_tokens, cache_read = 0, cache_write = 0, reasoning = 0, cost } = usage
  return {
    input_tokens,
    input_tokens_details: { cached_tokens: cached_tokens ?? cache_read, cache_write_tokens: cache_write },
    output_tokens,
    output_tokens_details: { reasoning_tokens: reasoning },
    total_tokens: input_tokens + output_tokens,
    ...(cost && { cost }),
  }
}
