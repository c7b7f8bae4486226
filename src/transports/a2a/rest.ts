/** REST of A2A 1.0 (§11) and 0.3 (§3.2.3): the operations of JSON-RPC, each at a path of its own. */
import type { HttpRoute, KnownCall, Streamed } from '../../core/ports/transport.ts'
import { reportError } from '../../core/edge/report-error.ts'
import type { UampError } from '../../protocol/errors.ts'
import { isRecord } from '../../protocol/json.ts'
import { v03Proto } from './dialects/v03-proto.ts'
import { v1 } from './dialects/v1.ts'
import { a2aError, restErrorText, restRefusal, restV03Refusal, type Refusal } from './errors.ts'
import { extensionHeaders, operationsIn, resultAnswer, type Operation, type Parts, type RpcResult } from './operations.ts'
import { bodyIn, contextOf, versionNotSupported, versionOf, type Version } from './request.ts'
import { restLines, streamAnswer } from './stream.ts'

/** What the two generations have different. */
interface Binding {
  readonly mount: string
  readonly operations: ReturnType<typeof operationsIn>
  readonly refusal: Refusal
  /** Throws for a version that is not spoken at these paths. */
  checkVersion(version: Version): void
  /** Where the extended card is. */
  readonly cardPath: string
  readonly hasTenants: boolean
  readonly contentType: string
  readonly extensionsHeader: string
  /** An error as an event of a stream, where the generation has one. */
  readonly failed?: (error: UampError) => string
}

const V1: Binding = {
  mount: '/a2a/rest',
  operations: operationsIn(v1),
  refusal: restRefusal,
  checkVersion(version) {
    if (version !== '1.0') throw versionNotSupported(['1.0'])
  },
  cardPath: 'extendedAgentCard',
  hasTenants: true,
  contentType: 'application/a2a+json',
  extensionsHeader: 'a2a-extensions',
  failed: restErrorText,
}

const V03: Binding = {
  mount: '/a2a/rest/v1',
  operations: operationsIn(v03Proto),
  refusal: restV03Refusal,
  checkVersion(version) {
    if (version === '1.0') throw a2aError('VERSION_NOT_SUPPORTED', 'REST of A2A 1.0 is at /a2a/rest, without /v1')
  },
  cardPath: 'card',
  hasTenants: false,
  contentType: 'application/json',
  extensionsHeader: 'x-a2a-extensions',
}

/** A2A 0.2.5 §7.10: `{AgentCard.url}/../agent/authenticatedExtendedCard`. */
const V02_CARD: Binding = { ...V03, mount: '/agent', cardPath: 'authenticatedExtendedCard' }

export function restRoutes(parts: Parts): HttpRoute[] {
  const route = (method: HttpRoute['method'], below: string, binding: Binding): HttpRoute => ({
    method,
    path: `${binding.mount}/${below}`,
    access: 'request',
    action: 'read',
    body: 'text',
    refusal: binding.refusal,
    handle: (_, call) => refusing(parts, call, { refusal: binding.refusal, answer: (text) => answer(parts, call, { binding, text }) }),
  })
  const methods = ['GET', 'POST', 'DELETE'] as const
  return [
    // The paths of 0.3 are below those of 1.0, so they come first.
    ...[V03, V1].flatMap((binding) => methods.map((method) => route(method, '*', binding))),
    route('GET', V02_CARD.cardPath, V02_CARD),
  ]
}

interface Refusing {
  readonly refusal: Refusal
  /** Gets the text of the body. */
  answer(text: string): Promise<Response | Streamed>
}

/** Answers a request; what is thrown becomes a refusal in the binding's own form. */
export async function refusing({ host }: Parts, call: KnownCall, { refusal, answer: run }: Refusing): Promise<Response | Streamed> {
  // Outside of the try: a body that breaks off is the client's doing.
  const text = call.request.method === 'POST' ? await call.text() : ''
  try {
    return await run(text)
  } catch (thrown) {
    return refusal(reportError(host, thrown, { transport: 'a2a', message: 'A method failed', url: call.request.url, ...call.trace.fields }))
  }
}

