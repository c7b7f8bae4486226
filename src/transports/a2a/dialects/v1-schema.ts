/**
 * What clients send in A2A 1.0 (`lf.a2a.v1` as ProtoJSON). Fields that are not named here are left out and never refused (A2A 1.0
 * §5.7). ProtoJSON reads null as not there, an enum also by its number, and a number also as text.
 */
import * as z from 'zod/mini'
import { list, type Json } from '../../../protocol/json.ts'
import { limits } from '../../../protocol/limits.ts'
import { SPELLED, type TaskState } from '../../../wire/a2a/states.ts'
import { Base64, HeaderText, Id, maybe, Metadata, Name, numeral, PageSize, Secret, Url } from '../schema.ts'

const tenant = maybe(Name)

const Count = z.pipe(numeral, z.int().check(z.gte(0)))

const ROLES = ['ROLE_UNSPECIFIED', 'ROLE_USER', 'ROLE_AGENT']
const STATES = ['TASK_STATE_UNSPECIFIED', ...(Object.keys(SPELLED) as TaskState[])] as const

const named = (names: readonly string[]) =>
  z.transform((value: unknown) =>
    typeof value === 'number' || (typeof value === 'string' && /^\d$/.test(value)) ? (names[Number(value)] ?? value) : value,
  )

/** Clients send only messages of users. */
const Role = z.pipe(named(ROLES), z.literal('ROLE_USER'))
const State = z.pipe(named(STATES), z.enum(STATES))

const isTime = (text: string) =>
  /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/.test(text) && !Number.isNaN(Date.parse(text))
const Time = z.string().check(z.refine(isTime, 'must be a time in ISO 8601, such as "2025-10-28T10:30:00.000Z"'))

const Part = z
  .object({
    text: maybe(z.string()),
    raw: maybe(Base64),
    url: maybe(Url),
    /** Any JSON value, null among them. */
    data: z.optional(z.custom<Json>(() => true)),
    filename: maybe(z.string()),
    mediaType: maybe(Name),
    metadata: Metadata,
  })
  .check(
    z.refine(
      ({ text, raw, url, data }) => [text != null, raw != null, url != null, data !== undefined].filter(Boolean).length === 1,
      'must have exactly one of text, raw, url and data',
    ),
  )
export type Part = z.infer<typeof Part>

const Message = z.object({
  messageId: Id,
  role: Role,
  parts: list(Part, limits.list).check(z.refine((parts) => parts.length > 0, 'must have at least one part')),
  contextId: maybe(Name),
  taskId: maybe(Name),
  metadata: Metadata,
  extensions: maybe(list(z.string(), limits.list)),
  referenceTaskIds: maybe(list(Name, limits.list)),
})
export type Message = z.infer<typeof Message>

const pushFields = {
  tenant,
  id: maybe(Name),
  url: Url,
  token: maybe(HeaderText),
  authentication: maybe(
    z.object({ scheme: HeaderText.check(z.refine((scheme) => scheme !== '', 'must not be empty')), credentials: maybe(HeaderText) }),
  ),
}

export const PushConfigFields = z.object(pushFields)
export type PushConfigFields = z.infer<typeof PushConfigFields>

export const SendMessageRequest = z.object({
  tenant,
  message: Message,
  configuration: maybe(
    z.object({
      acceptedOutputModes: maybe(list(z.string(), limits.list)),
      taskPushNotificationConfig: maybe(PushConfigFields),
      historyLength: maybe(Count),
      returnImmediately: maybe(z.boolean()),
    }),
  ),
  metadata: Metadata,
})
export type SendMessageRequest = z.infer<typeof SendMessageRequest>

export const GetTaskRequest = z.object({ tenant, id: Id, historyLength: maybe(Count) })

export const ListTasksRequest = z.object({
  tenant,
  contextId: maybe(Name),
  status: maybe(State),
  pageSize: maybe(PageSize),
  pageToken: maybe(Secret),
  historyLength: maybe(Count),
  statusTimestampAfter: maybe(Time),
  includeArtifacts: maybe(z.boolean()),
})
export type ListTasksRequest = z.infer<typeof ListTasksRequest>

export const ExtendedCardRequest = z.object({ tenant })

/** `CancelTask` and `SubscribeToTask`. */
export const TaskRequest = z.object({ tenant, id: Id, metadata: Metadata })

export const CreatePushConfigRequest = z.object({ ...pushFields, taskId: Id })

export const OnePushConfigRequest = z.object({ tenant, taskId: Id, id: Id })

export const ListPushConfigsRequest = z.object({
  tenant,
  taskId: Id,
  pageSize: maybe(Count),
  pageToken: maybe(Secret),
})
