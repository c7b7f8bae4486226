import { isRecord } from '../../protocol/json.ts'
import type { SessionConfig } from '../../protocol/session-config.ts'
import { usableChoice, type Settings } from '../../wire/openai/settings.ts'
import type { Traits } from './models.ts'
import { outputSchema } from './output-schema.ts'

/** Models without structured outputs are forced to call this tool, so that they answer in the schema. */
export const JSON_TOOL = 'answer_in_json'

export interface WireTool {
  readonly name: string
  readonly description?: string
  readonly input_schema: Readonly<Record<string, unknown>>
}

/** How a request asks for an answer in a certain form: by a schema, by a tool to call, or in words. */
export interface Format {
  readonly schema?: Readonly<Record<string, unknown>>
  readonly tool?: WireTool
  readonly instruction?: string
}

export type WireChoice = Readonly<Record<string, unknown>>

/** Leaves out `strict`: it allows less than JSON Schema does, and arguments are checked here anyway. */
export function toolsOf({ tools = [] }: SessionConfig, { tool }: Format): WireTool[] {
  const own = tools.map(({ function: { name, description, parameters } }) => ({
    name,
    ...(description !== undefined && { description }),
    input_schema: { type: 'object', ...parameters },
  }))
  return tool ? [...own, tool] : own
}

/** UAMP events §8.3. Newer models take a schema; older ones are forced to call a tool, or told in words. */
export function formatFor(
  { response_format: wanted, tools = [] }: SessionConfig,
  { traits, hosted }: { readonly traits: Traits; readonly hosted: readonly object[] },
): Format {
  if (wanted === undefined || wanted.type === 'text') return {}
  const schema = wanted.type === 'json_schema' ? wanted.json_schema.schema : undefined
  if (!schema) return { instruction: 'Answer with one valid JSON object and nothing else: no prose, no code fence.' }
  if (traits.schema) return { schema: outputSchema(schema) }
  if (tools.length > 0 || hosted.length > 0) {
    return { instruction: `Give your final answer as JSON and nothing else, valid by this JSON Schema: ${JSON.stringify(schema)}` }
  }
  return { tool: { name: JSON_TOOL, description: 'Gives the answer.', input_schema: { type: 'object', ...schema } } }
}

interface Choosing {
  readonly settings: Settings
  /** A choice in Anthropic's words. */
  readonly own: unknown
  readonly format: Format
}

export function toolChoice({ tools = [] }: SessionConfig, { settings, own, format }: Choosing): WireChoice | undefined {
  if (format.tool) return { type: 'tool', name: JSON_TOOL, disable_parallel_tool_use: true }
  if (tools.length === 0) return undefined
  if (isRecord(own) && own['type'] !== 'function') return own
  const wanted = usableChoice(settings.tool_choice, tools)
  const single = settings.parallel_tool_calls === false && { disable_parallel_tool_use: true }
  if (wanted === 'none') return { type: 'none' }
  if (wanted === 'required') return { type: 'any', ...single }
  if (typeof wanted === 'object') return { type: 'tool', name: wanted.name, ...single }
  return single ? { type: 'auto', ...single } : undefined
}
