import { jsonAnswer } from '../../../core/json-answer.ts'
import type { KnownCall, Streamed } from '../../../core/ports/transport.ts'
import { reportError } from '../../../core/report-error.ts'
import type { UampError } from '../../../protocol/errors.ts'
import { isRecord } from '../../../protocol/json.ts'
import { restLines, streamAnswer, type Parts } from '../binding.ts'
import { contextOf, extensionHeaders, heldBy } from '../context.ts'
import { a2aError } from '../errors.ts'
import { isJsonType, parseJson } from '../parse.ts'
import { restErrorText, restRefusal } from '../refusal.ts'
import { versionNotSupported, versionOf } from '../version.ts'
import { methods, type Operation } from './methods.ts'

/** Where REST is mounted. What comes after it is ours to read: a router has no way to say `/tasks/{id}:cancel`. */
export const REST = '/a2a/rest'

/** One operation, and what the path says of its parameters. */
interface Found {
  readonly operation: Operation
  readonly params: Readonly<Record<string, string>>
}

/** What a path answers to, by method. */
type Resource = Readonly<Partial<Record<string, Found>>>

/** REST of A2A 1.0 (§11): the same operations as JSON-RPC, with other clothes. */
export class RestV1 {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  async handle(request: Request, call: KnownCall): Promise<Response | Streamed> {
    const body = request.method === 'POST' ? await request.text() : ''
    try {
      return await this.#answer(request, call, body)
    } catch (thrown) {
      const error = reportError(this.#parts.host, thrown, { transport: 'a2a', message: 'A method failed', url: request.url })
      return restRefusal(error, allowed(error))
    }
  }

  async #answer(request: Request, call: KnownCall, body: string): Promise<Response | Streamed> {
    const { pathname, searchParams } = new URL(request.url)
    const { tenant, found } = locate(request.method, pathname)
    const version = versionOf(request)
    if (version !== undefined && version !== '1.0') throw versionNotSupported(['1.0'])
    if (body !== '' && !isJsonType(request.headers.get('content-type'))) {
      throw a2aError('CONTENT_TYPE_NOT_SUPPORTED', 'A request is sent as application/a2a+json or application/json')
    }
    const given = request.method === 'POST' ? fromBody(body) : fromQuery(searchParams)
    const params = { ...given, ...found.params, ...(tenant !== undefined && { tenant }) }
    const context = contextOf(this.#parts, call, params.tenant)
    const answer = await methods[found.operation](context, params)
    const headers = extensionHeaders(context)
    if ('stream' in answer) return streamAnswer(answer.stream, restLines(answer.shape), { headers, failed: restErrorText })
    return jsonAnswer(answer.result, { headers: { 'content-type': 'application/a2a+json', ...headers }, ...heldBy(context) })
  }
}

/** The operation of a path, which may begin with a tenant. */
function locate(method: string, path: string): { readonly tenant: string | undefined; readonly found: Found } {
  const segments = segmentsOf(path.slice(path.indexOf(`${REST}/`) + REST.length))
  const [first, ...rest] = segments
  const plain = resource(segments)
  const resourceHere = plain ?? resource(rest)
  if (!resourceHere) throw a2aError('METHOD_NOT_FOUND', 'There is nothing at this path')
  const found = resourceHere[method === 'HEAD' ? 'GET' : method]
  if (!found) throw a2aError('METHOD_NOT_FOUND', `${method} is not possible here`, { allow: Object.keys(resourceHere).join(', ') })
  return { tenant: plain ? undefined : first, found }
}

function segmentsOf(path: string): string[] {
  return path.split('/').flatMap((segment) => {
    try {
      return segment === '' ? [] : [decodeURIComponent(segment)]
    } catch {
      return [segment]
    }
  })
}

/** A2A 1.0 §11.3. To subscribe, the definition has GET and the text has POST. */
function resource(segments: readonly string[]): Resource | undefined {
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

function task(named: string): Resource {
  const colon = named.lastIndexOf(':')
  const params = { id: colon < 0 ? named : named.slice(0, colon) }
  switch (colon < 0 ? '' : named.slice(colon)) {
    case ':cancel':
      return { POST: { operation: 'CancelTask', params } }
    case ':subscribe':
      return { GET: { operation: 'SubscribeToTask', params }, POST: { operation: 'SubscribeToTask', params } }
    default:
      return { GET: { operation: 'GetTask', params: { id: named } } }
  }
}

function pushConfigs(taskId: string, id: string | undefined): Resource {
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

/** Nothing at all is an empty object: who cancels or subscribes has nothing more to say. */
function fromBody(text: string): Record<string, unknown> {
  if (text.trim() === '') return {}
  const value = parseJson(text)
  if (!isRecord(value)) throw a2aError('INVALID_PARAMS', 'The body must be an object')
  return value
}

/** A2A 1.0 §11.5: numbers as decimals, booleans as `true` and `false`. Of what comes twice the first counts. */
function fromQuery(query: URLSearchParams): Record<string, unknown> {
  const params: Record<string, unknown> = {}
  for (const [name, value] of query) {
    if (!Object.hasOwn(params, name)) params[name] = value === 'true' ? true : value === 'false' ? false : value
  }
  return params
}

/** HTTP has a status of its own for a path that has other methods, and wants to be told which. */
function allowed({ details }: UampError): { status: number; headers: Record<string, string> } | undefined {
  const allow = details?.['allow']
  return typeof allow === 'string' ? { status: 405, headers: { allow } } : undefined
}
