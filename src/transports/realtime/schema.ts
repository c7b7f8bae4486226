/** What both dialects read alike. */
import * as z from 'zod/mini'
import { list, Slot } from '../../protocol/json.ts'
import { limits } from '../../protocol/limits.ts'
import { Payment } from '../../protocol/payment.ts'
import { Instructions } from '../../protocol/session-config.ts'
import { ToolDefinition } from '../../protocol/tools.ts'
import { invalid, parseValue } from '../../wire/parse.ts'
import type { Command, Settings } from './model.ts'
import { completeDetection } from './settings.ts'

const Id = z.string().check(z.maxLength(limits.idLength))
const ms = z.number().check(z.minimum(0), z.maximum(60_000))

const functionShape = ToolDefinition.shape.function.shape

/** Flat, unlike that of Chat Completions. */
const FunctionTool = z.object({
  type: z.literal('function', 'must be "function": other tools belong to the agent here'),
  name: functionShape.name,
  description: z.nullish(z.string()),
  parameters: z.nullish(functionShape.parameters),
})
const Tools = list(FunctionTool, limits.tools)

export const TurnDetection = z.nullable(
  z.pipe(
    z.object({
      type: z.enum(['server_vad', 'semantic_vad']),
      threshold: z.optional(z.number().check(z.minimum(0), z.maximum(1))),
      prefix_padding_ms: z.optional(ms),
      silence_duration_ms: z.optional(ms),
      create_response: z.optional(z.boolean()),
      interrupt_response: z.optional(z.boolean()),
      idle_timeout_ms: z.optional(z.nullable(z.number())),
      eagerness: z.optional(z.string()),
    }),
    z.transform(({ type, ...given }) => completeDetection({ type, ...defined(given) })),
  ),
)

export const MaxTokens = z.union([z.int().check(z.minimum(1)), z.literal('inf')], 'must be a whole number from 1, or "inf"')
export const Voice = z.union([z.string(), z.object({ id: z.string() })], 'must be a name, or { "id": … }')
export const Modalities = list(z.enum(['text', 'audio']), 2)

/** The fields of a session and of a response that both dialects call the same. */
export const sameSettings = {
  instructions: z.nullish(Instructions),
  tools: z.nullish(Tools),
  tool_choice: z.optional(z.unknown()),
  prompt: z.optional(z.unknown()),
}

type Same = { [K in keyof typeof sameSettings]?: z.infer<(typeof sameSettings)[K]> }

export function readSame({ instructions, tools, tool_choice: toolChoice }: Same): Partial<Settings> {
  return defined({
    instructions: instructions ?? undefined,
    tools: tools?.map(({ name, description, parameters }) => ({
      type: 'function' as const,
      function: { name, ...(description != null && { description }), ...(parameters && { parameters }) },
    })),
    toolChoice,
  })
}

/** What `conversation` and `metadata` of a response may be. */
export const responseFields = {
  conversation: z.nullish(z.string()),
  metadata: z.nullish(Slot),
}

const ItemId = z.object({ item_id: Id })
const Append = z.object({ audio: z.string() })
const Truncate = z.object({ item_id: Id, content_index: z.int().check(z.minimum(0)), audio_end_ms: z.int().check(z.minimum(0)) })
const Cancel = z.object({ response_id: z.nullish(Id) })
const Submit = z.object({ payment: Payment })

type Read = (event: Slot) => Command

/** Readers of the events that are the same in both dialects, by their type. */
const sameEvents: Readonly<Record<string, Read>> = {
  'input_audio_buffer.append': (event) => ({ type: 'input_audio_buffer.append', ...parseValue(Append, event) }),
  'input_audio_buffer.commit': () => ({ type: 'input_audio_buffer.commit' }),
  'input_audio_buffer.clear': () => ({ type: 'input_audio_buffer.clear' }),
  'output_audio_buffer.clear': () => ({ type: 'output_audio_buffer.clear' }),
  'conversation.item.retrieve': (event) => ({ type: 'conversation.item.retrieve', ...parseValue(ItemId, event) }),
  'conversation.item.delete': (event) => ({ type: 'conversation.item.delete', ...parseValue(ItemId, event) }),
  'conversation.item.truncate': (event) => ({ type: 'conversation.item.truncate', ...parseValue(Truncate, event) }),
  'response.cancel': (event) => ({ type: 'response.cancel', response_id: parseValue(Cancel, event).response_id ?? undefined }),
  'payment.submit': (event) => ({ type: 'payment.submit', ...parseValue(Submit, event) }),
}

/** The reader of a dialect. A type that it has no reader for is the client's mistake. */
export function reader(own: Readonly<Record<string, Read>>): Read {
  const readers = new Map(Object.entries({ ...own, ...sameEvents }))
  const known = [...readers.keys()].map((type) => `'${type}'`).join(', ')
  return (event) => {
    const { type } = event
    if (typeof type !== 'string')
      throw invalid('"type" must be a string', 'type', type === undefined ? 'missing_required_parameter' : 'invalid_type')
    const read = readers.get(type)
    if (!read) throw invalid(`There is no client event '${type.slice(0, limits.idLength)}'. There are: ${known}`, 'type', 'invalid_value')
    return read(event)
  }
}

/** Without the fields that are undefined. */
export function defined<T extends object>(value: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(value).filter(([, field]) => field !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>
  }
}
