/** What clients send to `/responses`. Other fields are kept for the agent, and never refused. */
import * as z from 'zod/mini'
import { ContentItem } from '../../protocol/content.ts'
import { list, Slot } from '../../protocol/json.ts'
import { limits } from '../../protocol/limits.ts'
import { Instructions } from '../../protocol/session-config.ts'
import { ToolDefinition } from '../../protocol/tools.ts'
import { HostedTool } from '../../wire/openai/hosted-tool.ts'

/** Items of an input. The bytes of the body have a limit of their own. */
const ITEMS = 8_192

/** Clients write null for what they leave out. */
const maybe = <T extends z.core.SomeType>(schema: T) => z.optional(z.nullable(schema))

const Id = z.string().check(z.maxLength(limits.idLength))
const CallId = Id.check(z.minLength(1, 'must not be empty'))

const InputText = z.object({ type: z.literal('input_text'), text: z.string() })
const InputImage = z.object({
  type: z.literal('input_image'),
  image_url: maybe(z.string()),
  file_id: maybe(z.string()),
  detail: maybe(z.string()),
})
const InputFile = z.object({
  type: z.literal('input_file'),
  file_data: maybe(z.string()),
  file_url: maybe(z.string()),
  file_id: maybe(z.string()),
  filename: maybe(z.string()),
})
const InputAudio = z.object({ type: z.literal('input_audio'), input_audio: z.object({ data: z.string(), format: z.string() }) })
const OutputText = z.object({ type: z.literal('output_text'), text: z.string() })
const Refusal = z.object({ type: z.literal('refusal'), refusal: z.string() })

export const Part = z.discriminatedUnion('type', [InputText, InputImage, InputFile, InputAudio, OutputText, Refusal])
export type Part = z.infer<typeof Part>

const Content = z.union([z.string(), list(Part, limits.list)], 'must be a string or an array of content parts')

/** Media that OpenAI has no parts for. Our output items carry it, and clients may send it back. */
const Uamp = maybe(z.object({ content_items: z.optional(list(ContentItem, limits.list)) }))

const id = maybe(Id)

/** The easy form of a message has no type. */
const MessageItem = z.object({
  type: z.optional(z.literal('message')),
  id,
  role: z.enum(['user', 'assistant', 'system', 'developer']),
  content: Content,
  uamp: Uamp,
})

const texts = <T extends string>(type: T) => list(z.object({ type: z.literal(type), text: z.string() }), limits.list)

export const InputItem = z.discriminatedUnion('type', [
  MessageItem,
  z.object({ type: z.literal('function_call'), id, call_id: CallId, name: z.string(), arguments: z.string() }),
  z.object({ type: z.literal('function_call_output'), id, call_id: CallId, output: Content }),
  z.object({
    type: z.literal('reasoning'),
    id,
    summary: maybe(texts('summary_text')),
    content: maybe(texts('reasoning_text')),
    encrypted_content: maybe(z.string()),
  }),
  z.object({ type: z.literal('item_reference'), id: Id }),
  z.object({ type: z.literal('compaction'), id, encrypted_content: z.string() }),
  z.object({ type: z.literal('mcp_approval_request'), id: Id, name: z.string(), arguments: z.string() }),
  z.object({
    type: z.literal('mcp_approval_response'),
    id,
    approval_request_id: z.string().check(z.maxLength(2 * limits.idLength)),
    approve: z.boolean(),
    reason: maybe(z.string()),
  }),
  z.object({
    type: z.literal('mcp_call'),
    id: Id,
    name: z.string(),
    arguments: z.string(),
    output: maybe(z.string()),
    error: z.optional(z.unknown()),
  }),
  z.object({
    type: z.literal('image_generation_call'),
    id: Id,
    result: maybe(z.string()),
    output_format: maybe(z.string()),
    uamp: maybe(
      z.object({
        url: z.optional(z.string()),
        content_id: z.optional(Id),
        alt_text: z.optional(z.string()),
        description: z.optional(z.string()),
      }),
    ),
  }),
])
export type InputItem = z.infer<typeof InputItem>

const FunctionTool = z.looseObject({
  type: z.literal('function'),
  name: ToolDefinition.shape.function.shape.name,
  description: maybe(z.string()),
  parameters: maybe(Slot),
  strict: maybe(z.boolean()),
})
/** A hosted tool may have any type but this one. */
export function isFunction(tool: { readonly type: string }): tool is z.infer<typeof FunctionTool> {
  return tool.type === 'function'
}

const ToolChoice = z.union(
  [
    z.enum(['none', 'auto', 'required']),
    z.looseObject({
      type: z.string(),
      name: z.optional(z.string()),
      tools: z.optional(z.array(z.looseObject({ name: z.optional(z.string()) }))),
    }),
  ],
  'must be "none", "auto", "required" or name a tool',
)

const Format = z.discriminatedUnion('type', [
  z.object({ type: z.literal('text') }),
  z.object({ type: z.literal('json_object') }),
  z.object({
    type: z.literal('json_schema'),
    name: z.string(),
    description: maybe(z.string()),
    schema: Slot,
    strict: maybe(z.boolean()),
  }),
])

export const CreateRequest = z.looseObject({
  model: maybe(z.string()),
  input: maybe(z.union([z.string(), list(InputItem, ITEMS)], 'must be a string or an array of items')),
  instructions: maybe(Instructions),
  previous_response_id: maybe(Id),
  store: maybe(z.boolean()),
  background: maybe(z.boolean()),
  stream: maybe(z.boolean()),
  tools: maybe(list(z.union([FunctionTool, HostedTool]), limits.tools)),
  tool_choice: maybe(ToolChoice),
  parallel_tool_calls: maybe(z.boolean()),
  text: maybe(z.looseObject({ format: maybe(Format) })),
  reasoning: maybe(Slot),
  max_output_tokens: maybe(z.int().check(z.minimum(1))),
  temperature: maybe(z.number().check(z.minimum(0), z.maximum(2))),
  top_p: maybe(z.number().check(z.minimum(0), z.maximum(1))),
  metadata: maybe(Slot),
  truncation: maybe(z.enum(['auto', 'disabled'])),
  include: maybe(list(z.string(), limits.list)),
  user: maybe(z.string()),
  service_tier: maybe(z.string()),
})
export type CreateRequest = z.infer<typeof CreateRequest>

/** The request as an event of a socket. `stream_id` names one of several answers that run at once. */
export const CreateEvent = z.looseObject({ type: z.string(), stream_id: maybe(Id), generate: maybe(z.boolean()) })
