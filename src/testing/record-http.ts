import type { HttpAnswer, HttpClient } from '../core/ports/http.ts'
import { toPayload, withoutSecrets, withoutSecretsInUrl, type RecordedLine } from './recording.ts'

export interface RecordOptions {
  /** Takes one line, without its line break. The exchange waits for it, so nothing piles up. */
  readonly write: (line: string) => void | Promise<void>
  /** A monotonic clock in milliseconds. */
  readonly now?: () => number
}

type Unstamped = RecordedLine extends infer L ? (L extends RecordedLine ? Omit<L, 'id' | 'at'> : never) : never

/**
 * An `HttpClient` that records what passes through it. Headers and query parameters that hold secrets lose their value; bodies are
 * written as they are.
 */
export function recordHttp(http: HttpClient, options: RecordOptions): HttpClient {
  return recorder(options)(http)
}

/** One recording of several clients. */
export function recorder({ write, now = () => performance.now() }: RecordOptions): (http: HttpClient) => HttpClient {
  const began = now()
  let exchanges = 0

  return (http) => ({
    async request(request) {
      const id = ++exchanges
      const put = (line: Unstamped) => write(JSON.stringify({ ...line, id, at: now() - began }))
      const { method, headers, body } = request
      const url = withoutSecretsInUrl(request.url)
      await put({ type: 'request', method, url, headers: withoutSecrets(Object.entries(headers)), ...toPayload(body) })
      let answer: HttpAnswer
      try {
        answer = await http.request(request)
      } catch (error) {
        await put({ type: 'end', error: String(error) })
        throw error
      }
      await put({ type: 'answer', status: answer.status, headers: withoutSecrets(answer.headers) })
      return { ...answer, body: recorded(answer.body, put) }
    },
  })
}

async function* recorded(
  body: AsyncIterable<Uint8Array>,
  put: (line: Unstamped) => void | Promise<void>,
): AsyncGenerator<Uint8Array, void> {
  let end: Unstamped = { type: 'end', left: true }
  try {
    for await (const bytes of body) {
      await put({ type: 'chunk', ...toPayload(bytes) })
      yield bytes
    }
    end = { type: 'end' }
  } catch (error) {
    end = { type: 'end', error: String(error) }
    throw error
  } finally {
    await put(end)
  }
}
