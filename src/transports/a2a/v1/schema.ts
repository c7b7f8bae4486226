/**
 * What clients send in A2A 1.0 (`lf.a2a.v1` as ProtoJSON). Fields that are not named here are left out and never refused (A2A 1.0
 * §5.7). ProtoJSON reads null as not there, an enum also by its number, and a number also as text.
 */
import * as z from 'zod/mini'
import { list, Slot, type Json } from '../../../protocol/json.ts'
import { limits } from '../../../protocol/limits.ts'
import { SPELLED, type TaskState } from '../../../wire/a2a/states.ts'
import { Base64, HeaderText, Id, maybe, Name, Secret, Url } from '../schema.ts'

/** Tasks on a page, unless the client says how many (A2A 1.0 §3.1.4). */
export const PAGE_SIZE = 50
const MAX_PAGE_SIZE = 100

const tenant = maybe(Name)

const number = z.transform((value: unknown) => (typeof value === 'string' && /^-?\d{1,9}$/.test(value) ? Number(value) : value))
const integer = (check: z.core.$ZodCheck<number>) => z.pipe(number, z.int().check(check))
const HistoryLength = integer(z.gte(0))

const ROLES = ['ROLE_UNSPECIFIED', 'ROLE_USER', 'ROLE_AGENT']
const STATES = ['TASK_STATE_UNSPECIFIED', ...(Object.keys(SPELLED) as TaskState[])] as const

const named = (names: readonly string[]) =>
  z.transform((value: unknown) =>
    typeof value === 'number' || (typeof value === 'string' && /^\d$/.test(value)) ? (names[Number(value)] ?? value) : value,
  )

/** What clients send is always from them to us. */
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
    metadata: maybe(Slot),
  })
  .check(z.refine(hasOneContent, 'must have exactly one of text, raw, url and data'))
export type Part = z.infer<typeof Part>

function hasOneContent({ text, raw, url, data }: { text?: unknown; raw?: unknown; url?: unknown; data?: unknown }): boolean {
  return [text ?? undefined, raw ?? undefined, url ?? undefined, data].filter((content) => content !== undefined).length === 1
}

const Message = z.object({
  messageId: Id,
  role: Role,
  parts: list(Part, limits.list).check(z.refine((parts) => parts.length > 0, 'must have at least one part')),
  contextId: maybe(Name),
  taskId: maybe(Name),
  metadata: maybe(Slot),
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
      historyLength: maybe(HistoryLength),
      returnImmediately: maybe(z.boolean()),
    }),
  ),
  metadata: maybe(Slot),
})
export type SendMessageRequest = z.infer<typeof SendMessageRequest>

export const GetTaskRequest = z.object({ tenant, id: Id, historyLength: maybe(HistoryLength) })

export const ListTasksRequest = z.object({
  tenant,
  contextId: maybe(Name),
  status: maybe(State),
  pageSize: maybe(integer(z.gte(1)).check(z.lte(MAX_PAGE_SIZE))),
  pageToken: maybe(Secret),
  historyLength: maybe(HistoryLength),
  statusTimestampAfter: maybe(Time),
  includeArtifacts: maybe(z.boolean()),
})
export type ListTasksRequest = z.infer<typeof ListTasksRequest>

export const CancelTaskRequest = z.object({ tenant, id: Id, metadata: maybe(Slot) })

export const SubscribeToTaskRequest = z.object({ tenant, id: Id })

export const CreatePushConfigRequest = z.object({ ...pushFields, taskId: Id })

export const OnePushConfigRequest = z.object({ tenant, taskId: Id, id: Id })

export const ListPushConfigsRequest = z.object({
  tenant,
  taskId: Id,
  pageSize: maybe(integer(z.gte(0))),
  pageToken: maybe(Secret),
})

export const ExtendedCardRequest = z.object({ tenant })
