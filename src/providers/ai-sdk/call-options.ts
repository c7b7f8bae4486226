import type { ModelRequest } from '../../core/ports/provider.ts'
import type { ResponseFormat, SessionConfig } from '../../protocol/session-config.ts'
import { present } from '../../wire/fields.ts'
import { settingsFor, usableChoice, type Settings, type ToolChoice } from '../../wire/openai/settings.ts'
import type { Fields, Metadata, Traits, UrlPatterns } from './model.ts'
import { toPrompt, type Shown } from './prompt.ts'

export interface CallContext {
  readonly name: string
  readonly traits: Traits
  readonly urls: UrlPatterns
  readonly shown: Shown
  /** False: the model takes no JSON Schema, so that it is told of it in words. */
  readonly takesSchema: boolean
  readonly providerOptions: Metadata
}

/** What the model is called with, but for the signal. */
export function toCallOptions({ messages, config }: Pick<ModelRequest, 'messages' | 'config'>, context: CallContext): Fields {
  const { name, traits, urls, shown, takesSchema, providerOptions } = context
  const settings = settingsFor(config, name)
  const { temperature, top_p, max_tokens, stop, seed, presence_penalty, frequency_penalty, tool_choice } = settings
  const tools = config.tools ?? []
  const format = formatFor(config.response_format, takesSchema)
  const choice = usableChoice(tool_choice, tools)
  return {
    prompt: toPrompt(messages, { instructions: [config.instructions ?? '', format.words ?? ''], traits, urls, shown }),
    ...present({
      temperature,
      topP: top_p,
      maxOutputTokens: max_tokens,
      stopSequences: typeof stop === 'string' ? [stop] : stop,
      seed,
      presencePenalty: presence_penalty,
      frequencyPenalty: frequency_penalty,
      responseFormat: format.field,
      toolChoice: choice === undefined ? undefined : toChoice(choice),
    }),
    ...(tools.length > 0 && { tools: tools.map((tool) => toTool(tool, traits)) }),
    providerOptions: vendorOptions(settings, context.name, { traits, providerOptions }),
  }
}

function toChoice(choice: ToolChoice): Fields {
  return typeof choice === 'string' ? { type: choice } : { type: 'tool', toolName: choice.name }
}

function toTool(
  { function: { name, description, parameters, strict } }: NonNullable<SessionConfig['tools']>[number],
  { isNew }: Traits,
): Fields {
  const inputSchema = parameters ?? { type: 'object', properties: {} }
  return { type: 'function', name, inputSchema, ...present({ description, strict: isNew ? (strict ?? false) : undefined }) }
}

/** Settings for which the SDK has no field of its own. The operator's options win. */
function vendorOptions(
  settings: Settings,
  name: string,
  { traits, providerOptions }: Pick<CallContext, 'traits' | 'providerOptions'>,
): Metadata {
  const { reasoning_effort, verbosity, user, parallel_tool_calls, prompt_cache_key } = settings
  const common = { reasoningEffort: reasoning_effort, textVerbosity: verbosity, user }
  // Compatible servers are sent every option that the SDK does not know, under this very name.
  const openai = traits.isResponses ? { store: false, parallelToolCalls: parallel_tool_calls, promptCacheKey: prompt_cache_key } : {}
  const own = present({ ...common, ...openai })
  const vendor = traits.isResponses ? 'openai' : name
  return Object.keys(own).length === 0 ? providerOptions : { ...providerOptions, [vendor]: { ...own, ...providerOptions[vendor] } }
}

/** UAMP events §8.3. Some vendors refuse JSON without a schema unless the prompt mentions it. */
function formatFor(format: ResponseFormat | undefined, takesSchema: boolean): { readonly field?: Fields; readonly words?: string } {
  if (format === undefined || format.type === 'text') return {}
  const words = 'Answer with a JSON object and nothing else.'
  if (format.type === 'json_object') return { field: { type: 'json' }, words }
  const { name, description, schema = {} } = format.json_schema
  const field = { type: 'json', schema, name, ...present({ description }) }
  return takesSchema ? { field } : { field, words: `${words} It must fit this JSON Schema: ${JSON.stringify(schema)}` }
}
