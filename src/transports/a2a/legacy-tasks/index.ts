/** `/tasks`: the early shape that UAMP transports describe. */
import type { HttpRoute, KnownCall, Streamed } from '../../../core/ports/transport.ts'
import { reportError } from '../../../core/edge/report-error.ts'
import { UampError } from '../../../protocol/errors.ts'
import { streamAnswer, type Parts, type RpcContext } from '../binding.ts'
import { contextOf } from '../context.ts'
import { a2aError } from '../errors.ts'
import type { SendRequest } from '../model.ts'
import { isJsonType, parseJson, parseParams } from '../parse.ts'
import { refusalWith } from '../refusal.ts'
import { toMessage } from '../v01/read.ts'
import { given } from '../v03/read.ts'
import { CreateTask, ListTasks } from './schema.ts'
import { fromArtifacts, fromCancelled, fromTask, taskLines } from './write.ts'

/** How whatever is refused at these paths is said: as the events say it. */
const tasksRefusal = refusalWith('application/json', ({ message, of, details }, status) => {
  const { taskId, ...rest } = details
  return { error: message, code: of, status_code: status, ...(taskId !== undefined && { task_id: taskId }), ...rest }
})

/** `text` is the body of the request. */
type Handle = (context: RpcContext, request: Request, text: string) => Promise<Response | Streamed>

export function legacyTaskRoutes(parts: Parts): readonly HttpRoute[] {
  const route = (method: HttpRoute['method'], path: string, handle: Handle): HttpRoute => ({
    method,
    path,
    access: 'request',
    refusal: tasksRefusal,
    handle: (request, call) => answer(parts, { request, call, handle }),
  })
  return [
    route('POST', '/tasks', create),
    route('GET', '/tasks', list),
    route('GET', '/tasks/:id', async (context) => Response.json(fromTask(await taskOf(context)))),
    route('DELETE', '/tasks/:id', cancel),
    route('GET', '/tasks/:id/artifacts', async (context) => Response.json(fromArtifacts(await taskOf(context)))),
  ]
}

async function answer(
  parts: Parts,
  { request, call, handle }: { request: Request; call: KnownCall; handle: Handle },
): Promise<Response | Streamed> {
  // Not below: what breaks off here is the client's doing.
  const text = request.method === 'POST' ? await request.text() : ''
  try {
    return await handle(contextOf(parts, call), request, text)
  } catch (thrown) {
    return tasksRefusal(reportError(parts.host, thrown, { transport: 'a2a', message: 'A task failed', url: request.url }))
  }
}

const create: Handle = async ({ tasks, call, host }, request, text) => {
  if (!isJsonType(request.headers.get('content-type'))) throw a2aError('CONTENT_TYPE_NOT_SUPPORTED', 'A task is sent as application/json')
  const stream = await tasks.stream(call, toRequest(parseParams(CreateTask, parseJson(text)), host.newId()))
  return streamAnswer(stream, taskLines(stream.taskId))
}

function toRequest({ id, message, messages, contextId, metadata }: CreateTask, messageId: string): SendRequest {
  const said = [...(message ? [message] : []), ...(messages ?? [])]
  const whole = { role: 'user' as const, parts: said.flatMap(({ parts }) => parts), metadata: said.at(-1)?.metadata }
  return {
    message: { ...toMessage(whole, messageId), ...given('contextId', contextId) },
    generation: 'tasks',
    ...given('chosenId', id),
    returnImmediately: true,
    ...given('metadata', metadata),
  }
}

/** The newest first. */
const list: Handle = async ({ tasks, call }, request) => {
  const query = Object.fromEntries(new URL(request.url).searchParams)
  const { limit, after } = parseParams(ListTasks, query)
  const page = await tasks.list(call, { pageSize: limit, pageToken: after, historyLength: 0, includeArtifacts: true })
  return Response.json({ tasks: page.tasks.map(fromTask), next: page.nextPageToken || null })
}

/** What is over is not cancelled, and that is said: it is no mistake. */
const cancel: Handle = async (context) => {
  const { tasks, call } = context
  try {
    return Response.json(fromCancelled(await tasks.cancel(call, { id: idOf(call) })))
  } catch (thrown) {
    const error = UampError.from(thrown)
    if (error.details?.['reason'] !== 'TASK_NOT_CANCELABLE') throw error
    return Response.json(fromCancelled(await taskOf(context)))
  }
}

function taskOf({ tasks, call }: RpcContext) {
  return tasks.get(call, { id: idOf(call), historyLength: 0 })
}

function idOf({ params }: KnownCall): string {
  return params['id'] ?? ''
}
