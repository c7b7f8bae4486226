import { Readable } from 'node:stream'
import { isTooMuch, TookTooLong } from '../../core/answer-bounds.ts'
import type { Bucket } from '../../core/bucket.ts'
import type { HttpClient, HttpRequest } from '../../core/ports/http.ts'

/** What the answers of one MCP server may cost. */
export interface McpBounds {
  /** Bytes of one answer. */
  readonly answerBytes: number
  /** How long one answer may take. A stream of news that is cut by it is opened again. */
  readonly answerMs: number
  /** Bytes of all answers together: a list of tools has many pages. */
  readonly bytes?: Bucket
}

/** Until an answer begins, and between two pieces of it: a stream of events may rest. */
const FIRST_BYTE_MS = 60_000
const IDLE_MS = 10 * 60_000

/**
 * `fetch` as the library wants it, over a client whose answers have an end. It follows no redirect, and leaves that to the library.
 * `onCut`: a reply was cut off. The library would wait for the rest of it until its own time is over.
 */
export function fetchOver(http: HttpClient, bounds: McpBounds, onCut: (reason: Error) => void): typeof fetch {
  const { answerBytes, answerMs, bytes } = bounds
  return async (input, init = {}) => {
    const request = new Request(input, init)
    const { status, headers, body } = await http.request({
      url: request.url,
      method: request.method as HttpRequest['method'],
      headers: Object.fromEntries(request.headers),
      ...(request.body && { body: await request.text() }),
      signal: init.signal ?? request.signal,
      maxBytes: answerBytes,
      timeouts: { firstByteMs: FIRST_BYTE_MS, idleMs: IDLE_MS, totalMs: answerMs },
    })
    const empty = status === 204 || status === 202 || status === 304
    if (empty) for await (const _ of body);
    const pieces = bounded(body, { bytes, onCut: request.method === 'POST' ? onCut : () => undefined })
    return new Response(empty ? null : (Readable.toWeb(Readable.from(pieces)) as ReadableStream), {
      status,
      headers: [...headers].map(([name, value]): [string, string] => [name, value]),
    })
  }
}

async function* bounded(
  body: AsyncIterable<Uint8Array>,
  { bytes, onCut }: { readonly bytes: Bucket | undefined; readonly onCut: (reason: Error) => void },
): AsyncGenerator<Uint8Array, void> {
  try {
    for await (const chunk of body) {
      if (bytes?.take(chunk.length) === false) throw new DOMException('The server sends too much at once', 'QuotaExceededError')
      yield chunk
    }
  } catch (thrown) {
    if (isTooMuch(thrown) || thrown instanceof TookTooLong) onCut(thrown)
    throw thrown
  }
}
