import { isRecord } from '../../protocol/json.ts'
import type { SessionConfig } from '../../protocol/session-config.ts'
import type { ToolDefinition } from '../../protocol/tools.ts'
import { present, text } from '../fields.ts'

export type ToolChoice = 'auto' | 'none' | 'required' | { readonly name: string }

/** What a client may set for a model, in OpenAI's words. */
export interface Settings {
  readonly temperature?: number
  readonly top_p?: number
  readonly max_tokens?: number
  readonly stop?: string | readonly string[]
  readonly seed?: number
  readonly frequency_penalty?: number
  readonly presence_penalty?: number
  readonly logprobs?: boolean
  readonly top_logprobs?: number
  readonly logit_bias?: Readonly<Record<string, number>>
  /** The client's user, so that the provider can find one who misuses it. */
  readonly user?: string
  readonly reasoning_effort?: string
  readonly verbosity?: string
  readonly tool_choice?: ToolChoice
  readonly parallel_tool_calls?: boolean
  readonly prompt_cache_key?: string
}

/**
 * The settings of a turn. Those under the provider's own name win over those under `openai`, where clients of OpenAI's protocols put
 * them. Unknown settings, and values of a wrong type, are left out, as the provider would refuse the turn.
 */
export function settingsFor({ extensions }: SessionConfig, provider: string): Settings {
  return { ...read(extensions?.['openai']), ...(provider !== 'openai' && read(extensions?.[provider])) }
}

/** The provider's own extension slot, unread. */
export function ownSlot({ extensions }: SessionConfig, provider: string): Readonly<Record<string, unknown>> {
  const slot = extensions?.[provider]
  return isRecord(slot) ? slot : {}
}

/** Another model for this turn. Not read from `openai`, where clients of OpenAI's protocols name the agent. */
export function modelFor({ extensions }: SessionConfig, provider: string): string | undefined {
  const slot = provider === 'openai' ? undefined : extensions?.[provider]
  return isRecord(slot) ? text(slot['model']) : undefined
}

function read(slot: unknown): Settings {
  if (!isRecord(slot)) return {}
  const reasoning = isRecord(slot['reasoning']) ? slot['reasoning'] : {}
  const verbal = isRecord(slot['text']) ? slot['text'] : {}
  return present({
    temperature: number(slot['temperature']),
    top_p: number(slot['top_p']),
    max_tokens: number(slot['max_completion_tokens']) ?? number(slot['max_tokens']) ?? number(slot['max_output_tokens']),
    stop: stops(slot['stop']),
    seed: number(slot['seed']),
    frequency_penalty: number(slot['frequency_penalty']),
    presence_penalty: number(slot['presence_penalty']),
    logprobs: slot['logprobs'] === true ? true : undefined,
    top_logprobs: number(slot['top_logprobs']),
    logit_bias: biases(slot['logit_bias']),
    user: text(slot['user']),
    reasoning_effort: text(slot['reasoning_effort']) ?? text(reasoning['effort']),
    verbosity: text(slot['verbosity']) ?? text(verbal['verbosity']),
    tool_choice: choice(slot['tool_choice']),
    parallel_tool_calls: typeof slot['parallel_tool_calls'] === 'boolean' ? slot['parallel_tool_calls'] : undefined,
    prompt_cache_key: text(slot['prompt_cache_key']),
  })
}

function number(value: unknown): number | undefined {
  return typeof value === 'number' ? value : undefined
}

function biases(value: unknown): Readonly<Record<string, number>> | undefined {
  const isBias = isRecord(value) && Object.values(value).every((bias) => typeof bias === 'number')
  return isBias ? (value as Record<string, number>) : undefined
}

function stops(value: unknown): string | readonly string[] | undefined {
  if (Array.isArray(value)) return value.length > 0 && value.every((entry) => typeof entry === 'string') ? value : undefined
  return text(value)
}

/** Chat Completions and Responses name a function in different ways, and both can limit the choice to some functions. */
function choice(value: unknown): ToolChoice | undefined {
  if (value === 'auto' || value === 'none' || value === 'required') return value
  if (!isRecord(value)) return undefined
  const inner = isRecord(value['function']) ? value['function'] : isRecord(value['allowed_tools']) ? value['allowed_tools'] : value
  const name = text(inner['name'])
  if (name !== undefined) return { name }
  return inner['mode'] === 'required' ? 'required' : undefined
}

/** The choice, if there is something to choose from: the APIs refuse a choice without tools, or of a tool that is not offered. */
export function usableChoice(wanted: ToolChoice | undefined, tools: SessionConfig['tools']): ToolChoice | undefined {
  if (wanted === undefined || tools === undefined || tools.length === 0) return undefined
  if (typeof wanted === 'string') return wanted
  return tools.some((tool) => tool.function.name === wanted.name) ? wanted : undefined
}

interface FlatFunction {
  readonly name: string
  readonly description?: string | null | undefined
  readonly parameters?: ToolDefinition['function']['parameters'] | null
  readonly strict?: boolean | null | undefined
}

/** A function as Responses and Realtime have it: flat, unlike in Chat Completions. */
export function functionTool({ name, description, parameters, strict }: FlatFunction): ToolDefinition {
  const more = { description: description ?? undefined, parameters: parameters ?? undefined, strict: strict ?? undefined }
  return { type: 'function', function: { name, ...present(more) } }
}
