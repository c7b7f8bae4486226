/** `/tasks`: the early shape that UAMP transports describe ("A2A Transport" and "Payment Handling"). */
import * as z from 'zod/mini'
import type { HttpRoute, KnownCall, Streamed } from '../../core/ports/transport.ts'
import { UampError } from '../../protocol/errors.ts'
import type { EventOf } from '../../protocol/events.ts'
import { isRecord, list } from '../../protocol/json.ts'
import { limits } from '../../protocol/limits.ts'
import { paymentRefusal } from '../../protocol/payment-refusal.ts'
import { fromMessage, part, SentMessage, toMessage } from './dialects/v01.ts'
import { isReason, refusalWith } from './errors.ts'
import {
  TERMINAL,
  type Artifact,
  type Message,
  type Part,
  type SendRequest,
  type StreamEvent,
  type Task,
  type TaskState,
  type TaskStatus,
} from './model.ts'
import type { Parts, RpcContext } from './operations.ts'
import { bodyIn, contextOf, parseParams } from './request.ts'
import { refusing } from './rest.ts'
import { filled, Id, maybe, Metadata, PAGE_SIZE, PageSize } from './schema.ts'
import { streamAnswer, type Lines } from './stream.ts'

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

/** What a caller must be allowed to do beside `read`, as in the other bindings. */
const ACTIONS = { POST: 'call', GET: 'read', DELETE: 'cancel' } as const

