import type { LookupFunction } from 'node:net'
import type { Agent, Dispatcher } from 'undici'
import { checkBounds, TookTooLong, tooManyBytes } from '../../core/http/answer-bounds.ts'
import { fetchHttp } from '../../core/http/fetch-http.ts'
import type { HttpAnswer, HttpClient, HttpHeaders, HttpRequest } from '../../core/ports/http.ts'

/** How long an idle connection is kept for the next request. */
const IDLE_MS = 30_000
/** How long a connection may take to open. */
const CONNECT_MS = 30_000
/** undici checks its time limits only twice a second, so shorter ones have timers of their own. */
const COARSE_MS = 2_000
/** Bytes of an answer that may wait to be read. Beyond it, the other side has to wait. */
const UNREAD = 256 * 1024

export interface NodeHttpOptions {
  /** Resolves names. Not called for hosts that are addresses. */
  readonly lookup?: LookupFunction
  /** Connections to one host at a time. More requests wait for one. */
  readonly maxSockets?: number
}

/**
 * Outbound HTTP that keeps its connections. With callbacks, undici costs half of what `node:http` does, and a fifth of `fetch`. It is
 * loaded with the first call, so that a server which makes none starts without it.
 */
export function nodeHttp({ lookup, maxSockets }: NodeHttpOptions = {}): HttpClient & { close(): void } {
  let agent: Agent | undefined
  let loading: Promise<Agent> | undefined
  const load = (): Promise<Agent> =>
    (loading ??= import('undici').then((undici) => {
      agent = new undici.Agent({
        keepAliveTimeout: IDLE_MS,
        keepAliveMaxTimeout: IDLE_MS * 10,
        connect: { timeout: CONNECT_MS, ...(lookup && { lookup }) },
        // Without it, the number of turns bounds the connections.
        ...(maxSockets !== undefined && { connections: maxSockets }),
      })
      return agent
    }))
  // Most calls go to the same address, which is parsed once.
  let place: Place | undefined
  const to = (url: string): Place => (place?.url === url ? place : (place = placeOf(url)))
  return {
    request: (request) => {
      checkBounds(request)
      if (agent) return send(request, to(request.url), agent)
      return load().then(
        (loaded) => send(request, to(request.url), loaded),
        // Bundlers that make modules of it leave it without `require`. Only undici resolves names as it is told to.
        (thrown: unknown) => (lookup ? Promise.reject(thrown as Error) : fetchHttp().request(request)),
      )
    },
    close: () => void agent?.destroy().catch(() => undefined),
  }
}

function send(request: HttpRequest, place: Place, agent: Agent): Promise<HttpAnswer> {
  const { signal, timeouts } = request
  if (signal.aborted) return Promise.reject(signal.reason as Error)
  const { origin, path } = place
  const begun = performance.now()
  const again = () => {
    const totalMs = Math.max(1, begun + timeouts.totalMs - performance.now())
    return send({ ...request, timeouts: { ...timeouts, totalMs } }, place, agent)
  }
  const exchange = new Exchange(request, request.once ? undefined : again)
  agent.dispatch(
    {
      origin,
      path,
      method: request.method,
      headers: request.headers,
      body: request.body ?? null,
      headersTimeout: timeouts.firstByteMs,
      bodyTimeout: timeouts.idleMs,
    },
    exchange,
  )
  return exchange.answered
}

interface Place {
  readonly url: string
  readonly origin: string
  readonly path: string
}

function placeOf(url: string): Place {
  const { origin, pathname, search } = new URL(url)
  return { url, origin, path: pathname + search }
}

type Step = IteratorResult<Uint8Array, undefined>

/** One request and its answer, which is also the iterator of the body. Leaving it before the end closes the connection. */
class Exchange implements Dispatcher.DispatchHandler, AsyncIterator<Uint8Array, undefined> {
  readonly answered: Promise<HttpAnswer>
  readonly #signal: AbortSignal
  readonly #again: (() => Promise<HttpAnswer>) | undefined
  readonly #maxBytes: number
  readonly #timer: NodeJS.Timeout
  readonly #firstByte: NodeJS.Timeout | undefined
  readonly #stop = (): void => this.#cut(this.#signal.reason)
  #resolve!: (answer: HttpAnswer | Promise<HttpAnswer>) => void
  #reject!: (reason: unknown) => void
  #controller: Dispatcher.DispatchController | undefined
  #begun = false
  readonly #chunks: Uint8Array[] = []
  #unread = 0
  #bytes = 0
  #reason: unknown
  #over = false
  #failure: unknown
  #waiting: { readonly resolve: (step: Step) => void; readonly reject: (reason: unknown) => void } | undefined

