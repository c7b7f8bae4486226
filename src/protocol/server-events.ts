/** Server → client: UAMP events §6 and §7. */
import * as z from 'zod/mini'
import { Capabilities } from './capabilities.ts'
import { base as clientBase } from './client-events.ts'
import {
  AudioContent,
  ContentItem,
  FileContent,
  ImageContent,
  JsonText,
  TextContent,
  ThinkingContent,
  ToolCallContent,
  ToolResultContent,
  VideoContent,
} from './content.ts'
import { Slot } from './json.ts'
import { PaymentRequirements } from './payment.ts'
import { SessionConfig } from './session-config.ts'
import { Usage } from './usage.ts'

/** `seq` is ours: the event's place in the session's log, from which a reader resumes. */
export const base = { ...clientBase, seq: z.optional(z.number()) }

export const ErrorBody = z.object({ code: z.string(), message: z.string(), details: z.optional(Slot) })

/** §8.8. */
export const SessionInfo = z.object({
  id: z.string(),
  created_at: z.number(),
  config: SessionConfig,
  status: z.enum(['active', 'closed']),
})

export const SessionCreated = z.object({
  ...base,
  type: z.literal('session.created'),
  uamp_version: z.string(),
  session: SessionInfo,
  chat: z.optional(z.string()),
  agent: z.optional(z.string()),
  extensions: z.optional(Slot),
})
export const SessionUpdated = z.object({ ...base, type: z.literal('session.updated') })
export const SessionErrorEvent = z.object({ ...base, type: z.literal('session.error'), error: ErrorBody })
export const CapabilitiesEvent = z.object({ ...base, type: z.literal('capabilities'), capabilities: Capabilities })

/** §6.6. Beside the five kinds named there a delta may be a whole content item: media with its content id, or a thought. */
export const Delta = z.discriminatedUnion('type', [
  TextContent,
  ToolCallContent,
  ToolResultContent,
  AudioContent,
  z.object({
    type: z.literal('tool_progress'),
    tool_progress: z.object({ call_id: z.string(), text: z.string(), data: z.optional(z.unknown()) }),
  }),
  ImageContent,
  VideoContent,
  FileContent,
  ThinkingContent,
])
export type Delta = z.infer<typeof Delta>

export const ResponseCreated = z.object({
  ...base,
  type: z.literal('response.created'),
  response_id: z.string(),
  extensions: z.optional(Slot),
})
export const ResponseDelta = z.object({ ...base, type: z.literal('response.delta'), response_id: z.string(), delta: Delta })
export const ResponseDone = z.object({
  ...base,
  type: z.literal('response.done'),
  response_id: z.string(),
  response: z.object({
    id: z.string(),
    status: z.enum(['completed', 'cancelled', 'failed']),
    output: z.array(ContentItem),
    usage: z.optional(Usage),
    extensions: z.optional(Slot),
  }),
  signature: z.optional(z.string()),
})
/** Without `response_id` when the request was refused before there was a response. */
export const ResponseError = z.object({ ...base, type: z.literal('response.error'), response_id: z.optional(z.string()), error: ErrorBody })
export const ResponseCancelled = z.object({
  ...base,
  type: z.literal('response.cancelled'),
  response_id: z.string(),
  partial_output: z.optional(z.array(ContentItem)),
})

const ofResponse = { ...base, response_id: z.optional(z.string()) }

export const ToolCallEvent = z.object({
  ...ofResponse,
  type: z.literal('tool.call'),
  call_id: z.string(),
  name: z.string(),
  arguments: JsonText,
})
export const ToolCallDone = z.object({ ...ofResponse, type: z.literal('tool.call_done'), call_id: z.string() })
export const Progress = z.object({
  ...ofResponse,
  type: z.literal('progress'),
  target: z.enum(['tool', 'response', 'upload', 'reasoning']),
  target_id: z.optional(z.string()),
  stage: z.optional(z.string()),
  message: z.optional(z.string()),
  percent: z.optional(z.number().check(z.minimum(0), z.maximum(100))),
  step: z.optional(z.number()),
  total_steps: z.optional(z.number()),
})
export const Thinking = z.object({
  ...ofResponse,
  type: z.literal('thinking'),
  content: z.string(),
  stage: z.optional(z.string()),
  redacted: z.optional(z.boolean()),
  is_delta: z.optional(z.boolean()),
  signature: z.optional(z.string()),
})
export const AudioDelta = z.object({ ...ofResponse, type: z.literal('audio.delta'), audio: z.string(), format: z.optional(z.string()) })
export const AudioDone = z.object({ ...ofResponse, type: z.literal('audio.done'), duration_ms: z.optional(z.number()) })
export const TranscriptDelta = z.object({ ...ofResponse, type: z.literal('transcript.delta'), transcript: z.string() })
export const TranscriptDone = z.object({ ...ofResponse, type: z.literal('transcript.done'), transcript: z.optional(z.string()) })
export const UsageDelta = z.object({ ...ofResponse, type: z.literal('usage.delta'), delta: Usage })
export const RateLimit = z.object({
  ...base,
  type: z.literal('rate_limit'),
  limit: z.number(),
  remaining: z.number(),
  reset_at: z.optional(z.number()),
})

const who = { user_id: z.string(), username: z.optional(z.string()) }
export const PresenceTyping = z.object({
  ...base,
  type: z.literal('presence.typing'),
  ...who,
  is_typing: z.boolean(),
  chat_id: z.optional(z.string()),
})
export const PresenceOnline = z.object({ ...base, type: z.literal('presence.online'), ...who })
export const PresenceOffline = z.object({ ...base, type: z.literal('presence.offline'), ...who })
export const MessageCreated = z.object({ ...base, type: z.literal('message.created'), message: Slot, chat_id: z.optional(z.string()) })

export const PaymentRequired = z.object({
  ...ofResponse,
  type: z.literal('payment.required'),
  requirements: PaymentRequirements,
  extra: z.optional(Slot),
})
export const PaymentAccepted = z.object({
  ...ofResponse,
  type: z.literal('payment.accepted'),
  payment_id: z.string(),
  balance_remaining: z.optional(z.string()),
  expires_at: z.optional(z.number()),
})
export const PaymentBalance = z.object({
  ...ofResponse,
  type: z.literal('payment.balance'),
  balance: z.string(),
  currency: z.string(),
  low_balance_warning: z.optional(z.boolean()),
  estimated_remaining: z.optional(z.number()),
  expires_at: z.optional(z.number()),
  balance_remaining: z.optional(z.string()),
  threshold: z.optional(z.string()),
})
export const PaymentErrorEvent = z.object({
  ...ofResponse,
  type: z.literal('payment.error'),
  code: z.string(),
  message: z.string(),
  balance_required: z.optional(z.string()),
  balance_current: z.optional(z.string()),
  can_retry: z.optional(z.boolean()),
})

export const Pong = z.object({ ...base, type: z.literal('pong') })
