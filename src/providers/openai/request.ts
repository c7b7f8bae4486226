import type { ModelRequest } from '../../core/ports/provider.ts'
import type { ResponseFormat, SessionConfig } from '../../protocol/session-config.ts'
import { hostedToolsIn } from '../../core/agent-kit/hosted-tools.ts'
import { ownSlot, settingsFor, usableChoice, type Settings, type ToolChoice } from '../../wire/openai/settings.ts'
import { fieldsOf, isRecord } from '../../protocol/json.ts'
import { present } from '../../wire/fields.ts'
import { toInput } from './input.ts'
import type { ModelFacts } from './models.ts'

type Fields = Readonly<Record<string, unknown>>

export interface BodyOptions {
  readonly facts: ModelFacts
  readonly summary: string | false
  readonly name: string
  readonly defaults: Fields
}

/** The body of a request. OpenAI stores nothing, so every request carries the whole conversation. */
export function toBody({ model, messages, config }: ModelRequest, { name, facts, summary, defaults }: BodyOptions): Fields {
  const settings = settingsFor(config, name)
  const { max_tokens, tool_choice, parallel_tool_calls, prompt_cache_key, user } = settings
  const tools = config.tools ?? []
  const hosted = hostedToolsIn(config)
  const offered = [...tools.map(toTool), ...hosted]
  const choice = hostedChoice(config, hosted) ?? usableChoice(tool_choice, tools)
  const thinks = facts.reasoning ?? false
  const format = formatFor(config.response_format)
  return {
    ...defaults,
    model,
    ...(config.instructions !== undefined && config.instructions !== '' && { instructions: config.instructions }),
    input: [
      ...(format?.words === undefined ? [] : [{ role: 'developer', content: format.words }]),
      ...toInput(messages, { reasoning: thinks }),
    ],
    stream: true,
    store: false,
    ...(prompt_cache_key !== undefined && { prompt_cache_key }),
    ...(user !== undefined && { user }),
    ...(thinks ? thinking(settings, wantedSummary(config) ?? summary) : {}),
    ...sampling(settings, thinks),
    ...(max_tokens !== undefined && { max_output_tokens: max_tokens }),
    ...(offered.length > 0 && { tools: offered }),
    ...(choice !== undefined && { tool_choice: toChoice(choice) }),
    ...(offered.length > 0 && parallel_tool_calls !== undefined && { parallel_tool_calls }),
    ...textOptions(format?.field, settings.verbosity),
  }
}

/** Asks for encrypted thoughts, which the next request sends back. Models that do not think refuse this. */
function thinking({ reasoning_effort: effort }: Settings, summary: string | false): Fields {
  const reasoning = { ...(effort !== undefined && { effort }), ...(summary !== false && effort !== 'none' && { summary }) }
  return { include: ['reasoning.encrypted_content'], ...(Object.keys(reasoning).length > 0 && { reasoning }) }
}

/** The summary that a client of the Responses API asks for. */
function wantedSummary(config: SessionConfig): string | undefined {
  const { summary } = fieldsOf(ownSlot(config, 'openai')['reasoning'])
  return summary === 'auto' || summary === 'concise' || summary === 'detailed' ? summary : undefined
}

/** A model refuses these while it thinks. */
function sampling({ temperature, top_p, reasoning_effort }: Settings, thinks: boolean): Fields {
  if (thinks && reasoning_effort !== 'none') return {}
  return present({ temperature, top_p })
}

/** Sets `strict` always: the API turns it on by default, and then refuses most schemas. */
function toTool({ function: { name, description, parameters, strict } }: NonNullable<SessionConfig['tools']>[number]): Fields {
  return {
    type: 'function',
    name,
    ...(description !== undefined && { description }),
    parameters: parameters ?? { type: 'object', properties: {} },
    strict: strict ?? false,
  }
}

/** A choice of a hosted tool, or of any tool where there are no functions. */
function hostedChoice(config: SessionConfig, hosted: readonly Fields[]): Fields | 'required' | undefined {
  const { tool_choice } = ownSlot(config, 'openai')
  if (hosted.length === 0) return undefined
  if (tool_choice === 'required') return tool_choice
  return isRecord(tool_choice) && hosted.some(({ type }) => type === tool_choice['type']) ? tool_choice : undefined
}

function toChoice(choice: ToolChoice | Fields): unknown {
  return typeof choice === 'object' && !('type' in choice) ? { type: 'function', name: choice['name'] } : choice
}

function textOptions(format: Fields | undefined, verbosity: string | undefined): Fields {
  if (!format && verbosity === undefined) return {}
  return { text: { ...(format && { format }), ...(verbosity !== undefined && { verbosity }) } }
}

/** UAMP events §8.3. The API refuses `json_object` unless an item of the input mentions JSON. */
function formatFor(format: ResponseFormat | undefined): { readonly field: Fields; readonly words?: string } | undefined {
  if (format === undefined || format.type === 'text') return undefined
  if (format.type === 'json_object') return { field: format, words: 'Answer with a JSON object and nothing else.' }
  const { name, description, schema = {}, strict } = format.json_schema
  return {
    field: { type: 'json_schema', name, schema, ...present({ description, strict }) },
  }
}
