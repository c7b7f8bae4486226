/** `/tasks`: the early shape that UAMP transports describe. */
import * as z from 'zod/mini'
import type { HttpRoute, KnownCall, Streamed } from '../../core/ports/transport.ts'
import { UampError } from '../../protocol/errors.ts'
import { list } from '../../protocol/json.ts'
import { limits } from '../../protocol/limits.ts'
import { fromArtifacts, fromCancelled, fromTask, taskLines } from './dialects/tasks.ts'
import { SentMessage, toMessage } from './dialects/v01.ts'
import { isReason, refusalWith } from './errors.ts'
import type { SendRequest, Task } from './model.ts'
import type { Parts, RpcContext } from './operations.ts'
import { bodyIn, contextOf, parseParams } from './request.ts'
import { refusing } from './rest.ts'
import { filled, Id, maybe, Metadata, PAGE_SIZE, PageSize } from './schema.ts'
import { streamAnswer } from './stream.ts'

const CreateTask = z
  .object({
    /** The client may choose it. That of a task which waits for an answer goes on with this task. */
    id: maybe(Id),
    contextId: maybe(Id),
    message: maybe(SentMessage),
    /** Several messages are taken for one. */
    messages: maybe(list(SentMessage, limits.messages)),
    metadata: Metadata,
  })
  .check(z.refine(({ message, messages }) => message != null || (messages != null && messages.length > 0), 'must have a "message"'))

const ListTasks = z.object({ limit: z._default(PageSize, PAGE_SIZE), after: z.optional(z.string()) })

/** A refusal at these paths has the fields of an error of UAMP events. */
const refusal = refusalWith('application/json', ({ message, of, details }, status) => {
  const { taskId, ...rest } = details
  return { error: message, code: of, status_code: status, ...(taskId !== undefined && { task_id: taskId }), ...rest }
})

/** `text` is the body of the request. */
type Handle = (context: RpcContext, text: string) => Promise<Response | Streamed>

export function legacyTaskRoutes(parts: Parts): readonly HttpRoute[] {
  const route = (method: HttpRoute['method'], path: string, handle: Handle): HttpRoute => ({
    method,
    path,
    access: 'request',
    refusal,
    handle: (_, call) => refusing(parts, call, { refusal, answer: (text) => handle(contextOf(parts, call), text) }),
  })
  return [
    route('POST', '/tasks', create),
    route('GET', '/tasks', listTasks),
    route('GET', '/tasks/:id', async (context) => Response.json(fromTask(await taskOf(context)))),
    route('DELETE', '/tasks/:id', cancel),
    route('GET', '/tasks/:id/artifacts', async (context) => Response.json(fromArtifacts(await taskOf(context)))),
  ]
}

const create: Handle = async ({ tasks, call, host }, text) => {
  const asked = parseParams(CreateTask, bodyIn(call.request, text))
  const stream = await tasks.stream(call, toRequest(asked, host.newId()))
  return streamAnswer(stream, taskLines(stream.taskId))
}

function toRequest({ id, message, messages, contextId, metadata }: z.output<typeof CreateTask>, messageId: string): SendRequest {
  const said = [...(message ? [message] : []), ...(messages ?? [])]
  const whole = { role: 'user' as const, parts: said.flatMap(({ parts }) => parts), metadata: said.at(-1)?.metadata }
  return {
    message: { ...toMessage(whole, messageId), ...filled({ contextId }) },
    generation: 'tasks',
    returnImmediately: true,
    ...filled({ chosenId: id, metadata }),
  }
}

/** The newest first. */
const listTasks: Handle = async ({ tasks, call }) => {
  const query = Object.fromEntries(new URL(call.request.url).searchParams)
  const { limit, after } = parseParams(ListTasks, query)
  const page = await tasks.list(call, { pageSize: limit, pageToken: after, historyLength: 0, includeArtifacts: true })
  return Response.json({ tasks: page.tasks.map(fromTask), next: page.nextPageToken || null })
}

/** The answer says of a task that has ended that it was not cancelled; it is no error. */
const cancel: Handle = async (context) => {
  const { tasks, call } = context
  try {
    return Response.json(fromCancelled(await tasks.cancel(call, idOf(call))))
  } catch (thrown) {
    const error = UampError.from(thrown)
    if (!isReason(error, 'TASK_NOT_CANCELABLE')) throw error
    return Response.json(fromCancelled(await taskOf(context)))
  }
}

function taskOf({ tasks, call }: RpcContext): Promise<Task> {
  return tasks.get(call, { id: idOf(call), historyLength: 0 })
}

function idOf({ params }: KnownCall): string {
  return params['id'] ?? ''
}
