import type { HttpRoute, KnownCall, Streamed } from '../../core/ports/transport.ts'
import { reportError } from '../../core/edge/report-error.ts'
import type { UampError } from '../../protocol/errors.ts'
import { isRecord } from '../../protocol/json.ts'
import { limits } from '../../protocol/limits.ts'
import { errorText, isId, type RpcId } from '../../wire/json-rpc.ts'
import { refusalResponse } from '../../wire/refusal.ts'
import { SSE_HEADERS, sseLine } from '../../wire/sse.ts'
import { v01 } from './dialects/v01.ts'
import { v03 } from './dialects/v03.ts'
import { v1 } from './dialects/v1.ts'
import { a2aError, errorData, errorDetails, told, type Told } from './errors.ts'
import {
  extensionHeaders,
  operationsIn,
  resultAnswer,
  type Method,
  type Methods,
  type Operation,
  type Parts,
  type RpcContext,
  type RpcResult,
} from './operations.ts'
import { bodyIn, contextOf, versionOf, type Version } from './request.ts'
import { rpcLines, streamAnswer } from './stream.ts'

/** The methods of some versions, and what those have in `error.data`. */
interface Generation {
  readonly versions: readonly Version[]
  readonly methods: Methods
  readonly data: (told: Told) => unknown
}

/** Each has methods of its own. */
export function rpcGenerations(): readonly Generation[] {
  return [
    { versions: ['1.0'], methods: operationsIn(v1), data: errorDetails },
    { versions: ['0.3', '0.2', '0.1'], methods: earlierMethods(), data: errorData },
  ]
}

export function rpcRoutes(parts: Parts): HttpRoute[] {
  const generations = rpcGenerations()
  return ['/a2a', '/a2a/'].map((path) => ({
    method: 'POST',
    path,
    access: 'request',
    action: 'read',
    body: 'text',
    handle: (_, call) => answerRpc(parts, call, generations),
  }))
}

/** The methods before 1.0, by their names. */
function earlierMethods(): Methods {
  const [in03, in01] = [operationsIn(v03), operationsIn(v01)]
  /** 0.1 and later generations have this method: a task is shown in the shapes that it was made with, one of 1.0 as 0.3 would. */
  const either =
    (operation: Operation): Method =>
    async (context, params) => {
      const made = await context.tasks.generationOf(context.call, v03.read.task(params).id)
      return (made === '0.1' || made === 'tasks' ? in01 : in03)[operation](context, params)
    }
  return {
    'message/send': in03.SendMessage,
    'message/stream': in03.SendStreamingMessage,
    'tasks/get': either('GetTask'),
    'tasks/cancel': either('CancelTask'),
    'tasks/resubscribe': either('SubscribeToTask'),
    'tasks/pushNotificationConfig/set': in03.CreateTaskPushNotificationConfig,
    'tasks/pushNotificationConfig/get': in03.GetTaskPushNotificationConfig,
    'tasks/pushNotificationConfig/list': in03.ListTaskPushNotificationConfigs,
    'tasks/pushNotificationConfig/delete': in03.DeleteTaskPushNotificationConfig,
    'agent/getAuthenticatedExtendedCard': in03.GetExtendedAgentCard,
    'tasks/send': in01.SendMessage,
    'tasks/sendSubscribe': in01.SendStreamingMessage,
    'tasks/pushNotification/set': in01.CreateTaskPushNotificationConfig,
    'tasks/pushNotification/get': in01.GetTaskPushNotificationConfig,
  }
}

/** One endpoint serves all generations: the name of a method says which one it belongs to. */
async function answerRpc(parts: Parts, call: KnownCall, generations: readonly Generation[]): Promise<Response | Streamed> {
  const text = await call.text()
  const exchange = new Exchange(parts, call)
  try {
    return await exchange.answer(text, generations)
  } catch (thrown) {
    const report = { transport: 'a2a', message: 'A method failed', method: exchange.method, ...call.trace.fields }
    return exchange.failure(reportError(parts.host, thrown, report))
  }
}

