import type { Signing } from '../../core/edge/signature-header.ts'
import type { Slot } from '../../protocol/json.ts'
import type { SessionConfig } from '../../protocol/session-config.ts'
import type { ToolDefinition } from '../../protocol/tools.ts'
import { functionTool } from '../../wire/openai/settings.ts'
import { invalid } from '../../wire/parse.ts'
import { settingsOf } from './response.ts'
import { isFunction, type CreateRequest, type InputItem } from './schema.ts'

/** In `include`: the client wants events that OpenAI's protocol does not have. */
const EXTRAS = 'uamp.events'

/** A request in our own terms. */
export interface Asked {
  readonly input: string | readonly InputItem[]
  readonly config: SessionConfig
  readonly previous: string | undefined
  readonly model: string | undefined
  /** All tools, to check that the agent has those that are no functions. */
  readonly tools: CreateRequest['tools']
  readonly store: boolean
  readonly background: boolean
  readonly stream: boolean
  /** The hash of the input, if the answer is signed. */
  readonly signing?: Signing | undefined
}

/** `slots`: extensions of the session beside the settings. */
export function toAsked(body: CreateRequest, slots: Slot = {}): Asked {
  const { input, ...settings } = body
  if (input == null) throw invalid('Missing required parameter: "input"', 'input', 'missing_required_parameter')
  for (const name of ['conversation', 'prompt']) {
    // If we ignored it, the agent would answer without what the client believes it knows.
    if (body[name] != null)
      throw invalid(`"${name}" is not kept here: send "input" and "previous_response_id"`, name, 'unsupported_parameter')
  }
  const store = body.store ?? true
  const background = body.background ?? false
  if (background && !store) throw invalid('"background" needs "store": the answer is fetched later', 'background', 'invalid_value')
  const tools = functionsOf(body)
  const format = formatOf(body)
  return {
    input,
    previous: body.previous_response_id ?? undefined,
    model: body.model ?? undefined,
    tools: body.tools,
    config: {
      modalities: ['text'],
      ...(body.instructions != null && { instructions: body.instructions }),
      ...(tools.length > 0 && { tools }),
      ...(format && { response_format: format }),
      extensions: { openai: settings, ...slots },
    },
    store,
    background,
    stream: body.stream ?? false,
  }
}

/** The functions that a stored request offered. */
export function functionNames({ tools }: SessionConfig): ReadonlySet<string> {
  return new Set(tools?.map((tool) => tool.function.name))
}

export function wantsExtras(config: SessionConfig): boolean {
  const { include } = settingsOf(config)
  return Array.isArray(include) && include.includes(EXTRAS)
}

/** The functions that may be called: `tool_choice` can forbid all of them, or all but some. */
function functionsOf({ tools, tool_choice: choice }: CreateRequest): ToolDefinition[] {
  const offered = (tools ?? []).filter(isFunction).map(functionTool)
  if (choice === 'none') return []
  if (choice == null || typeof choice === 'string') return offered
  const names = new Set(offered.map((tool) => tool.function.name))
  if (choice.type === 'function' && (choice.name === undefined || !names.has(choice.name))) {
    throw invalid(`"tool_choice" names "${choice.name}", which is not among "tools"`, 'tool_choice', 'invalid_value')
  }
  if (choice.type !== 'allowed_tools') return offered
  const allowed = new Set(choice.tools?.map(({ name }) => name))
  return offered.filter((tool) => allowed.has(tool.function.name))
}

function formatOf({ text }: CreateRequest): SessionConfig['response_format'] {
  const format = text?.format
  if (format == null) return undefined
  if (format.type !== 'json_schema') return format
  const { name, description, schema, strict } = format
  return {
    type: 'json_schema',
    json_schema: { name, schema, ...(description != null && { description }), ...(strict != null && { strict }) },
  }
}
