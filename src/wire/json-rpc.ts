/** JSON-RPC 2.0 between two sides that may both ask, without batches. It makes and reads texts; sending them is the caller's. */
import * as z from 'zod/mini'
import { FIRST_EXPLAINED } from '../protocol/explain.ts'
import { isRecord, JsonBoundError, jsonIn, outlineOf, parseJson } from '../protocol/json.ts'
import { limits } from '../protocol/limits.ts'

export type RpcId = string | number | null

export const RPC = {
  parseError: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internal: -32603,
} as const

/** An error that the protocol has a number for. */
export class RpcError extends Error {
  override readonly name = 'RpcError'
  readonly code: number
  readonly data: unknown

  constructor(code: number, message: string, data?: unknown) {
    super(message)
    this.code = code
    this.data = data
  }
}

export type RpcMessage =
  | { readonly kind: 'request'; readonly id: RpcId; readonly method: string; readonly params: unknown }
  | { readonly kind: 'notification'; readonly method: string; readonly params: unknown }
  | { readonly kind: 'response'; readonly id: RpcId; readonly result: unknown; readonly error: RpcError | undefined }
  /** To be answered with this error. `id` is null if it is not known. */
  | { readonly kind: 'invalid'; readonly id: RpcId; readonly error: RpcError }
  /** Looks like a response but is none. It gets no answer: two sides could go on answering each other for ever. */
  | { readonly kind: 'nothing' }

export function readMessage(text: string): RpcMessage {
  let value: unknown
  try {
    value = parseJson(text, limits.depth)
  } catch (thrown) {
    return thrown instanceof JsonBoundError ? unparsed(text, thrown) : invalid('This is not JSON', RPC.parseError)
  }
  return messageIn(value)
}

/** The message is too large to be parsed, but its sender waits for an answer with its id. */
function unparsed(text: string, { message: reason }: JsonBoundError): RpcMessage {
  const message = messageIn(jsonIn(outlineOf(text)))
  const error = new RpcError(RPC.invalidRequest, `A message ${reason}`)
  if (message.kind === 'response') return { ...message, result: undefined, error }
  if (message.kind === 'nothing') return message
  return { kind: 'invalid', id: message.kind === 'notification' ? null : message.id, error }
}

function messageIn(value: unknown): RpcMessage {
  if (Array.isArray(value)) return invalid('There are no batches: send one message at a time')
  if (!isRecord(value)) return invalid('A message is an object')
  const { jsonrpc, id, method, params } = value
  if (method === undefined && (id !== undefined || 'result' in value || 'error' in value)) return answerIn(value)
  if (id !== undefined && !isId(id)) return invalid(`"id" must be a number, or a string of at most ${limits.idLength} characters`)
  const known = id ?? null
  if (jsonrpc !== '2.0') return invalid('"jsonrpc" must be "2.0"', RPC.invalidRequest, known)
  if (typeof method !== 'string') return invalid('"method" must be a string', RPC.invalidRequest, known)
  if (params !== undefined && (typeof params !== 'object' || params === null))
    return invalid('"params" must be an object', RPC.invalidParams, known)
  return id === undefined ? { kind: 'notification', method, params } : { kind: 'request', id: known, method, params }
}

function answerIn({ jsonrpc, id, result, error }: Record<string, unknown>): RpcMessage {
  if (jsonrpc !== '2.0' || !isId(id) || id === null || (result === undefined && error === undefined)) return { kind: 'nothing' }
  // Some peers write `error: null` beside a result.
  if (result !== undefined && (error ?? null) === null) return { kind: 'response', id, result, error: undefined }
  const { code, message, data } = isRecord(error) ? error : {}
  const told = new RpcError(typeof code === 'number' ? code : RPC.internal, typeof message === 'string' ? message : 'It failed', data)
  return { kind: 'response', id, result: undefined, error: told }
}

function invalid(message: string, code: number = RPC.invalidRequest, id: RpcId = null): RpcMessage {
  return { kind: 'invalid', id, error: new RpcError(code, message) }
}

