/** What clients of A2A 0.2 and 0.3 send. `type` is taken for `kind`: that was its name in 0.1, and some clients still send it. */
import * as z from 'zod/mini'
import { isRecord, list, type Json } from '../../../protocol/json.ts'
import { limits } from '../../../protocol/limits.ts'
import type { Struct } from '../model.ts'
import { Base64, HeaderText, Id, isBase64, maybe, MaybeUrl, Metadata, Name, Url } from '../schema.ts'

const MaybeId = maybe(Name)
export const HistoryLength = maybe(z.int().check(z.minimum(0)))
export const Modes = maybe(list(Name, limits.list))
const Names = maybe(list(z.string(), limits.list))

const TextPart = z.object({ kind: z.literal('text'), text: z.string(), metadata: Metadata })

/** The test kit of 0.3 writes `url`, and agents of UAMP transports write `data`. */
const File = z
  .object({
    name: maybe(z.string()),
    mimeType: maybe(z.string()),
    bytes: maybe(Base64),
    data: maybe(Base64),
    uri: MaybeUrl,
    url: MaybeUrl,
  })
  .check(
    z.refine((file) => (bytesOf(file) === undefined) !== (uriOf(file) === undefined), 'must have either "bytes" or "uri", and not both'),
  )
export type File = z.infer<typeof File>

const FilePart = z.object({ kind: z.literal('file'), file: File, metadata: Metadata })

const DataPart = z.object({
  kind: z.literal('data'),
  data: z.custom<Struct>(isRecord, 'must be an object'),
  metadata: Metadata,
})

const DATA = 'must be an object or an array, or base64 with a "mimeType"'

/** A2A 0.1.0 §6.5.3 also has arrays. Agents of UAMP transports write a file as base64 with a media type. */
const LooseDataPart = z
  .object({
    kind: z.literal('data'),
    data: z.custom<Struct | readonly Json[] | string>(
      (data) => typeof data === 'string' || (typeof data === 'object' && data !== null),
      'must be an object or an array',
    ),
    mimeType: maybe(z.string()),
    metadata: Metadata,
  })
  .check(z.refine(({ data, mimeType }) => typeof data !== 'string' || (Boolean(mimeType) && isBase64(data)), DATA))

const withKind = z.transform((value: unknown) => {
  if (!isRecord(value) || value['kind'] !== undefined || typeof value['type'] !== 'string') return value
  return { ...value, kind: value['type'] }
})

export const Part = z.pipe(withKind, z.discriminatedUnion('kind', [TextPart, FilePart, DataPart]))
export type Part = z.output<typeof Part>
export const LoosePart = z.pipe(withKind, z.discriminatedUnion('kind', [TextPart, FilePart, LooseDataPart]))
export type LoosePart = z.output<typeof LoosePart>

export const partsOf = <T extends z.core.SomeType>(part: T) => list(part, limits.list).check(z.minLength(1, 'must have at least one part'))

/** Clients send only messages of users. */
export const Role = z.literal('user')

export const Message = z.pipe(
  withKind,
  z.object({
    kind: maybe(z.literal('message')),
    messageId: Id,
    role: Role,
    parts: partsOf(Part),
    contextId: MaybeId,
    taskId: MaybeId,
    metadata: Metadata,
    extensions: Names,
    referenceTaskIds: maybe(list(Id, limits.list)),
  }),
)
export type Message = z.output<typeof Message>

/** Ways to authenticate that a webhook may offer. */
const SCHEMES = 16

export const Push = z.object({
  id: MaybeId,
  url: Url,
  token: maybe(HeaderText),
  authentication: maybe(z.object({ schemes: maybe(list(HeaderText, SCHEMES)), credentials: maybe(HeaderText) })),
})
export type Push = z.infer<typeof Push>

export const MessageSendParams = z.object({
  message: Message,
  configuration: maybe(
    z.object({
      acceptedOutputModes: Modes,
      historyLength: HistoryLength,
      pushNotificationConfig: maybe(Push),
      blocking: maybe(z.boolean()),
    }),
  ),
  metadata: Metadata,
})
export type MessageSendParams = z.output<typeof MessageSendParams>

export const TaskQueryParams = z.object({ id: Id, historyLength: HistoryLength, metadata: Metadata })
export const TaskIdParams = z.object({ id: Id, metadata: Metadata })

export const SetPushParams = z.object({ taskId: Id, pushNotificationConfig: Push })
export const GetPushParams = z.object({ id: Id, pushNotificationConfigId: MaybeId })
export const DeletePushParams = z.object({ id: Id, pushNotificationConfigId: Id })

type Maybe = string | null | undefined

export function uriOf({ uri, url }: { readonly uri?: Maybe; readonly url?: Maybe }): string | undefined {
  return uri || url || undefined
}

export function bytesOf({ bytes, data }: { readonly bytes?: Maybe; readonly data?: Maybe }): string | undefined {
  return bytes ?? data ?? undefined
}
