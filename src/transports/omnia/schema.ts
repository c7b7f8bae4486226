/** What a client sends: Omnia WebSocket protocol, client messages; and what today's clients send beside it. */
import * as z from 'zod/mini'
import { UampError } from '../../protocol/errors.ts'
import { explain } from '../../protocol/explain.ts'
import { isRecord, isTextDeeperThan, list, Slot } from '../../protocol/json.ts'
import { limits } from '../../protocol/limits.ts'
import { Tools } from '../../protocol/tools.ts'

const Id = z.string().check(z.maxLength(limits.idLength))
const text = z.nullish(z.string())
const number = z.nullish(z.number())
const grants = z.nullish(list(z.string(), limits.list))

export const Media = z.object({
  data: text,
  url: text,
  storage_ref: text,
  mime_type: z.string(),
  filename: text,
  size_bytes: number,
  detail: text,
  duration_ms: number,
  sample_rate: number,
  channels: number,
})
export type Media = z.infer<typeof Media>

export const Part = z.object({
  type: z.enum(['text', 'image', 'audio', 'video', 'file']),
  text,
  media: z.nullish(Media),
})
export type Part = z.infer<typeof Part>

export const UploadRequest = z.object({ filename: z.string(), mime_type: z.string(), size_bytes: z.number() })
export type UploadRequest = z.infer<typeof UploadRequest>

/** `POST /media/request-upload`. */
export const UploadBody = z.object({ session_id: Id, ...UploadRequest.shape })

const base = { session_id: z.nullish(Id) }

const Message = z.object({
  ...base,
  type: z.literal('message'),
  content: text,
  parts: z.nullish(list(Part, limits.list)),
  metadata: z.nullish(Slot),
  consent_grants: grants,
  session_consent_grants: grants,
  /** Ours: the tools that this client has. */
  ext: z.nullish(z.object({ tools: z.nullish(Tools) })),
})
export type Message = z.infer<typeof Message>

const ClientMessage = z.discriminatedUnion('type', [
  Message,
  z.object({ ...base, type: z.literal('upload_request'), upload_request: UploadRequest }),
  z.object({ ...base, type: z.literal('tool_call_ack'), tool_call_ack: z.object({ call_id: Id }) }),
  z.object({ ...base, type: z.literal('tool_call_nack'), tool_call_nack: z.object({ call_id: Id, reason: text }) }),
  z.object({
    ...base,
    type: z.literal('tool_result'),
    tool_result: z.object({ call_id: Id, result: z.optional(z.unknown()), error: text }),
  }),
  z.object({ ...base, type: z.literal('hangup') }),
])
export type ClientMessage = z.infer<typeof ClientMessage>

/** What the first binary frame of a call says of its sound; later ones may say it anew. */
export const SoundMeta = z.object({ codec: text, sample_rate: number, channels: number })

export function parseMessage(frame: string): ClientMessage {
  return parse(ClientMessage, frame)
}

/** Throws `invalid_request`, and says what is wrong. */
export function parse<T>(schema: z.ZodMiniType<T>, given: string): T {
  if (isTextDeeperThan(given, limits.depth)) throw invalid(`A message must nest at most ${limits.depth} levels`)
  let value: unknown
  try {
    value = JSON.parse(given)
  } catch {
    throw invalid('This is not JSON')
  }
  if (!isRecord(value)) throw invalid('A message must be a JSON object')
  return check(schema, value)
}

export function check<T>(schema: z.ZodMiniType<T>, value: unknown): T {
  const result = z.safeParse(schema, value, { error: explain })
  if (result.success) return result.data
  const [issue] = result.error.issues
  throw invalid(`"${issue?.path.join('.')}" ${issue?.message}`)
}

export function invalid(message: string): UampError {
  return new UampError('invalid_request', message)
}
