import type { HttpClient, HttpRequest } from '../core/ports/http.ts'
import { UampError } from '../protocol/errors.ts'
import { type Exchange, fromPayload, readRecording, withoutSecretsInUrl } from './recording.ts'

export interface ReplayOptions {
  /** True if the recorded exchange answers this request. Default: if method, path and query are the same, whatever the host. */
  readonly match?: (recorded: Exchange['request'], request: HttpRequest) => boolean
  /** Waits between chunks, given the milliseconds that passed in the recording. Default: no wait. */
  readonly wait?: (ms: number, signal: AbortSignal) => Promise<void>
}

/**
 * An `HttpClient` that answers from a recording. It gives each exchange once, in the order of the recording, and rejects a request
 * that no exchange is left for. A connection that broke breaks again, and so does an answer that its reader left.
 */
export function replayHttp(recording: string | Iterable<string>, options: ReplayOptions = {}): HttpClient {
  const { match = sameTarget, wait } = options
  const left = readRecording(recording)

  return {
    async request(request) {
      request.signal.throwIfAborted()
      const at = left.findIndex((exchange) => match(exchange.request, request))
      const exchange = left[at]
      // `not_found`, because callers retry a broken connection.
      if (!exchange)
        throw new UampError('not_found', `The recording has no answer left for ${request.method} ${withoutSecretsInUrl(request.url)}`)
      left.splice(at, 1)
      const { answer, end, request: asked } = exchange
      if (!answer) throw new Error(end?.error ?? 'The recording stops before the answer')
      await wait?.(answer.at - asked.at, request.signal)
      return { status: answer.status, headers: new Headers(answer.headers), body: chunks(exchange, answer.at) }

      async function* chunks({ chunks: recorded }: Exchange, from: number): AsyncGenerator<Uint8Array, void> {
        let before = from
        for (const chunk of recorded) {
          await wait?.(chunk.at - before, request.signal)
          before = chunk.at
          request.signal.throwIfAborted()
          yield fromPayload(chunk)
        }
        request.signal.throwIfAborted()
        if (!end || end.left) throw new Error('The recording stops in the middle of the answer')
        if (end.error !== undefined) throw new Error(end.error)
      }
    },
  }
}

function sameTarget(recorded: Exchange['request'], request: HttpRequest): boolean {
  return recorded.method === request.method && target(recorded.url) === target(request.url)
}

/** Leaves out the host, which changes with every local server, and the key, which the recording does not have. */
function target(url: string): string {
  const { pathname, searchParams } = new URL(url)
  searchParams.delete('key')
  searchParams.sort()
  return `${pathname}?${searchParams}`
}
