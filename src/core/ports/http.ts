/** Outbound HTTP. On Node it is kept-alive `node:http`; elsewhere `fetch`. */
export interface HttpClient {
  request(request: HttpRequest): Promise<HttpAnswer>
}

export interface HttpRequest {
  readonly url: string
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array
  /** Aborted: the connection is closed at once, also in the middle of the answer. */
  readonly signal: AbortSignal
}

export interface HttpAnswer {
  readonly status: number
  readonly headers: Headers
  /** Read to its end, the connection can be used again; left before, it is closed. Rejects when the connection breaks. */
  readonly body: AsyncIterable<Uint8Array>
}
