/** What clients send: the client messages of the Omnia WebSocket protocol, and what today's clients send beside them. */
import * as z from 'zod/mini'
import { FIRST_EXPLAINED } from '../../protocol/explain.ts'
import { list, Slot } from '../../protocol/json.ts'
import { limits } from '../../protocol/limits.ts'
import { Tools } from '../../protocol/tools.ts'
import { parseObject } from '../../wire/parse.ts'
import { invalid } from './errors.ts'

/** A lone surrogate cannot be written as UTF-8, nor be part of a key. */
const wellFormed = z.refine<string>((given) => given.isWellFormed(), 'is not well-formed text')
const Id = z.string().check(z.maxLength(limits.idLength), wellFormed)
const text = z.nullish(z.string())
const number = z.nullish(z.number())
const grants = z.nullish(list(z.string(), limits.list))

/** The server only shows it, but clients may use it as a path. */
// oxlint-disable-next-line no-control-regex
const NAME = /^(?!\.{1,2}$)[^/\\\u0000-\u001f\u007f]+$/
const Filename = z.string().check(z.regex(NAME, 'must be the name of a file, without a path'), z.maxLength(255), wellFormed)

/** RFC 6838 §4.2, with parameters as in RFC 9110 §5.6.6; and with commas, as browsers write `codecs=vp8,opus`. It becomes a header. */
const MIME =
  /^[\w!#$&^.+-]{1,127}\/[\w!#$&^.+-]{1,127}(?:[ \t]*;[ \t]*[\w!#$%&'*+.^`|~-]+=(?:[\w!#$%&'*+.^`|~,-]+|"(?:[ !#-[\]-~]|\\[ -~])*"))*$/
const MimeType = z.string().check(z.regex(MIME, 'is not a media type'), z.maxLength(255))

export function isMimeType(given: string): boolean {
  return z.safeParse(MimeType, given).success
}

const Media = z
  .object({
    data: z.nullish(z.string().check(z.refine(isPlainBase64, 'is not base64'))),
    url: z.nullish(z.string().check(z.regex(/^https?:\/\//i, 'must be an http(s) URL'))),
    storage_ref: text,
    mime_type: MimeType,
    filename: z.nullish(Filename),
    size_bytes: number,
    width: number,
    height: number,
    detail: z.nullish(z.enum(['low', 'high', 'auto'])),
    duration_ms: number,
    sample_rate: number,
    channels: number,
  })
  .check(
    z.refine(
      ({ data, url, storage_ref }) => [data, url, storage_ref].filter((source) => source != null).length === 1,
      'must have one of "data", "url" and "storage_ref"',
    ),
  )

const MediaPart = z.object({ type: z.enum(['image', 'audio', 'video', 'file']), media: Media })
export type MediaPart = z.infer<typeof MediaPart>

const Part = z.discriminatedUnion('type', [z.object({ type: z.literal('text'), text: z.string() }), MediaPart])

export const UploadRequest = z.object({
  filename: Filename,
  mime_type: MimeType,
  size_bytes: z.number().check(z.refine((size) => Number.isInteger(size) && size > 0, 'must be positive and whole')),
})
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
  /** Ours: the tools that this client has, and whether it wants the events that Omnia has no message for. */
  ext: z.nullish(z.object({ tools: z.nullish(Tools), events: z.nullish(z.boolean()) })),
})
export type Message = z.infer<typeof Message>

export const ClientMessage = z.discriminatedUnion('type', [
  Message,
  z.object({ ...base, type: z.literal('upload_request'), upload_request: Slot }),
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

/** What the first binary frame of a call says about its sound. Later frames may say it again. */
export const SoundMeta = z.object({ codec: text, sample_rate: number, channels: number })
export type SoundMeta = z.infer<typeof SoundMeta>

/** Throws `invalid_request`, and says what is wrong. */
export function parse<T>(schema: z.ZodMiniType<T>, given: string): T {
  return check(schema, parseObject(given, 'A message', invalid))
}

export function check<T>(schema: z.ZodMiniType<T>, value: unknown, ...at: readonly string[]): T {
  const result = z.safeParse(schema, value, FIRST_EXPLAINED)
  if (result.success) return result.data
  const [issue] = result.error.issues
  throw invalid(`"${[...at, ...(issue?.path ?? [])].join('.')}" ${issue?.message}`)
}

/** With padding and without white space: `atob` also takes other forms. */
function isPlainBase64(given: string): boolean {
  if (given.length % 4 !== 0 || /\s/.test(given)) return false
  try {
    atob(given)
    return true
  } catch {
    return false
  }
}
