import type { HttpClient, HttpRequest } from '../core/ports/http.ts'
import { UampError } from '../protocol/errors.ts'
import { fromPayload } from './payload.ts'
import { type Exchange, readRecording } from './recording.ts'
import { withoutSecretsInUrl } from './secrets.ts'

export interface ReplayOptions {
  /** Does the recorded exchange answer this request? By default when method, path and query are the same, whatever the host. */
  readonly match?: (recorded: Exchange['request'], request: HttpRequest) => boolean
  /** Waits between chunks, given the milliseconds that passed when it was recorded. By default nothing waits. */
  readonly wait?: (ms: number, signal: AbortSignal) => Promise<void>
}

/**
 * An `HttpClient` that answers from a recording. Each exchange is given once, in the order of the recording; a request that none
 * is left for is rejected. A connection that broke breaks again, and so does an answer that the recorder's reader left.
 */
export function replayHttp(recording: string | Iterable<string>, options: ReplayOptions = {}): HttpClient {
  const { match = sameTarget, wait } = options
  const left = readRecording(recording)

  return {
    async request(request) {
      request.signal.throwIfAborted()
      const at = left.findIndex((exchange) => match(exchange.request, request))
      const exchange = left[at]
      // `not_found`: a broken connection would be tried again.
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

/** The host of a local server changes with every run, and a key is not in the recording. */
function target(url: string): string {
  const { pathname, searchParams } = new URL(url)
  searchParams.delete('key')
  searchParams.sort()
  return `${pathname}?${searchParams}`
}
