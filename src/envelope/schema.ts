import * as z from 'zod/mini'
import { list, Slot } from '../protocol/json.ts'

/** UAMP envelope §4.1. */
export const INTENTS = ['ask', 'inform', 'propose', 'confirm', 'deny', 'progress', 'cancel', 'subscribe', 'notify', 'error'] as const
export type Intent = (typeof INTENTS)[number]

/** How a body is written as text, and how it was packed before that. */
export const ENCODINGS = ['utf-8', 'base64', 'base64url'] as const
export const COMPRESSIONS = ['none', 'gzip', 'br'] as const

const RECIPIENTS = 64
const CONTEXTS = 64
const URI_CHARS = 2048
const STREAM_ID_CHARS = 128
const TOKEN_CHARS = 8192

// Without flags, because the published JSON Schema has the pattern alone.
const UUID = /^(?:[Uu][Rr][Nn]:[Uu][Uu][Ii][Dd]:)?[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-4[0-9A-Fa-f]{3}-[89ABab][0-9A-Fa-f]{3}-[0-9A-Fa-f]{12}$/
const UTC = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?(?:Z|\+00:00)$/
const URI = /^[A-Za-z][A-Za-z0-9+.-]*:(?:[A-Za-z0-9._~:/?#[\]@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})+$/
const HASH = /^sha256:[0-9a-f]{64}$/
const VISIBLE = /^[!-~]+$/

const text = (most: number, form: RegExp, error: string) => z.string().check(z.maxLength(most), z.regex(form, { error }))

/** A UUID of version 4, with or without `urn:uuid:`. */
export const MessageId = text(64, UUID, 'must be a UUID of version 4')
/** A time in UTC. Other offsets and leap seconds are refused, because readers disagree about them. */
export const Timestamp = text(40, UTC, 'must be a time in UTC, such as 2026-01-31T12:00:00Z').check(
  z.refine(isOnCalendar, { error: 'must be a time that there is' }),
)
export const StreamId = text(STREAM_ID_CHARS, VISIBLE, 'must have visible characters of ASCII alone')
const Uri = text(URI_CHARS, URI, 'must be a URI')

export const Body = z.object({
  type: z.string().check(z.maxLength(256)),
  content: z.string(),
  encoding: z.optional(z.string()),
  compression: z.optional(z.string()),
})
export type Body = z.infer<typeof Body>

/** The envelope as the schema of the specification has it (UAMP envelope §A.1). What is signed are the members as they came. */
export const Envelope = z.strictObject({
  id: MessageId,
  ts: Timestamp,
  from: Uri,
  to: list(Uri, RECIPIENTS).check(z.minLength(1)),
  intent: z.enum(INTENTS),
  reply_to: z.optional(MessageId),
  context: z.optional(list(z.object({ id: MessageId, hash: text(71, HASH, 'must be sha256: and 64 hexadecimal digits') }), CONTEXTS)),
  stream_id: z.optional(StreamId),
  delta_window: z.optional(z.int().check(z.minimum(1))),
  body: Body,
  cap_token: z.optional(z.string().check(z.maxLength(TOKEN_CHARS))),
  sig: z.string().check(z.maxLength(TOKEN_CHARS)),
  ext: z.optional(Slot),
})
export type Envelope = z.infer<typeof Envelope>

/** What its sender signs. */
export type Unsigned = Omit<Envelope, 'sig'>

export const DELTA_TYPES = ['patch', 'chunk', 'progress', 'done', 'cancel', 'error'] as const

/** One frame of a stream (UAMP envelope §A.2). */
export const Delta = z.strictObject({
  delta_seq: z.int().check(z.minimum(0)),
  stream_id: StreamId,
  ts: Timestamp,
  type: z.enum(DELTA_TYPES),
  payload: z.optional(Slot),
})
export type Delta = z.infer<typeof Delta>

/** What a server offers (UAMP envelope §A.3). It names no DID: whose it is says the key that signs it. */
export const Manifest = z.strictObject({
  agent: text(32, /^uamp\/1\.[0-9]+$/, 'must be uamp/1. and a number'),
  description: z.string(),
  intents: list(z.string(), 64),
  body_types: list(z.string(), 256),
  auth: list(z.enum(['oauth2', 'mtls']), 8),
  limits: z.strictObject({
    max_body_kb: z.optional(z.int().check(z.minimum(0))),
    rate_lph: z.optional(z.int().check(z.minimum(0))),
  }),
})
export type Manifest = z.infer<typeof Manifest>

/** The id by which a message is known, however it was written. */
export function messageKey(id: string): string {
  return id.toLowerCase().replace(/^urn:uuid:/, '')
}

/** False for the 31st of June, which JavaScript takes for the 1st of July. */
function isOnCalendar(time: string): boolean {
  const date = new Date(time)
  return !Number.isNaN(date.getTime()) && date.toISOString().slice(0, 10) === time.slice(0, 10)
}