export function legacyTaskRoutes(parts: Parts): readonly HttpRoute[] {
  const route = (method: keyof typeof ACTIONS, path: string, handle: Handle): HttpRoute => ({
    method,
    path,
    access: 'request',
    action: 'read',
    body: 'text',
    refusal,
    handle: (_, call) => refusing(parts, call, { refusal, answer: (text) => answer(method, call, (context) => handle(context, text)) }),
  })
  const answer = async (method: keyof typeof ACTIONS, call: KnownCall, run: (context: RpcContext) => ReturnType<Handle>) => {
    parts.host.gateway.authorize(call.principal, ACTIONS[method], call.agent)
    return run(contextOf(parts, call))
  }
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

/** The answer says of a task that has ended that it was not cancelled; it is no error. One that waits for money has failed here. */
const cancel: Handle = async (context) => {
  const { tasks, call } = context
  const task = await taskOf(context)
  if (failureOf(task.status)) return Response.json(fromCancelled(task))
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

const WORDS = {
  TASK_STATE_SUBMITTED: 'pending',
  TASK_STATE_WORKING: 'running',
  TASK_STATE_INPUT_REQUIRED: 'running',
  TASK_STATE_AUTH_REQUIRED: 'running',
  TASK_STATE_COMPLETED: 'completed',
  TASK_STATE_FAILED: 'failed',
  TASK_STATE_REJECTED: 'failed',
  TASK_STATE_CANCELED: 'cancelled',
} as const satisfies Record<TaskState, string>

const CANCELLED = 'The task was cancelled'
const FAILED = 'The task failed'

/** Why a task did not complete. One that waits for money counts as failed: the client begins it anew and pays. */
interface Failure {
  readonly status: 'failed' | 'cancelled'
  readonly error: string
  readonly code: string
  readonly status_code?: number
  readonly accepts?: unknown
}

function failureOf({ state, message }: TaskStatus): Failure | undefined {
  const payment = paymentIn(message)
  if (state === 'TASK_STATE_INPUT_REQUIRED' && payment) {
    const { message: error, code, details } = paymentRefusal(payment, 'Send a new task with a payment token in the header X-PAYMENT')
    return { status: 'failed', error, code, status_code: 402, accepts: details?.['accepts'] }
  }
  if (state === 'TASK_STATE_CANCELED') return { status: 'cancelled', error: textOf(message) || CANCELLED, code: 'cancelled' }
  if (state !== 'TASK_STATE_FAILED' && state !== 'TASK_STATE_REJECTED') return undefined
  const code = message?.metadata?.['code']
  const usual = state === 'TASK_STATE_REJECTED' ? 'rejected' : 'internal'
  return { status: 'failed', error: textOf(message) || FAILED, code: typeof code === 'string' ? code : usual }
}

/** The question of the agent, which is among the data of the status. */
function paymentIn(message: Message | undefined): EventOf<'payment.required'> | undefined {
  const found = message?.parts.find(({ data }) => isRecord(data) && data['type'] === 'payment.required')
  return found?.data as EventOf<'payment.required'> | undefined
}

function textOf(message: Message | undefined): string {
  return message?.parts.flatMap(({ text }) => text ?? []).join('\n') ?? ''
}

/** In seconds, as the agents of UAMP transports write them. */
function seconds(timestamp: string): number {
  return Date.parse(timestamp) / 1000
}

function sse(name: string, data: object): string {
  return `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`
}

const said = (parts: readonly Part[]) => sse('task.message', { role: 'agent', parts: parts.map(part) })

/** The last chunk of a text only says that it is the last. */
function isEmpty({ parts }: Artifact): boolean {
  return parts.every(({ text }) => text === '')
}

/** The events of one task: `task.started`, `task.message` for each piece, and how it ended. */
export function taskLines(id: string): Lines {
  return (event: StreamEvent) => {
    if ('task' in event) return started(event.task)
    if ('message' in event) {
      return sse('task.started', { id, status: 'running' }) + said(event.message.parts) + sse('task.completed', { id, status: 'completed' })
    }
    if ('statusUpdate' in event) return statusLines(id, event.statusUpdate.status)
    const { artifact, lastChunk } = event.artifactUpdate
    return lastChunk === true && isEmpty(artifact) ? '' : said(artifact.parts)
  }
}

function started({ id, status }: Task): string {
  const data = { id, status: 'running', createdAt: seconds(status.timestamp) }
  return sse('task.started', data) + (TERMINAL.has(status.state) ? statusLines(id, status) : '')
}

function statusLines(id: string, status: TaskStatus): string {
  const { state, message, timestamp } = status
  const failure = failureOf(status)
  if (failure) return sse('task.failed', { id, ...failure })
  switch (state) {
    case 'TASK_STATE_COMPLETED':
      return sse('task.completed', { id, status: 'completed', completedAt: seconds(timestamp) })
    // The specification has no event for a question: it is a message, and a message with the task's id answers it.
    case 'TASK_STATE_INPUT_REQUIRED':
    case 'TASK_STATE_AUTH_REQUIRED':
      return (message ? said(message.parts) : '') + sse('task.input_required', { id, status: 'running' })
    case 'TASK_STATE_SUBMITTED':
    case 'TASK_STATE_WORKING':
    case 'TASK_STATE_FAILED':
    case 'TASK_STATE_CANCELED':
    case 'TASK_STATE_REJECTED':
      return message ? sse('task.progress', { id, status: WORDS[state], message: fromMessage(message) }) : ''
  }
}

/** `GET /tasks/{id}`. */
export function fromTask({ id, contextId, status, artifacts = [] }: Task): object {
  const failure = failureOf(status)
  const content = artifacts.flatMap(({ parts }) => parts.flatMap(({ text }) => text ?? [])).join('')
  return {
    id,
    contextId,
    status: WORDS[status.state],
    updatedAt: seconds(status.timestamp),
    result: artifacts.length === 0 ? null : { content },
    error: null,
    ...failure,
  }
}

/** `GET /tasks/{id}/artifacts`. */
export function fromArtifacts({ id, status, artifacts = [] }: Task): object {
  const createdAt = seconds(status.timestamp)
  return {
    task_id: id,
    artifacts: artifacts.flatMap(({ artifactId, parts }) => parts.map((each) => fromArtifact(artifactId, each, createdAt))),
  }
}

function fromArtifact(id: string, { text, raw, url, data, mediaType, filename }: Part, createdAt: number): object {
  const named = filename !== undefined && { name: filename }
  if (text !== undefined) return { id, type: 'text', mimeType: mediaType ?? 'text/plain', data: text, ...named, createdAt }
  if (data !== undefined) return { id, type: 'data', mimeType: mediaType ?? 'application/json', data, ...named, createdAt }
  const content = raw === undefined ? { uri: url } : { data: raw }
  return { id, type: 'file', mimeType: mediaType ?? 'application/octet-stream', ...content, ...named, createdAt }
}

/** `DELETE /tasks/{id}`. */
export function fromCancelled({ id, status }: Task): object {
  const word = failureOf(status)?.status ?? WORDS[status.state]
  return { id, status: word, cancelled: word === 'cancelled' }
}
