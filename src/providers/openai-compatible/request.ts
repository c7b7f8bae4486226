import type { ModelRequest } from '../../core/ports/provider.ts'
import type { ResponseFormat, SessionConfig } from '../../protocol/session-config.ts'
import { modelFor, ownSlot, settingsFor, usableChoice, type ToolChoice } from '../../wire/openai/settings.ts'
import { factsOf } from './capabilities.ts'
import { toChatMessages } from './messages.ts'
import type { InputKind, OpenAiCompatibleOptions, ReasoningField } from './options.ts'

/** Most servers take these, and refuse others with a clear error. */
const INPUT: readonly InputKind[] = ['image', 'image_url', 'audio', 'file']
const VOICE = 'alloy'

export function modelOf({ model, config }: ModelRequest, name: string): string {
  return modelFor(config, name) ?? model
}

/** The body of a request. `learned`: the field in which this model sent its thoughts. `whole`: asks for an answer in one piece. */
export function toBody(
  { model, messages, config }: ModelRequest,
  options: OpenAiCompatibleOptions,
  { learned, whole }: { readonly learned: ReasoningField | undefined; readonly whole: boolean },
): Readonly<Record<string, unknown>> {
  const facts = factsOf(model, options)
  const { name, defaults, maxTokensField = 'max_tokens' } = options
  const { max_tokens, reasoning_effort, tool_choice, parallel_tool_calls, ...settings } = settingsFor(config, name)
  const tools = config.tools ?? []
  const choice = usableChoice(tool_choice, tools)
  const format = formatFor(config.response_format, options)
  const body: Record<string, unknown> = { ...defaults }
  body['model'] = model
  body['messages'] = toChatMessages(messages, {
    instructions: [config.instructions, format.words].filter((text) => text !== undefined && text !== '').join('\n\n'),
    input: new Set(facts.input ?? options.input ?? INPUT),
    reasoningField: options.reasoningField ?? learned,
    emptyReasoning: options.reasoningField !== undefined,
  })
  if (!whole) Object.assign(body, { stream: true, stream_options: { include_usage: true } })
  Object.assign(body, settings, effort(reasoning_effort, options))
  if (max_tokens !== undefined) body[maxTokensField] = max_tokens
  if (tools.length > 0) body['tools'] = tools.map(toTool)
  if (choice !== undefined) body['tool_choice'] = toChoice(choice)
  if (tools.length > 0 && parallel_tool_calls !== undefined) body['parallel_tool_calls'] = parallel_tool_calls
  if (format.field) body['response_format'] = format.field
  if (facts.speech ?? options.speech) Object.assign(body, speech(config))
  return Object.assign(body, own(config, options))
}

/** Sets `strict` only on request, because not every server knows it. */
function toTool({ function: { name, description, parameters, strict } }: NonNullable<SessionConfig['tools']>[number]): object {
  return {
    type: 'function',
    function: {
      name,
      ...(description !== undefined && { description }),
      parameters: parameters ?? { type: 'object', properties: {} },
      ...(strict && { strict }),
    },
  }
}

function toChoice(choice: ToolChoice): unknown {
  return typeof choice === 'string' ? choice : { type: 'function', function: { name: choice.name } }
}

function effort(wanted: string | undefined, { thinkingOff }: OpenAiCompatibleOptions): Readonly<Record<string, unknown>> {
  if (wanted === undefined) return {}
  return wanted === 'none' && thinkingOff ? thinkingOff : { reasoning_effort: wanted }
}

/** UAMP events §8.3. The APIs refuse `json_object` unless a message mentions JSON. */
function formatFor(
  format: ResponseFormat | undefined,
  { jsonSchema = true }: OpenAiCompatibleOptions,
): { readonly field?: object; readonly words?: string } {
  if (format === undefined || format.type === 'text') return {}
  if (format.type === 'json_object') return { field: format, words: 'Answer with a JSON object and nothing else.' }
  if (jsonSchema) return { field: format }
  const schema = JSON.stringify(format.json_schema.schema ?? {})
  return { field: { type: 'json_object' }, words: `Answer with a JSON object and nothing else. It must fit this JSON Schema: ${schema}` }
}

/** Bare samples are the only format that can be streamed. */
function speech({ modalities, voice }: SessionConfig): Readonly<Record<string, unknown>> {
  if (!modalities.includes('audio')) return {}
  return { modalities: ['text', 'audio'], audio: { voice: voice?.name ?? voice?.voice_id ?? VOICE, format: 'pcm16' } }
}

/** Fields that only this server knows. */
function own(config: SessionConfig, { name, settings = [] }: OpenAiCompatibleOptions): Readonly<Record<string, unknown>> {
  const slot = ownSlot(config, name)
  return Object.fromEntries(settings.flatMap((field) => (slot[field] === undefined ? [] : [[field, slot[field]]])))
}
