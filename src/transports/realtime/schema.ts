/** What both dialects read alike. */
import * as z from 'zod/mini'
import { list, Slot } from '../../protocol/json.ts'
import { limits } from '../../protocol/limits.ts'
import { Payment } from '../../protocol/payment.ts'
import { Instructions } from '../../protocol/session-config.ts'
import { ToolDefinition } from '../../protocol/tools.ts'
import { present } from '../../wire/fields.ts'
import { functionTool } from '../../wire/openai/settings.ts'
import { invalid, parseValue } from '../../wire/parse.ts'
import type { Command, GivenItem, Settings } from './model.ts'
import { completeDetection } from './settings.ts'

const Id = z.string().check(z.maxLength(limits.idLength))
const ms = z.number().check(z.minimum(0), z.maximum(60_000))

const functionShape = ToolDefinition.shape.function.shape

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
    z.transform(({ type, ...given }) => completeDetection({ type, ...present(given) })),
  ),
)

export const MaxTokens = z.union([z.int().check(z.minimum(1)), z.literal('inf')], 'must be a whole number from 1, or "inf"')
export const Voice = z.union([z.string(), z.object({ id: z.string() })], 'must be a name, or { "id": … }')
export const Modalities = list(z.enum(['text', 'audio']), 2)

/** Fields of sessions and responses that have the same name in both dialects. */
export const sameSettings = {
  instructions: z.nullish(Instructions),
  tools: z.nullish(Tools),
  tool_choice: z.optional(z.unknown()),
  prompt: z.optional(z.unknown()),
  /** Ours. */
  uamp: z.nullish(z.object({ sign: z.optional(z.boolean()) })),
}

type Same = { [K in keyof typeof sameSettings]?: z.infer<(typeof sameSettings)[K]> }

export function readSame({ instructions, tools, tool_choice: toolChoice, uamp }: Same): Partial<Settings> {
  return present({
    instructions: instructions ?? undefined,
    tools: tools?.map(functionTool),
    toolChoice,
    sign: uamp?.sign,
  })
}

const Reference = z.pipe(
  z.object({ type: z.literal('item_reference'), id: z.string() }),
  z.transform(({ id }) => id),
)

/** The fields of a response that a session does not have. */
export function responseFields(item: z.ZodMiniType<GivenItem>) {
  return {
    conversation: z.nullish(z.string()),
    metadata: z.nullish(Slot),
    input: z.nullish(list(z.union([Reference, item]), limits.messages)),
  }
}

type ResponseFields = z.infer<z.ZodMiniObject<ReturnType<typeof responseFields>>>

const Index = z.int().check(z.minimum(0))

/** Events that are the same in both dialects. */
const SameEvent = z.discriminatedUnion('type', [
  z.object({ type: z.literal('input_audio_buffer.append'), audio: z.string() }),
  z.object({ type: z.literal('input_audio_buffer.commit') }),
  z.object({ type: z.literal('input_audio_buffer.clear') }),
  z.object({ type: z.literal('output_audio_buffer.clear') }),
  z.object({ type: z.literal('conversation.item.retrieve'), item_id: Id }),
  z.object({ type: z.literal('conversation.item.delete'), item_id: Id }),
  z.object({ type: z.literal('conversation.item.truncate'), item_id: Id, content_index: Index, audio_end_ms: Index }),
  z.object({ type: z.literal('response.cancel'), response_id: z.nullish(Id) }),
  z.object({ type: z.literal('payment.submit'), payment: Payment }),
])
export type SameEvent = z.infer<typeof SameEvent>

type Read = (event: Slot) => Command

/** How a dialect words what a client sets. */
export interface SettingWords<G> {
  readonly item: z.ZodMiniType<GivenItem>
  readonly session: z.ZodMiniType<G>
  readonly response: z.ZodMiniType<G & ResponseFields>
  readonly settings: (given: G) => Partial<Settings>
}

/** The reader of a dialect. An unknown type of event is refused. */
export function reader<G>({ item, session, response, settings }: SettingWords<G>): Read {
  const SessionUpdate = z.object({ session })
  const ItemCreate = z.object({ item, previous_item_id: z.nullish(z.string()) })
  const ResponseCreate = z.object({ response: z.nullish(response) })
  const own: Readonly<Record<string, Read>> = {
    'session.update': (event) => ({ type: 'session.update', changes: settings(parseValue(SessionUpdate, event).session) }),
    'conversation.item.create': (event) => {
      const { item: given, previous_item_id: previous } = parseValue(ItemCreate, event)
      return { type: 'conversation.item.create', item: given, previous: previous ?? undefined }
    },
    'response.create': (event) => {
      const { response: given } = parseValue(ResponseCreate, event)
      return {
        type: 'response.create',
        request: {
          changes: given ? settings(given) : {},
          metadata: given?.metadata ?? null,
          conversation: given?.conversation === 'none' ? 'none' : 'auto',
          input: given?.input ?? undefined,
        },
      }
    },
  }
  const same = SameEvent.def.options.map((schema) => schema.shape.type.def.values[0] ?? '')
  const readers = new Map([...Object.entries(own), ...same.map((type): [string, Read] => [type, (event) => parseValue(SameEvent, event)])])
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
