import type { ModelRequest } from '../../core/ports/provider.ts'
import { isRecord } from '../../protocol/json.ts'
import { modelFor, ownSlot, settingsFor, type Settings } from '../../wire/openai/settings.ts'
import { toSpeeches, type Block, type Speech } from './blocks.ts'
import { chosenHosted, hostedTools } from './hosted-tools.ts'
import { traitsOf, type Traits } from './models.ts'
import { thinkingFor, thinks, thoughtsAreLost, type Thinking } from './thinking.ts'
import { formatFor, toolChoice, toolsOf } from './tools.ts'

/** The newer version refuses temperature, top_p and top_k. Models that still take them do so under the older one. */
const VERSION = '2026-10-21'
const SAMPLING_VERSION = '2023-06-01'

/** Tokens of an answer if nobody says how many: the API wants a number. */
const MAX_TOKENS = 32_000

/** Settings that pass unchanged. */
const VERBATIM = ['metadata', 'service_tier', 'inference_geo']

type Own = Readonly<Record<string, unknown>>

export interface MessagesRequest {
  readonly version: string
  readonly body: Own
}

export interface RequestOptions {
  /** The provider's name, under which its settings stand. */
  readonly name?: string
  /** A fixed version, whatever the request asks for. */
  readonly pinned?: string | undefined
}

/** A request of the Messages API. */
export function toRequest(
  { model: usual, messages, config }: ModelRequest,
  { name = 'anthropic', pinned }: RequestOptions = {},
): MessagesRequest {
  const own = ownSlot(config, name)
  const settings = settingsFor(config, name)
  const model = modelFor(config, name) ?? usual
  const traits = traitsOf(model)
  const { system, speeches } = toSpeeches(messages)
  const hosted = hostedTools(config)
  const format = formatFor(config, { traits, hosted })
  const tools = [...toolsOf(config, format), ...hosted]
  const choice = chosenHosted(config, hosted) ?? toolChoice(config, { settings, own: own['tool_choice'], format })
  const wanted = thinkingFor(traits, { own, effort: settings.reasoning_effort })
  // The API refuses thoughts beside a forced call, and a budget beside results of a call whose thoughts are missing.
  const forced = choice?.['type'] === 'any' || choice?.['type'] === 'tool'
  const clash = thinks(wanted) && (forced || (wanted.thinking?.['type'] === 'enabled' && thoughtsAreLost(speeches)))
  const { thinking, effort }: Thinking = clash ? { ...wanted, thinking: undefined } : wanted
  const samples = traits.samples && (pinned ?? SAMPLING_VERSION) <= SAMPLING_VERSION && !(thinks(wanted) && !clash)
  const sampling = samples ? samplingOf(settings, own) : {}
  const stop = [own['stop_sequences'] ?? settings.stop ?? []].flat().filter((text) => typeof text === 'string' && text.trim() !== '')
  const body = {
    model,
    max_tokens: maxTokens(settings.max_tokens ?? Math.min(MAX_TOKENS, traits.output), thinking, traits),
    stream: true,
    messages: speeches,
    ...systemOf([config.instructions ?? '', ...system, format.instruction ?? '']),
    ...(tools.length > 0 && { tools }),
    ...(choice && { tool_choice: choice }),
    ...(thinking && { thinking }),
    ...((effort !== undefined || format.schema) && {
      output_config: {
        ...(effort !== undefined && { effort }),
        ...(format.schema && { format: { type: 'json_schema', schema: format.schema } }),
      },
    }),
    ...(stop.length > 0 && { stop_sequences: stop }),
    ...sampling,
    ...(settings.user !== undefined && { metadata: { user_id: settings.user } }),
    ...Object.fromEntries(VERBATIM.filter((key) => own[key] !== undefined).map((key) => [key, own[key]])),
  }
  const version = pinned ?? (Object.keys(sampling).length > 0 ? SAMPLING_VERSION : VERSION)
  return { version, body: cached(body, own['cache_control'], traits) }
}

function systemOf(texts: readonly string[]): { system?: Block[] } {
  const text = texts.filter((part) => part !== '').join('\n\n')
  return text === '' ? {} : { system: [{ type: 'text', text }] }
}

/** The budget for thoughts is a part of the tokens, and must leave some for the answer. */
function maxTokens(given: number, thinking: Thinking['thinking'], { output }: Traits): number {
  const budget = thinking?.['budget_tokens']
  return typeof budget === 'number' && budget >= given ? Math.max(Math.min(budget + given, output), budget + 1) : given
}

/** Some models refuse both together, so temperature wins. OpenAI's temperature goes up to 2. */
function samplingOf({ temperature, top_p }: Settings, own: Own): Record<string, number> {
  return {
    ...(temperature !== undefined ? { temperature: Math.min(temperature, 1) } : top_p !== undefined && { top_p }),
    ...(typeof own['top_k'] === 'number' && { top_k: own['top_k'] }),
  }
}

interface Cacheable {
  readonly messages: readonly Speech[]
  readonly system?: readonly Block[]
  readonly tools?: readonly object[]
}

/**
 * Prompt caching: one marker for the whole request, which the API sets on the last block that can have one. A `cache_control` with
 * a `type` replaces it, `{ tools, system, messages }` sets markers on the last block of each instead, and `null` turns it off.
 */
function cached(body: Cacheable, wanted: unknown, { claude }: Traits): Readonly<Record<string, unknown>> {
  if (wanted === null || wanted === false || (wanted === undefined && !claude)) return { ...body }
  if (!isRecord(wanted)) return { ...body, cache_control: { type: 'ephemeral' } }
  if (wanted['type'] !== undefined) return { ...body, cache_control: wanted }
  const { messages, system, tools } = body
  const last = messages.at(-1)
  return {
    ...body,
    ...(tools && { tools: marked(tools, wanted['tools']) }),
    ...(system && { system: marked(system, wanted['system']) }),
    ...(last && { messages: [...messages.slice(0, -1), { ...last, content: marked(last.content, wanted['messages']) }] }),
  }
}

function marked(list: readonly object[], cache_control: unknown): readonly object[] {
  const last = list.at(-1)
  return last && isRecord(cache_control) ? [...list.slice(0, -1), { ...last, cache_control }] : list
}
