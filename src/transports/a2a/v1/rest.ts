import { jsonAnswer } from '../../../core/edge/json-answer.ts'
import type { KnownCall, Streamed } from '../../../core/ports/transport.ts'
import { isRecord } from '../../../protocol/json.ts'
import { restLines, streamAnswer, type Parts } from '../binding.ts'
import { contextOf, extensionHeaders, heldBy } from '../context.ts'
import { a2aError } from '../errors.ts'
import { restErrorText, restRefusal } from '../refusal.ts'
import { answerRest, at, segmentsAfter, taskNamed, type Resource } from '../rest.ts'
import { versionNotSupported, versionOf } from '../version.ts'
import { methods, type Operation } from './methods.ts'

/** Where REST is mounted. */
export const REST = '/a2a/rest'

/** One operation, and what the path says of its parameters. */
interface Found {
  readonly operation: Operation
  readonly params: Readonly<Record<string, string>>
}

/** REST of A2A 1.0 (§11): the same operations as JSON-RPC, with other clothes. */
export function restV1(parts: Parts, given: KnownCall): Promise<Response | Streamed> {
  return answerRest(parts, given, {
    refusal: restRefusal,
    async answer(call, body) {
      const { request } = call
      const { pathname, searchParams } = new URL(request.url)
      const { tenant, found } = locate(request.method, pathname)
      const version = versionOf(request)
      if (version !== undefined && version !== '1.0') throw versionNotSupported(['1.0'])
      const params = {
        ...(request.method === 'POST' ? object(body()) : fromQuery(searchParams)),
        ...found.params,
        ...(tenant !== undefined && { tenant }),
      }
      const context = contextOf(parts, call, params.tenant)
      const answer = await methods[found.operation](context, params)
      const headers = extensionHeaders(context)
      if ('stream' in answer) return streamAnswer(answer.stream, restLines(answer.shape), { headers, failed: restErrorText })
      return jsonAnswer(answer.result, { headers: { 'content-type': 'application/a2a+json', ...headers }, ...heldBy(context) })
    },
  })
}

/** The operation of a path, which may begin with a tenant. */
function locate(method: string, path: string): { readonly tenant: string | undefined; readonly found: Found } {
  const segments = segmentsAfter(REST, path)
  const [first, ...rest] = segments
  const plain = resource(segments)
  return { tenant: plain ? undefined : first, found: at(plain ?? resource(rest), method) }
}

/** A2A 1.0 §11.3. To subscribe, the definition has GET and the text has POST. */
function resource(segments: readonly string[]): Resource<Found> | undefined {
  const [collection = '', named = '', ...more] = segments
  if (segments.length === 1) {
    if (collection === 'message:send') return { POST: { operation: 'SendMessage', params: {} } }
    if (collection === 'message:stream') return { POST: { operation: 'SendStreamingMessage', params: {} } }
    if (collection === 'tasks') return { GET: { operation: 'ListTasks', params: {} } }
    if (collection === 'extendedAgentCard') return { GET: { operation: 'GetExtendedAgentCard', params: {} } }
    return undefined
  }
  if (collection !== 'tasks') return undefined
  if (more.length === 0) return task(named)
  return more[0] === 'pushNotificationConfigs' && more.length <= 2 ? pushConfigs(named, more[1]) : undefined
}

function task(named: string): Resource<Found> {
  const { id, action } = taskNamed(named)
  const params = { id }
  if (action === 'cancel') return { POST: { operation: 'CancelTask', params } }
  if (action === undefined) return { GET: { operation: 'GetTask', params } }
  return { GET: { operation: 'SubscribeToTask', params }, POST: { operation: 'SubscribeToTask', params } }
}

function pushConfigs(taskId: string, id: string | undefined): Resource<Found> {
  if (id === undefined) {
    const params = { taskId }
    return {
      GET: { operation: 'ListTaskPushNotificationConfigs', params },
      POST: { operation: 'CreateTaskPushNotificationConfig', params },
    }
  }
  const params = { taskId, id }
  return {
    GET: { operation: 'GetTaskPushNotificationConfig', params },
    DELETE: { operation: 'DeleteTaskPushNotificationConfig', params },
  }
}

function object(body: unknown): Readonly<Record<string, unknown>> {
  if (isRecord(body)) return body
  throw a2aError('INVALID_PARAMS', 'The body must be an object')
}

/** A2A 1.0 §11.5: numbers as decimals, booleans as `true` and `false`. Of what comes twice the first counts. */
function fromQuery(query: URLSearchParams): Record<string, unknown> {
  const params: Record<string, unknown> = {}
  for (const [name, value] of query) {
    if (!Object.hasOwn(params, name)) params[name] = value === 'true' ? true : value === 'false' ? false : value
  }
  return params
}
