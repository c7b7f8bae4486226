import { jsonAnswer } from '../../../core/edge/json-answer.ts'
import type { HttpRoute, KnownCall, Streamed } from '../../../core/ports/transport.ts'
import { restLines, streamAnswer, type Parts, type RpcContext } from '../binding.ts'
import { contextOf, heldBy, requireExtensions } from '../context.ts'
import { a2aError } from '../errors.ts'
import type { SendRequest, TaskStream } from '../model.ts'
import { parseParams } from '../parse.ts'
import { answerRest, at, segmentsAfter, taskNamed, type Resource } from '../rest.ts'
import { versionOf } from '../version.ts'
import { restV03Refusal, statusOf } from './errors.ts'
import { allPush } from './methods.ts'
import { toMessageSendParams, toSetPushParams } from './proto-read.ts'
import { protoEvent, protoPush, protoResult, protoTask } from './proto-write.ts'
import { toPush, toSendRequest } from './read.ts'
import { resubscribe } from './resubscribe.ts'
import { MessageSendParams, SetPushParams, TaskQueryParams } from './schema.ts'

const REST = '/a2a/rest/v1'

/** Tasks that a list holds: this generation knows no pages (A2A 0.3.0 §7, `tasks/list`). */
const LISTED = 100

type Answer = { readonly result: object | null } | { readonly stream: TaskStream }

type Operation = (context: RpcContext, body: () => unknown) => Promise<Answer>

/** REST of A2A 0.3 (§3.2.3). */
export function v03Routes(parts: Parts): readonly HttpRoute[] {
  const route = (method: HttpRoute['method'], path: string, find: Find): HttpRoute => ({
    method,
    path,
    access: 'request',
    refusal: restV03Refusal,
    handle: (_, call) => handle(parts, call, find),
  })
  return [
    route('GET', `${REST}/*`, locate),
    route('POST', `${REST}/*`, locate),
    route('DELETE', `${REST}/*`, locate),
    // A2A 0.2.5 §7.10: `{AgentCard.url}/../agent/authenticatedExtendedCard`.
    route('GET', '/agent/authenticatedExtendedCard', () => extendedCard),
  ]
}

type Find = (request: Request) => Operation

function handle(parts: Parts, given: KnownCall, find: Find): Promise<Response | Streamed> {
  return answerRest(parts, given, {
    refusal: restV03Refusal,
    statusOf,
    async answer(call, body) {
      const context = contextOf(parts, call)
      checkVersion(call.request)
      const answer = await find(call.request)(context, body)
      const headers = headersOf(context)
      if ('stream' in answer) return streamAnswer(answer.stream, restLines(protoEvent), { headers })
      if (answer.result === null) return new Response(null, { status: 204, headers })
      return jsonAnswer(answer.result, { headers, ...heldBy(context) })
    },
  })
}

/** What the answer says of the extensions that are in use (A2A 0.3.0 §5.5.2.1), by the name of its time. */
function headersOf({ extensions }: RpcContext): Readonly<Record<string, string>> {
  return extensions.length === 0 ? {} : { 'x-a2a-extensions': extensions.join(', ') }
}

function checkVersion(request: Request): void {
  if (versionOf(request) === '1.0') throw a2aError('VERSION_NOT_SUPPORTED', 'REST of A2A 1.0 is at /a2a/rest, without /v1')
}

function locate({ method, url }: Request): Operation {
  const { pathname, searchParams } = new URL(url)
  return at(resource(segmentsAfter(REST, pathname), searchParams), method)
}

function resource([first, named, configs, config, ...more]: readonly string[], query: URLSearchParams): Resource<Operation> | undefined {
  if (more.length > 0) return undefined
  if (named === undefined) {
    if (first === 'message:send') return { POST: send }
    if (first === 'message:stream') return { POST: stream }
    if (first === 'card') return { GET: extendedCard }
    return first === 'tasks' ? { GET: listTasks } : undefined
  }
  if (first !== 'tasks') return undefined
  if (configs === undefined) return task(named, query)
  if (configs !== 'pushNotificationConfigs') return undefined
  return config === undefined ? pushConfigs(named) : pushConfig(named, config)
}

function task(named: string, query: URLSearchParams): Resource<Operation> {
  const { id, action } = taskNamed(named)
  if (action === undefined) return { GET: getTask(id, query) }
  if (action === 'cancel') return { POST: async ({ tasks, call }) => ({ result: protoTask(await tasks.cancel(call, { id })) }) }
  // GET in the Protocol Buffer definition, POST in the text and from the official client.
  const follow: Operation = async ({ tasks, call }) => ({ stream: await resubscribe(tasks, call, id) })
  return { GET: follow, POST: follow }
}

function getTask(id: string, query: URLSearchParams): Operation {
  return async ({ tasks, call }) => {
    const length = query.get('historyLength') ?? query.get('history_length')
    const asked = { id, historyLength: length === null ? undefined : /^-?\d{1,9}$/.test(length) ? Number(length) : length }
    const { historyLength } = parseParams(TaskQueryParams, asked)
    return { result: protoTask(await tasks.get(call, { id, historyLength: historyLength ?? undefined })) }
  }
}

const extendedCard: Operation = async ({ call, card }) => ({ result: await card.extended(call) })

const listTasks: Operation = async ({ tasks, call }) => {
  const page = await tasks.list(call, { pageSize: LISTED, includeArtifacts: true })
  return { result: page.tasks.map(protoTask) }
}

const send: Operation = async (context, body) => ({ result: protoResult(await context.tasks.send(context.call, asked(context, body))) })

const stream: Operation = async (context, body) => ({ stream: await context.tasks.stream(context.call, asked(context, body)) })

function asked(context: RpcContext, body: () => unknown): SendRequest {
  requireExtensions(context)
  return toSendRequest(parseParams(MessageSendParams, toMessageSendParams(body())))
}

function pushConfigs(taskId: string): Resource<Operation> {
  return {
    POST: async ({ push, call }, body) => {
      const { pushNotificationConfig } = parseParams(SetPushParams, toSetPushParams(taskId, body()))
      return { result: protoPush(await push.set(call, { id: taskId, ...toPush(pushNotificationConfig), taskId })) }
    },
    GET: async (context) => ({ result: { configs: (await allPush(context, taskId)).map(protoPush), nextPageToken: '' } }),
  }
}

function pushConfig(taskId: string, id: string): Resource<Operation> {
  return {
    GET: async ({ push, call }) => ({ result: protoPush(await push.get(call, { taskId, id })) }),
    DELETE: async ({ push, call }) => {
      await push.delete(call, { taskId, id })
      return { result: null }
    },
  }
}
