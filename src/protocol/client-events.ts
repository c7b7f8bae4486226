/** Client → server: UAMP events §5. */
import * as z from 'zod/mini'
import { Capabilities } from './capabilities.ts'
import { AudioFormat, ContentItem, ImageDetail, JsonText, Media } from './content.ts'
import { list, Slot } from './json.ts'
import { limits } from './limits.ts'
import { Message } from './message.ts'
import { Payment } from './payment.ts'
import { Instructions, Modalities, ResponseFormat, SessionConfig, SessionConfigPatch } from './session-config.ts'
import { Tools } from './tools.ts'
import { UAMP_VERSION } from './version.ts'
import { VoiceConfig } from './voice.ts'

const Id = z.string().check(z.maxLength(limits.idLength))

/** UAMP events §4. */
export const base = { event_id: Id, timestamp: z.optional(z.number()), session_id: z.optional(Id) }

/** §14.3 rule 5: a client may put what the protocol has no field for beside any event. */
const client = { ...base, extensions: z.optional(Slot), metadata: z.optional(Slot) }

const contentId = { content_id: z.optional(Id), description: z.optional(z.string()) }

export const SessionCreate = z.object({
  ...client,
  type: z.literal('session.create'),
  uamp_version: z._default(z.string(), UAMP_VERSION),
  session: z._default(SessionConfig, () => ({ modalities: ['text'] })),
  agent: z.optional(Id),
  chat: z.optional(Id),
  token: z.optional(z.string()),
  payment_token: z.optional(z.string()),
  client_capabilities: z.optional(Capabilities),
})
export const SessionUpdate = z.object({
  ...client,
  type: z.literal('session.update'),
  token: z.optional(z.string()),
  payment_token: z.optional(z.string()),
  session: z.optional(SessionConfigPatch),
})
/** Either side may end a session. */
export const SessionEnd = z.object({
  ...client,
  type: z.literal('session.end'),
  reason: z.optional(z.string()),
  seq: z.optional(z.number()),
})
export const CapabilitiesQuery = z.object({ ...client, type: z.literal('capabilities.query'), model: z.optional(z.string()) })
export const ClientCapabilities = z.object({ ...client, type: z.literal('client.capabilities'), capabilities: Capabilities })

export const InputText = z.object({
  ...client,
  type: z.literal('input.text'),
  text: z.string(),
  role: z.optional(z.enum(['user', 'system', 'assistant'])),
  messages: z.optional(list(Message, limits.messages)),
  payment_token: z.optional(z.string()),
  context: z.optional(Slot),
})
export const InputAudio = z.object({
  ...client,
  type: z.literal('input.audio'),
  audio: Media,
  format: AudioFormat,
  is_final: z.optional(z.boolean()),
  ...contentId,
})
export const InputImage = z.object({
  ...client,
  type: z.literal('input.image'),
  image: Media,
  format: z.optional(z.string()),
  detail: z.optional(ImageDetail),
  ...contentId,
})
export const InputVideo = z.object({
  ...client,
  type: z.literal('input.video'),
  video: Media,
  format: z.optional(z.string()),
  ...contentId,
})
export const InputFile = z.object({
  ...client,
  type: z.literal('input.file'),
  file: Media,
  filename: z.string(),
  mime_type: z.string(),
  ...contentId,
})
export const InputTyping = z.object({
  ...client,
  type: z.literal('input.typing'),
  is_typing: z.boolean(),
  chat_id: z.optional(z.string()),
})

export const ResponseCreate = z.object({
  ...client,
  type: z.literal('response.create'),
  response: z.optional(
    z.object({
      modalities: z.optional(Modalities),
      instructions: z.optional(Instructions),
      tools: z.optional(Tools),
      extensions: z.optional(Slot),
    }),
  ),
  response_format: z.optional(ResponseFormat),
})
export const ResponseCancel = z.object({ ...client, type: z.literal('response.cancel'), response_id: z.optional(Id) })

export const ToolResultEvent = z.object({
  ...client,
  type: z.literal('tool.result'),
  call_id: Id,
  result: JsonText,
  is_error: z.optional(z.boolean()),
  content_items: z.optional(list(ContentItem, limits.list)),
})
export const PaymentSubmit = z.object({ ...client, type: z.literal('payment.submit'), payment: Payment })

/** Either side may invite to, accept, decline and end a voice session (§7.3). */
export const VoiceInvite = z.object({
  ...client,
  type: z.literal('voice.invite'),
  voice: z.optional(VoiceConfig),
  offer: z.optional(Slot),
  seq: z.optional(z.number()),
})
export const VoiceAccept = z.object({
  ...client,
  type: z.literal('voice.accept'),
  voice: z.optional(VoiceConfig),
  answer: z.optional(Slot),
  seq: z.optional(z.number()),
})
export const VoiceDecline = z.object({
  ...client,
  type: z.literal('voice.decline'),
  reason: z.optional(z.string()),
  seq: z.optional(z.number()),
})
export const VoiceEnd = z.object({
  ...client,
  type: z.literal('voice.end'),
  reason: z.optional(z.string()),
  duration_ms: z.optional(z.number()),
  seq: z.optional(z.number()),
})

/** A read receipt, in both directions (§7.1). */
export const MessageRead = z.object({
  ...client,
  type: z.literal('message.read'),
  chat_id: z.string(),
  user_id: z.optional(z.string()),
  last_read_at: z.optional(z.number()),
  seq: z.optional(z.number()),
})

export const Ping = z.object({ ...client, type: z.literal('ping') })
