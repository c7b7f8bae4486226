/** Outbound HTTP. It follows no redirect. On Node it is kept-alive `undici`; elsewhere `fetch`. */
export interface HttpClient {
  request(request: HttpRequest): Promise<HttpAnswer>
  /** The same for addresses that strangers name. Undefined: this runtime cannot guard them, so they are not called. */
  readonly guarded?: GuardedHttp | undefined
}

export interface HttpRequest {
  readonly url: string
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array
  /** Never sent twice, not even when a kept connection breaks before the answer: nobody knows then what the other side has done. */
  readonly once?: boolean | undefined
  /** Aborted: the connection is closed at once, also in the middle of the answer. */
  readonly signal: AbortSignal
  /** Bytes that the body of the answer may have. Beyond them the connection is closed, and reading rejects with a `QuotaExceededError`. */
  readonly maxBytes: number
  /** Rejects with a `TimeoutError` when one is over. */
  readonly timeouts: Timeouts
}

export interface Timeouts {
  /** Until the headers of the answer are there: connecting, and the first thought of the model. */
  readonly firstByteMs: number
  /** Between two pieces of an answer. */
  readonly idleMs: number
  /** From the request to the last byte of the answer, however often something comes: a trickle has no silence, and no end. */
  readonly totalMs: number
}

/** As much as is needed of `Headers`, which costs more than the rest of an answer. */
export interface HttpHeaders extends Iterable<readonly [string, string]> {
  get(name: string): string | null
}

export interface HttpAnswer {
  readonly status: number
  readonly headers: HttpHeaders
  /** Read to its end, the connection can be used again; left before, it is closed. Rejects when the connection breaks. */
  readonly body: AsyncIterable<Uint8Array>
}

/** Outbound HTTP to places that strangers name: webhooks, keys, cards. It calls nothing on this machine or in its network, and follows no redirect. */
export interface GuardedHttp extends HttpClient {
  /** Why this URL is never called, as far as that can be told without asking for the name's addresses. */
  refuses(url: string): string | undefined
}
