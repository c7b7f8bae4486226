/** What clients send to `/ag-ui`: `RunAgentInput` of 1.0, and of 0.0.x where that differs. Clients may send null for an absent field. */
import * as z from 'zod/mini'
import { isBase64 } from '../../protocol/base64.ts'
import { list } from '../../protocol/json.ts'
import { limits } from '../../protocol/limits.ts'
import { ToolDefinition } from '../../protocol/tools.ts'

/** The bytes of the body have a limit of their own. */
const MESSAGES = 8_192

const maybe = <T extends z.core.SomeType>(schema: T) => z.optional(z.nullable(schema))

const Id = z.string().check(
  z.minLength(1, 'must not be empty'),
  z.maxLength(limits.idLength),
  z.refine((id) => id.isWellFormed(), 'must be well-formed Unicode'),
)

const Base64 = z.string().check(z.refine(isBase64, 'must be base64'))

const Source = z.discriminatedUnion('type', [
  z.object({ type: z.literal('data'), value: Base64, mimeType: z.string() }),
  z.object({ type: z.literal('url'), value: z.string(), mimeType: maybe(z.string()) }),
  z.object({ type: z.literal('file'), value: z.string(), provider: maybe(z.string()) }),
])

const media = <T extends string>(type: T) => z.object({ type: z.literal(type), source: Source, metadata: z.optional(z.unknown()) })

export const Part = z.discriminatedUnion('type', [
  z.object({ type: z.literal('text'), text: z.string() }),
  media('image'),
  media('audio'),
  media('video'),
  media('document'),
  // 0.0.x.
  z.object({
    type: z.literal('binary'),
    mimeType: z.string(),
    data: maybe(Base64),
    url: maybe(z.string()),
    id: maybe(z.string()),
    filename: maybe(z.string()),
  }),
])
export type Part = z.infer<typeof Part>

const Content = z.union([z.string(), list(Part, limits.list)], 'must be a string or an array of content parts')
const base = { id: Id, name: maybe(z.string()), encryptedValue: maybe(z.string()) }

const ToolCall = z.object({
  id: Id,
  function: z.object({ name: z.string(), arguments: z.string() }),
  encryptedValue: maybe(z.string()),
})

export const WireMessage = z.discriminatedUnion('role', [
  z.object({ ...base, role: z.enum(['system', 'developer', 'user']), content: Content }),
  z.object({ ...base, role: z.literal('assistant'), content: maybe(Content), toolCalls: maybe(list(ToolCall, limits.tools)) }),
  z.object({ ...base, role: z.literal('tool'), toolCallId: Id, content: Content, error: maybe(z.string()) }),
  z.object({ ...base, role: z.literal('reasoning'), content: maybe(Content) }),
  z.object({ ...base, role: z.literal('activity') }),
])
export type WireMessage = z.infer<typeof WireMessage>

const Tool = z.object({
  name: ToolDefinition.shape.function.shape.name,
  description: maybe(z.string()),
  parameters: maybe(ToolDefinition.shape.function.shape.parameters),
})

export const ResumeEntry = z.object({
  interruptId: Id,
  status: z._default(z.enum(['resolved', 'cancelled']), 'resolved'),
  payload: z.optional(z.unknown()),
})
export type ResumeEntry = z.infer<typeof ResumeEntry>

/** Our own part of `forwardedProps`, which otherwise belong to the application. */
export const OwnProps = z.object({
  forwardedProps: z.object({
    uamp: z.object({
      /** The run continues when its client leaves. */
      detach: maybe(z.boolean()),
      /** The run brings only new messages: its client does not have the conversation. */
      join: maybe(z.boolean()),
      /** `RUN_STARTED` repeats the input. */
      input: maybe(z.boolean()),
      payment_token: maybe(z.string()),
      hops: z.optional(z.unknown()),
    }),
  }),
})

export const RunAgentInput = z.object({
  threadId: Id,
  runId: Id,
  protocolVersion: maybe(z.string()),
  parentRunId: maybe(Id),
  state: z.optional(z.unknown()),
  messages: list(WireMessage, MESSAGES),
  tools: maybe(list(Tool, limits.tools)),
  context: maybe(list(z.object({ description: z.string(), value: z.unknown() }), limits.list)),
  forwardedProps: z.optional(z.unknown()),
  // The draft of interrupts had a single entry instead of a list.
  resume: maybe(z.union([list(ResumeEntry, limits.list), ResumeEntry])),
})
export type RunAgentInput = z.infer<typeof RunAgentInput>

/** How a client answers an approval request. */
export const Resolved = z.object({
  payload: z.union(
    [z.boolean(), z.object({ approved: z.boolean(), option: maybe(z.string()), reason: maybe(z.string()) })],
    'must be true, false or an object with "approved"',
  ),
})
