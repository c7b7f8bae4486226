/** What is sent to `POST /tasks` (UAMP transports, "A2A Transport"). */
import * as z from 'zod/mini'
import { list } from '../../../protocol/json.ts'
import { limits } from '../../../protocol/limits.ts'
import { Id, maybe } from '../schema.ts'
import { Metadata } from '../v03/schema.ts'
import { Message } from '../v01/schema.ts'

export const CreateTask = z
  .object({
    /** Chosen by the client. That of a task which waits for an answer goes on with it. */
    id: maybe(Id),
    contextId: maybe(Id),
    message: maybe(Message),
    /** What is said in several messages is taken for one. */
    messages: maybe(list(Message, limits.messages)),
    metadata: Metadata,
  })
  .check(z.refine(({ message, messages }) => message != null || (messages != null && messages.length > 0), 'must have a "message"'))
export type CreateTask = z.output<typeof CreateTask>

/** Tasks on a page of `GET /tasks`. */
const MAX_PAGE = 100
const PAGE = 50

const wholeNumber = z.transform((value: unknown) => (typeof value === 'string' && /^\d{1,9}$/.test(value) ? Number(value) : value))

export const ListTasks = z.object({
  limit: z._default(z.pipe(wholeNumber, z.int().check(z.minimum(1), z.maximum(MAX_PAGE))), PAGE),
  after: z.optional(z.string()),
})
