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

const text = z.optional(z.string())
const number = z.optional(z.number())
const flag = z.optional(z.boolean())

/** `seq` is ours: the event's place in the session's log, from which a reader resumes. */
const base = { ...clientBase, seq: number }

export const ErrorBody = z.object({ code: z.string(), message: z.string(), details: z.optional(Slot) })

/** §8.8. */
export const SessionInfo = z.object({
  id: z.string(),
  created_at: z.number(),
  config: SessionConfig,
  status: z.enum(['active', 'closed']),
})

/** One server event. */
function event<const T extends string, F extends z.core.$ZodLooseShape>(type: T, fields: F) {
  return z.object({ ...base, type: z.literal(type), ...fields })
}

/** One server event that may belong to a response. */
export function inResponse<const T extends string, F extends z.core.$ZodLooseShape>(type: T, fields: F) {
  return z.object({ ...base, response_id: text, type: z.literal(type), ...fields })
}

export const SessionCreated = event('session.created', {
  uamp_version: z.string(),
  session: SessionInfo,
  chat: text,
  agent: text,
  extensions: z.optional(Slot),
})
export const SessionUpdated = event('session.updated', {})
export const SessionErrorEvent = event('session.error', { error: ErrorBody })
export const CapabilitiesEvent = event('capabilities', { capabilities: Capabilities })

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

export const ResponseCreated = event('response.created', { response_id: z.string(), extensions: z.optional(Slot) })
export const ResponseDelta = event('response.delta', { response_id: z.string(), delta: Delta })
export const ResponseDone = event('response.done', {
  response_id: z.string(),
  response: z.object({
    id: z.string(),
    status: z.enum(['completed', 'cancelled', 'failed']),
    output: z.array(ContentItem),
    usage: z.optional(Usage),
    extensions: z.optional(Slot),
  }),
  signature: text,
})
/** Has no `response_id` if the request was refused before there was a response. */
export const ResponseError = event('response.error', { response_id: text, error: ErrorBody })
export const ResponseCancelled = event('response.cancelled', {
  response_id: z.string(),
  partial_output: z.optional(z.array(ContentItem)),
})

export const ToolCallEvent = inResponse('tool.call', { call_id: z.string(), name: z.string(), arguments: JsonText })
export const ToolCallDone = inResponse('tool.call_done', { call_id: z.string() })
export const Progress = inResponse('progress', {
  target: z.enum(['tool', 'response', 'upload', 'reasoning']),
  target_id: text,
  stage: text,
  message: text,
  percent: z.optional(z.number().check(z.minimum(0), z.maximum(100))),
  step: number,
  total_steps: number,
})
export const Thinking = inResponse('thinking', { content: z.string(), stage: text, redacted: flag, is_delta: flag, signature: text })
export const AudioDelta = inResponse('audio.delta', { audio: z.string(), format: text })
export const AudioDone = inResponse('audio.done', { duration_ms: number })
export const TranscriptDelta = inResponse('transcript.delta', { transcript: z.string() })
export const TranscriptDone = inResponse('transcript.done', { transcript: text })
export const UsageDelta = inResponse('usage.delta', { delta: Usage, extensions: z.optional(Slot) })
export const RateLimit = event('rate_limit', { limit: z.number(), remaining: z.number(), reset_at: number })

const who = { user_id: z.string(), username: text }
export const PresenceTyping = event('presence.typing', { ...who, is_typing: z.boolean(), chat_id: text })
export const PresenceOnline = event('presence.online', who)
export const PresenceOffline = event('presence.offline', who)
export const MessageCreated = event('message.created', { message: Slot, chat_id: text })

export const PaymentRequired = inResponse('payment.required', { requirements: PaymentRequirements, extra: z.optional(Slot) })
export const PaymentAccepted = inResponse('payment.accepted', { payment_id: z.string(), balance_remaining: text, expires_at: number })
export const PaymentBalance = inResponse('payment.balance', {
  balance: z.string(),
  currency: z.string(),
  low_balance_warning: flag,
  estimated_remaining: number,
  expires_at: number,
  balance_remaining: text,
  threshold: text,
})
export const PaymentErrorEvent = inResponse('payment.error', {
  code: z.string(),
  message: z.string(),
  balance_required: text,
  balance_current: text,
  can_retry: flag,
})

export const Pong = event('pong', {})