/** One request and its answer. */
class Exchange {
  readonly #parts: Parts
  readonly #call: KnownCall
  method: string | undefined
  #data: Generation['data'] = errorDetails
  /** Clients before 1.0 that ask for a stream take no other answer: a refusal is then the only event of one. */
  #streams = false
  #id: RpcId = null
  /** JSON-RPC 2.0 §4.1: a request without an id gets no answer. */
  #silent = false

  constructor(parts: Parts, call: KnownCall) {
    this.#parts = parts
    this.#call = call
  }

  async answer(text: string, generations: readonly Generation[]): Promise<Response | Streamed> {
    const { request } = this.#call
    const { name, params } = this.#read(bodyIn(request, text))
    const version = versionOf(request)
    const generation = generations.find(({ methods }) => Object.hasOwn(methods, name))
    const run = generation?.methods[name]
    if (!run) throw a2aError('METHOD_NOT_FOUND', 'There is no method of this name')
    const { versions, data } = generation
    this.#data = data
    this.#streams = !versions.includes('1.0') && /^text\/event-stream\b/.test(request.headers.get('accept') ?? '')
    if (version !== undefined && !versions.includes(version)) {
      throw a2aError('METHOD_NOT_FOUND', `A2A ${version} has no method of this name`, { versions: versions.join(',') })
    }
    const context = contextOf(this.#parts, this.#call, isRecord(params) ? params['tenant'] : undefined)
    return this.#success(await run(context, params), context)
  }

  #read(value: unknown): { readonly name: string; readonly params: unknown } {
    if (Array.isArray(value)) throw a2aError('INVALID_REQUEST', 'A2A has no batches: send one request at a time')
    if (!isRecord(value)) throw a2aError('INVALID_REQUEST', 'A request is an object')
    const { jsonrpc, id, method, params } = value
    if (id !== undefined && !isId(id))
      throw a2aError('INVALID_REQUEST', `"id" must be a number or a string of at most ${limits.idLength} characters`)
    this.#id = id ?? null
    if (jsonrpc !== '2.0') throw a2aError('INVALID_REQUEST', '"jsonrpc" must be "2.0"')
    if (typeof method !== 'string') throw a2aError('INVALID_REQUEST', '"method" must be a string')
    this.#silent = id === undefined
    this.method = method.slice(0, limits.idLength)
    return { name: method, params }
  }

  #success(result: RpcResult, context: RpcContext): Response | Streamed {
    if (this.#silent) {
      if ('stream' in result) void result.stream.batches[Symbol.asyncIterator]().return?.()
      return new Response(null, { status: 202 })
    }
    const headers = extensionHeaders(context)
    if ('stream' in result) {
      const failed = (error: UampError): string => this.#text(told(error))
      return streamAnswer(result.stream, rpcLines(this.#id, result.shape), { headers, failed })
    }
    return resultAnswer(context, { jsonrpc: '2.0', id: this.#id, result: result.result }, headers)
  }

  /** Before 1.0 an error is told even to a request without an id, as the test kit of 0.3 demands. */
  failure(error: UampError): Response {
    if (this.#silent && /^[A-Z]/.test(this.method ?? '')) return new Response(null, { status: 202 })
    const what = told(error)
    const text = this.#text(what)
    // HTTP asks a client who it is, and says what its token lacks (A2A 1.0 §7.4).
    if (what.of === 'unauthorized' || what.of === 'forbidden') return refusalResponse(error, text)
    if (this.#streams) return new Response(sseLine(text), { headers: SSE_HEADERS })
    return new Response(text, { headers: { 'content-type': 'application/json' } })
  }

  #text(what: Told): string {
    return errorText(this.#id, { code: what.code, message: what.message, data: this.#data(what) })
  }
}
