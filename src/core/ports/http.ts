import type { Trace } from './trace.ts'

/** Outbound HTTP without redirects: `undici` with kept connections on Node, `fetch` elsewhere. */
export interface HttpClient {
  request(request: HttpRequest): Promise<HttpAnswer>
  /** For addresses that strangers name. Undefined: this runtime cannot guard such calls, so do not make them. */
  readonly guarded?: GuardedHttp | undefined
  /** The request that calls are made for. Calls to models and remote agents carry its id. */
  readonly trace?: Trace | undefined
}

export interface HttpRequest {
  readonly url: string
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array | undefined
  /** Never retry, even if a kept connection breaks before the response: the server may already have acted on the request. */
  readonly once?: boolean | undefined
  /** An abort closes the connection at once, even in the middle of the response. */
  readonly signal: AbortSignal
  /** Largest body of the response. Beyond it the connection is closed, and reading rejects with a `QuotaExceededError`. */
  readonly maxBytes: number
  /** When one of them is over, the call rejects with a `TimeoutError`. */
  readonly timeouts: Timeouts
}

export interface Timeouts {
  /** Until the response's headers arrive: this includes connecting, and a model's thinking before its first word. */
  readonly firstByteMs: number
  /** Between two pieces of the body. */
  readonly idleMs: number
  /** From the request to the last byte: stops a server that trickles, which `idleMs` never does. */
  readonly totalMs: number
}

/** The part of `Headers` that we use: a real `Headers` costs more than the rest of a response. */
export interface HttpHeaders extends Iterable<readonly [string, string]> {
  get(name: string): string | null
}

export interface HttpAnswer {
  readonly status: number
  readonly headers: HttpHeaders
  /** A body read to its end frees the connection for reuse; one left earlier closes it. Rejects when the connection breaks. */
  readonly body: AsyncIterable<Uint8Array>
}

/** Outbound HTTP to addresses that strangers name: webhooks, keys, cards. It never calls this machine or its network. */
export interface GuardedHttp extends HttpClient {
  /** Why this URL is never called, as far as the URL tells without a DNS lookup. */
  refuses(url: string): string | undefined
}