async function answer(parts: Parts, call: KnownCall, { binding, text }: { binding: Binding; text: string }): Promise<Response | Streamed> {
  const { request } = call
  const { pathname, searchParams } = new URL(request.url)
  const found = locate(binding, request.method, pathname)
  const version = versionOf(request)
  if (version !== undefined) binding.checkVersion(version)
  // A client of 0.3 that cancels or subscribes has nothing to say, so its body is not looked at.
  const saysNothing = binding === V03 && (found.operation === 'CancelTask' || found.operation === 'SubscribeToTask')
  const params: Readonly<Record<string, unknown>> = {
    ...(request.method === 'POST' && !saysNothing ? bodyOf(request, text) : queryOf(searchParams)),
    ...found.params,
  }
  const context = contextOf(parts, call, binding.hasTenants ? params['tenant'] : undefined)
  const result: RpcResult = await binding.operations[found.operation](context, params)
  const headers = extensionHeaders(context, binding.extensionsHeader)
  if ('stream' in result) {
    return streamAnswer(result.stream, restLines(result.shape), { headers, ...(binding.failed && { failed: binding.failed }) })
  }
  if (result.result === null) return new Response(null, { status: 204, headers })
  return resultAnswer(context, result.result, { 'content-type': binding.contentType, ...headers })
}

/** No body at all is an empty object. */
function bodyOf(request: Request, text: string): Readonly<Record<string, unknown>> {
  const body = text.trim() === '' ? {} : bodyIn(request, text, 'application/a2a+json or application/json')
  if (isRecord(body)) return body
  throw a2aError('INVALID_PARAMS', 'The body must be an object')
}

/** A2A 1.0 §11.5: numbers as decimals, booleans as `true` and `false`. Where a name comes twice, the first one counts. */
function queryOf(query: URLSearchParams): Record<string, unknown> {
  const params: Record<string, unknown> = {}
  for (const [name, value] of query) {
    if (!Object.hasOwn(params, name)) params[name] = value === 'true' ? true : value === 'false' ? false : value
  }
  return params
}

const ID = '(?<id>[^/]+)'
const CONFIGS = 'tasks/(?<taskId>[^/]+)/pushNotificationConfigs'
const pattern = (path: string): RegExp => new RegExp(`^${path}$`)

/** What each path answers to, by method (A2A 1.0 §11.3). An id may hold colons, so the paths with an action come first. */
const PATHS: readonly (readonly [path: RegExp, methods: Readonly<Record<string, Operation>>])[] = [
  [pattern('message:send'), { POST: 'SendMessage' }],
  [pattern('message:stream'), { POST: 'SendStreamingMessage' }],
  [pattern('tasks'), { GET: 'ListTasks' }],
  [pattern(`tasks/${ID}:cancel`), { POST: 'CancelTask' }],
  // The Protocol Buffer definition has GET; the text of the specification and the official client have POST.
  [pattern(`tasks/${ID}:subscribe`), { GET: 'SubscribeToTask', POST: 'SubscribeToTask' }],
  [pattern(`tasks/${ID}`), { GET: 'GetTask' }],
  [pattern(CONFIGS), { GET: 'ListTaskPushNotificationConfigs', POST: 'CreateTaskPushNotificationConfig' }],
  [pattern(`${CONFIGS}/${ID}`), { GET: 'GetTaskPushNotificationConfig', DELETE: 'DeleteTaskPushNotificationConfig' }],
]

/** An operation, and those of its parameters that stand in the path. */
interface Found {
  readonly operation: Operation
  readonly params: Readonly<Record<string, string>>
}

/** The operation of a path. A router has no way to say `/tasks/{id}:cancel`, so the path is read here. */
function locate({ mount, cardPath, hasTenants }: Binding, method: string, path: string): Found {
  const below = path.slice(path.indexOf(`${mount}/`) + mount.length)
  // A client may write a colon as `%3A`.
  const segments = below.replaceAll(/%3a/gi, ':').split('/').slice(1)
  const [tenant = '', ...rest] = segments
  const plain = resourceAt(segments.join('/'), cardPath)
  const resource = plain ?? (hasTenants ? resourceAt(rest.join('/'), cardPath) : undefined)
  if (!resource) throw a2aError('METHOD_NOT_FOUND', 'There is nothing at this path')
  const { methods, params } = resource
  const operation = methods[method === 'HEAD' ? 'GET' : method]
  if (operation) return { operation, params: plain ? params : { ...params, tenant: decoded(tenant) } }
  throw a2aError('METHOD_NOT_FOUND', `${method} is not possible here`, { allow: Object.keys(methods).join(', ') })
}

interface Resource {
  readonly methods: Readonly<Partial<Record<string, Operation>>>
  readonly params: Readonly<Record<string, string>>
}

function resourceAt(path: string, cardPath: string): Resource | undefined {
  if (path === cardPath) return { methods: { GET: 'GetExtendedAgentCard' }, params: {} }
  for (const [known, methods] of PATHS) {
    const match = known.exec(path)
    if (!match) continue
    const params = Object.entries(match.groups ?? {}).map(([name, value]) => [name, decoded(value)])
    return { methods, params: Object.fromEntries(params) as Record<string, string> }
  }
  return undefined
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch {
    return segment
  }
}
