/** Client → server: UAMP events §5. */
import * as z from 'zod/mini'
import { ClientProfile } from './capabilities.ts'
import { AudioFormat, ContentItem, ImageDetail, JsonText, Media, measures } from './content.ts'
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

/** One client event. §14.3 rule 5: a client may put what the protocol has no field for beside any event. */
function event<const T extends string, F extends z.core.$ZodLooseShape>(type: T, fields: F) {
  return z.object({ ...base, extensions: z.optional(Slot), metadata: z.optional(Slot), type: z.literal(type), ...fields })
}

const text = z.optional(z.string())
const number = z.optional(z.number())
const flag = z.optional(z.boolean())
const contentId = { content_id: z.optional(Id), description: text }

export const SessionCreate = event('session.create', {
  uamp_version: z._default(z.string(), UAMP_VERSION),
  session: z._default(SessionConfig, () => ({ modalities: ['text'] })),
  agent: z.optional(Id),
  chat: z.optional(Id),
  token: text,
  payment_token: text,
  client_capabilities: z.optional(ClientProfile),
})
export const SessionUpdate = event('session.update', { token: text, payment_token: text, session: z.optional(SessionConfigPatch) })
/** Either side may end a session. */
export const SessionEnd = event('session.end', { reason: text, seq: number })
export const CapabilitiesQuery = event('capabilities.query', { model: text })
export const ClientCapabilities = event('client.capabilities', { capabilities: ClientProfile })

export const InputText = event('input.text', {
  text: z.string(),
  role: z.optional(z.enum(['user', 'system', 'assistant'])),
  messages: z.optional(list(Message, limits.messages)),
  payment_token: text,
  context: z.optional(Slot),
})
export const InputAudio = event('input.audio', { audio: Media, format: AudioFormat, is_final: flag, ...measures, ...contentId })
export const InputImage = event('input.image', { image: Media, format: text, detail: z.optional(ImageDetail), ...measures, ...contentId })
export const InputVideo = event('input.video', { video: Media, format: text, ...measures, ...contentId })
export const InputFile = event('input.file', {
  file: Media,
  filename: z.string(),
  mime_type: z.string(),
  size_bytes: measures.size_bytes,
  ...contentId,
})
export const InputTyping = event('input.typing', { is_typing: z.boolean(), chat_id: text })

export const ResponseCreate = event('response.create', {
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
export const ResponseCancel = event('response.cancel', { response_id: z.optional(Id) })

export const ToolResultEvent = event('tool.result', {
  call_id: Id,
  result: JsonText,
  is_error: flag,
  content_items: z.optional(list(ContentItem, limits.list)),
})
export const PaymentSubmit = event('payment.submit', { payment: Payment })

/** Either side may invite to, accept, decline and end a voice session (§7.3). */
export const VoiceInvite = event('voice.invite', { voice: z.optional(VoiceConfig), offer: z.optional(Slot), seq: number })
export const VoiceAccept = event('voice.accept', { voice: z.optional(VoiceConfig), answer: z.optional(Slot), seq: number })
export const VoiceDecline = event('voice.decline', { reason: text, seq: number })
export const VoiceEnd = event('voice.end', { reason: text, duration_ms: number, seq: number })

/** A read receipt, in both directions (§7.1). */
export const MessageRead = event('message.read', { chat_id: z.string(), user_id: text, last_read_at: number, seq: number })

export const Ping = event('ping', {})
