import { jsonAnswer } from '../../core/edge/json-answer.ts'
import type { KnownCall, Streamed } from '../../core/ports/transport.ts'
import { reportError } from '../../core/edge/report-error.ts'
import type { UampError } from '../../protocol/errors.ts'
import { isRecord } from '../../protocol/json.ts'
import { limits } from '../../protocol/limits.ts'
import { SSE_HEADERS, sseLine } from '../../wire/sse.ts'
import { rpcLines, streamAnswer, type Method, type Methods, type Parts, type RpcContext, type RpcResult } from './binding.ts'
import { contextOf, extensionHeaders, heldBy } from './context.ts'
import { a2aError, told, type Told } from './errors.ts'
import { isJsonType, parseJson } from './parse.ts'
import { errorDetails } from './v1/errors.ts'
import { versionOf, type Version } from './version.ts'

/** The methods of some versions, and what those have in `error.data`. */
export interface Generation {
  readonly versions: readonly Version[]
  readonly methods: Methods
  data(told: Told): unknown
}

type Id = string | number | null

const JSON_TYPE = { 'content-type': 'application/json' }

/** One endpoint for all generations: a method's name tells whose it is. */
export class JsonRpc {
  readonly #parts: Parts
  readonly #generations: readonly Generation[]

  constructor(parts: Parts, generations: readonly Generation[]) {
    this.#parts = parts
    this.#generations = generations
  }

  async handle(request: Request, call: KnownCall): Promise<Response | Streamed> {
    const text = await request.text()
    const exchange = new Exchange()
    try {
      return await this.#answer(exchange, text, call)
    } catch (thrown) {
      const report = { transport: 'a2a', message: 'A method failed', method: exchange.method }
      return exchange.failure(reportError(this.#parts.host, thrown, report))
    }
  }

  async #answer(exchange: Exchange, text: string, call: KnownCall): Promise<Response | Streamed> {
    const { request } = call
    if (!isJsonType(request.headers.get('content-type')))
      throw a2aError('CONTENT_TYPE_NOT_SUPPORTED', 'A request is sent as application/json')
    const { name, params } = exchange.read(parseJson(text))
    const version = versionOf(request)
    const { run, generation } = this.#find(name)
    exchange.data = generation.data
    exchange.streams = !generation.versions.includes('1.0') && /^text\/event-stream\b/.test(request.headers.get('accept') ?? '')
    if (version !== undefined && !generation.versions.includes(version)) {
      throw a2aError('METHOD_NOT_FOUND', `A2A ${version} has no method of this name`, { versions: generation.versions.join(',') })
    }
    const context = contextOf(this.#parts, call, isRecord(params) ? params['tenant'] : undefined)
    return exchange.success(await run(context, params), context)
  }

  #find(name: string): { run: Method; generation: Generation } {
    for (const generation of this.#generations) {
      const run = Object.hasOwn(generation.methods, name) ? generation.methods[name] : undefined
      if (run) return { run, generation }
    }
    throw a2aError('METHOD_NOT_FOUND', 'There is no method of this name')
  }
}

/** One request and what becomes of it. */
class Exchange {
  method: string | undefined
  data: Generation['data'] = errorDetails
  /** Clients before 1.0 take no answer but a stream to what they want streamed: a refusal is then its only event. */
  streams = false
  #id: Id = null
  /** JSON-RPC 2.0 §4.1: a request without an id gets no answer. */
  #silent = false

  read(value: unknown): { readonly name: string; readonly params: unknown } {
    if (Array.isArray(value)) throw a2aError('INVALID_REQUEST', 'A2A has no batches: send one request at a time')
    if (!isRecord(value)) throw a2aError('INVALID_REQUEST', 'A request is an object')
    const { jsonrpc, id, method, params } = value
    if (!isId(id)) throw a2aError('INVALID_REQUEST', `"id" must be a number or a string of at most ${limits.idLength} characters`)
    this.#id = id ?? null
    if (jsonrpc !== '2.0') throw a2aError('INVALID_REQUEST', '"jsonrpc" must be "2.0"')
    if (typeof method !== 'string') throw a2aError('INVALID_REQUEST', '"method" must be a string')
    this.#silent = id === undefined
    this.method = method.slice(0, limits.idLength)
    return { name: method, params }
  }

  success(result: RpcResult, context: RpcContext): Response | Streamed {
    if (this.#silent) {
      if ('stream' in result) void result.stream.batches[Symbol.asyncIterator]().return?.()
      return new Response(null, { status: 202 })
    }
    if ('stream' in result) {
      const failed = (error: UampError): string => this.#text(this.#error(told(error)))
      return streamAnswer(result.stream, rpcLines(this.#id, result.shape), { headers: extensionHeaders(context), failed })
    }
    return jsonAnswer({ jsonrpc: '2.0', id: this.#id, result: result.result }, { headers: extensionHeaders(context), ...heldBy(context) })
  }

  /** Before 1.0 what is wrong with a request is told whether it has an id or not: the test kit of 0.3 holds that for a must. */
  failure(error: UampError): Response {
    if (this.#silent && /^[A-Z]/.test(this.method ?? '')) return new Response(null, { status: 202 })
    const what = told(error)
    const member = this.#error(what)
    // Who it is, is asked by HTTP (A2A 1.0 §7.4).
    if (what.of === 'unauthorized') return this.#respond(member, { 'www-authenticate': 'Bearer' }, 401)
    if (what.of === 'forbidden') return this.#respond(member, {}, 403)
    return this.streams ? new Response(sseLine(this.#text(member)), { headers: SSE_HEADERS }) : this.#respond(member, {})
  }

  #error(what: Told): string {
    return `"error":${JSON.stringify({ code: what.code, message: what.message, data: this.data(what) })}`
  }

  #respond(member: string, headers: Readonly<Record<string, string>>, status = 200): Response {
    return new Response(this.#text(member), { status, headers: { ...JSON_TYPE, ...headers } })
  }

  #text(member: string): string {
    return `{"jsonrpc":"2.0","id":${JSON.stringify(this.#id)},${member}}`
  }
}

/** It stands in every event of a stream, so it must not be endless. */
function isId(value: unknown): value is Id | undefined {
  return (
    value === undefined || value === null || typeof value === 'number' || (typeof value === 'string' && value.length <= limits.idLength)
  )
}
