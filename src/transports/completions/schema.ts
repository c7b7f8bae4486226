/** What clients send to `/chat/completions`. Unknown fields are passed to the agent and never refused. */
import * as z from 'zod/mini'
import { ContentItem } from '../../protocol/content.ts'
import { list } from '../../protocol/json.ts'
import { limits } from '../../protocol/limits.ts'
import { ResponseFormat } from '../../protocol/session-config.ts'
import { ToolDefinition } from '../../protocol/tools.ts'
import { HostedTool } from '../../wire/openai/hosted-tool.ts'

/** The bytes of the body have a limit of their own. */
const MESSAGES = 8_192
/** Most answers to one request. Each is a turn of its own. */
const CHOICES = 16

/** Clients may send null for an absent field. */
const maybe = <T extends z.core.SomeType>(schema: T) => z.optional(z.nullable(schema))

const TextPart = z.object({ type: z.literal('text'), text: z.string() })
const RefusalPart = z.object({ type: z.literal('refusal'), refusal: z.string() })
const ImagePart = z.object({ type: z.literal('image_url'), image_url: z.object({ url: z.string(), detail: maybe(z.string()) }) })
const AudioPart = z.object({ type: z.literal('input_audio'), input_audio: z.object({ data: z.string(), format: z.string() }) })
const FilePart = z.object({
  type: z.literal('file'),
  file: z.object({ file_data: maybe(z.string()), file_id: maybe(z.string()), filename: maybe(z.string()) }),
})

export const Part = z.discriminatedUnion('type', [TextPart, RefusalPart, ImagePart, AudioPart, FilePart])
export type Part = z.infer<typeof Part>

const Content = z.union([z.string(), list(Part, limits.list)], 'must be a string or an array of content parts')

/** UAMP content items beside OpenAI's own content, for items that OpenAI has no parts for. */
const common = { name: maybe(z.string()), content_items: maybe(list(ContentItem, limits.list)) }

const FunctionCall = z.object({ name: z.string(), arguments: z.string() })
const ToolCallParam = z.object({ id: z.string(), type: maybe(z.literal('function')), function: FunctionCall })

const said = (role: 'system' | 'developer' | 'user') => z.object({ role: z.literal(role), content: Content, ...common })

export const ChatMessage = z.discriminatedUnion('role', [
  said('system'),
  said('developer'),
  said('user'),
  z.object({
    role: z.literal('assistant'),
    content: maybe(Content),
    refusal: maybe(z.string()),
    reasoning_content: maybe(z.string()),
    tool_calls: maybe(list(ToolCallParam, limits.tools)),
    function_call: maybe(FunctionCall),
    audio: maybe(z.object({ id: z.string() })),
    ...common,
  }),
  z.object({ role: z.literal('tool'), content: Content, tool_call_id: z.string(), ...common }),
  z.object({ role: z.literal('function'), content: maybe(Content), ...common, name: z.string() }),
])
export type ChatMessage = z.infer<typeof ChatMessage>

const ToolChoice = z.union(
  [z.enum(['none', 'auto', 'required']), z.looseObject({ type: z.string(), function: z.optional(z.object({ name: z.string() })) })],
  'must be "none", "auto", "required" or name a function',
)

/** A record of zod leaves out `__proto__`, as no plain object can hold it safely. The client is told. */
const storable = z
  .unknown()
  .check(
    z.refine(
      (pairs) => typeof pairs !== 'object' || pairs === null || !Object.hasOwn(pairs, '__proto__'),
      'must not have the key "__proto__"',
    ),
  )

const Pairs = z
  .record(z.string().check(z.maxLength(64)), z.string().check(z.maxLength(512)))
  .check(z.refine((pairs) => Object.keys(pairs).length <= 16, 'must have at most 16 pairs'))

const Metadata = z.pipe(storable, Pairs)

/** What of a stored completion may be changed. */
export const UpdateRequest = z.object({ metadata: z.nullable(Metadata) })

export const CompletionRequest = z.looseObject({
  model: maybe(z.string()),
  messages: list(ChatMessage, MESSAGES).check(z.minLength(1, 'must have at least one message')),
  stream: maybe(z.boolean()),
  stream_options: maybe(z.object({ include_usage: maybe(z.boolean()) })),
  n: maybe(z.int().check(z.minimum(1), z.maximum(CHOICES))),
  tools: maybe(list(z.union([ToolDefinition, HostedTool]), limits.tools)),
  tool_choice: maybe(ToolChoice),
  functions: maybe(list(ToolDefinition.shape.function, limits.tools)),
  response_format: maybe(ResponseFormat),
  modalities: maybe(list(z.string(), limits.list)),
  audio: maybe(z.object({ voice: z.union([z.string(), z.object({ id: z.string() })]), format: z.string() })),
  temperature: maybe(z.number()),
  top_p: maybe(z.number()),
  max_tokens: maybe(z.int()),
  max_completion_tokens: maybe(z.int()),
  store: maybe(z.boolean()),
  metadata: maybe(Metadata),
})
export type CompletionRequest = z.infer<typeof CompletionRequest>