/** The id is repeated in the answer, so its length is bounded. */
export function isId(value: unknown): value is RpcId {
  return (
    value === null ||
    (typeof value === 'number' && Number.isFinite(value)) ||
    (typeof value === 'string' && value.length <= limits.idLength)
  )
}

/** The parameters of a request. Throws -32602 with the wrong field. */
export function parseParams<T extends z.ZodMiniType>(schema: T, value: unknown): z.output<T> {
  const result = z.safeParse(schema, value ?? {}, FIRST_EXPLAINED)
  if (result.success) return result.data
  const [issue] = result.error.issues
  const field = issue?.path.join('.') ?? ''
  throw new RpcError(RPC.invalidParams, `${field === '' ? 'params' : `"${field}"`} ${issue?.message ?? 'is wrong'}`, { field })
}

export function resultText(id: RpcId, result: unknown): string {
  return `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${JSON.stringify(result ?? null)}}`
}

export function errorText(id: RpcId, { code, message, data }: Pick<RpcError, 'code' | 'message' | 'data'>): string {
  return JSON.stringify({ jsonrpc: '2.0', id, error: { code, message, ...(data !== undefined && { data }) } })
}

export function notificationText(method: string, params: unknown): string {
  return JSON.stringify({ jsonrpc: '2.0', method, params })
}

/** Requests that may wait for an answer. More are refused. */
const PENDING = 256

interface Pending {
  readonly resolve: (result: unknown) => void
  readonly reject: (error: unknown) => void
}

export interface AskOptions {
  /** Sends the request. Not called if it is refused. */
  readonly send: (text: string) => void
  readonly signal?: AbortSignal | undefined
  /** Called when a request that was sent is given up. */
  readonly cancel?: (id: RpcId) => void
}

/** Requests to the other side, and their answers. */
export class Asking {
  readonly #pending = new Map<RpcId, Pending>()
  readonly #aborts = new WeakMap<AbortSignal, Set<() => void>>()
  #last = 0
  #closed: Error | undefined

  /** An abort gives the request up. */
  request(method: string, params: unknown, { send, signal, cancel }: AskOptions): Promise<unknown> {
    const answer = new Promise<unknown>((resolve, reject) => {
      if (this.#closed) return reject(this.#closed)
      if (signal?.aborted) return reject(signal.reason as Error)
      if (this.#pending.size >= PENDING) return reject(new RpcError(RPC.internal, `${PENDING} requests wait for an answer already`))
      const id = ++this.#last
      const aborted = (): void => {
        this.#pending.delete(id)
        reject(signal?.reason as Error)
        cancel?.(id)
      }
      const settled = signal ? this.#onAbort(signal, aborted) : (): void => undefined
      this.#pending.set(id, {
        resolve: (result) => (settled(), resolve(result)),
        reject: (error) => (settled(), reject(error as Error)),
      })
      send(JSON.stringify({ jsonrpc: '2.0', id, method, params }))
    })
    // The caller may not wait for the answer any more.
    answer.catch(() => undefined)
    return answer
  }

  /** Takes an answer. False: no request waits for it. */
  settle({ id, result, error }: RpcMessage & { kind: 'response' }): boolean {
    const pending = this.#pending.get(id)
    if (!pending) return false
    this.#pending.delete(id)
    if (error) pending.reject(error)
    else pending.resolve(result)
    return true
  }

  /** One listener for all requests of one signal, as Node warns at eleven. Returns a function that stops it. */
  #onAbort(signal: AbortSignal, aborted: () => void): () => void {
    const known = this.#aborts.get(signal)
    const all = known ?? new Set()
    if (!known) {
      this.#aborts.set(signal, all)
      signal.addEventListener('abort', () => [...all].forEach((each) => each()), { once: true })
    }
    all.add(aborted)
    return () => all.delete(aborted)
  }

  close(reason: Error): void {
    this.#closed ??= reason
    for (const { reject } of this.#pending.values()) reject(reason)
    this.#pending.clear()
  }
}