  constructor({ signal, maxBytes, timeouts: { totalMs, firstByteMs } }: HttpRequest, again: (() => Promise<HttpAnswer>) | undefined) {
    this.#signal = signal
    this.#maxBytes = maxBytes
    this.#timer = setTimeout(() => this.#cut(new TookTooLong(totalMs)), totalMs).unref()
    if (firstByteMs < COARSE_MS) this.#firstByte = setTimeout(() => this.#cut(tooLate()), firstByteMs).unref()
    this.#again = again
    this.answered = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
    signal.addEventListener('abort', this.#stop)
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    if (this.#over) controller.abort(this.#reason as Error)
  }

  onResponseStart(_: Dispatcher.DispatchController, status: number, headers: Record<string, string | string[] | undefined>): void {
    if (status < 200) return
    this.#begun = true
    clearTimeout(this.#firstByte)
    this.#resolve({ status, headers: new Fields(headers), body: this })
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Uint8Array): void {
    if ((this.#bytes += chunk.length) > this.#maxBytes) return this.#cut(tooManyBytes(this.#maxBytes))
    const waiting = this.#waiting
    if (waiting) {
      this.#waiting = undefined
      waiting.resolve({ done: false, value: chunk })
      return
    }
    this.#chunks.push(chunk)
    if ((this.#unread += chunk.length) > UNREAD) controller.pause()
  }

  onResponseEnd(): void {
    this.#end()
    this.#waiting?.resolve({ done: true, value: undefined })
  }

  onResponseError(_: Dispatcher.DispatchController, error: Error): void {
    if (this.#over) return
    const reason = this.#reason ?? named(error)
    this.#failure = reason
    this.#end()
    if (this.#begun) this.#waiting?.reject(reason)
    // The other side closed an idle connection at this very moment, and has not seen the request.
    else if (this.#again && letGo(error) && this.#reason === undefined) this.#resolve(this.#again())
    else this.#reject(reason)
  }

  next(): Promise<Step> {
    const value = this.#chunks.shift()
    if (value) {
      this.#unread -= value.length
      if (this.#controller?.paused && this.#unread === 0) this.#controller.resume()
      return Promise.resolve({ done: false, value })
    }
    if (!this.#over) return new Promise((resolve, reject) => (this.#waiting = { resolve, reject }))
    return this.#failure === undefined ? Promise.resolve({ done: true, value: undefined }) : Promise.reject(this.#failure as Error)
  }

  return(): Promise<Step> {
    if (!this.#over) this.#controller?.abort(new Error('The answer was left'))
    this.#chunks.length = 0
    return Promise.resolve({ done: true, value: undefined })
  }

  /** Rejects at once, even if the request still waits for a connection. It is aborted when it gets one. */
  #cut(reason: unknown): void {
    if (this.#over) return
    this.#reason = reason
    if (this.#controller) return this.#controller.abort(reason as Error)
    this.#end()
    this.#reject(reason)
  }

  #end(): void {
    this.#over = true
    clearTimeout(this.#timer)
    clearTimeout(this.#firstByte)
    this.#signal.removeEventListener('abort', this.#stop)
  }
}

/** The raw headers, without the cost of a `Headers` object. */
class Fields implements HttpHeaders {
  readonly #fields: Record<string, string | string[] | undefined>

  constructor(fields: Record<string, string | string[] | undefined>) {
    this.#fields = fields
  }

  get(name: string): string | null {
    const value = this.#fields[name.toLowerCase()]
    return value === undefined ? null : typeof value === 'string' ? value : value.join(', ')
  }

  *[Symbol.iterator](): Iterator<readonly [string, string]> {
    for (const name of Object.keys(this.#fields)) yield [name, this.get(name) ?? '']
  }
}

function tooLate(): DOMException {
  return new DOMException('Nothing came in time', 'TimeoutError')
}

type UndiciError = Error & { readonly code?: string; readonly socket?: { readonly bytesRead?: number } }

const TIMEOUTS: ReadonlySet<unknown> = new Set(['UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT', 'UND_ERR_CONNECT_TIMEOUT'])

/** Translates undici's errors into those of the port. */
function named(error: UndiciError): Error {
  if (TIMEOUTS.has(error.code)) return new DOMException(error.message, 'TimeoutError')
  if (error.code === 'UND_ERR_HEADERS_OVERFLOW') return new DOMException('The headers of the answer are too long', 'QuotaExceededError')
  return error
}

/** True if a connection broke that had been used before. */
function letGo({ code, socket }: UndiciError): boolean {
  return (code === 'UND_ERR_SOCKET' || code === 'ECONNRESET') && (socket?.bytesRead ?? 1) > 0
}
