import { Readable } from 'node:stream'
import * as z from 'zod/mini'
import { HOPS_HEADER } from '../../core/basics/hops.ts'
import { isTooMuch, TookTooLong } from '../../core/http/answer-bounds.ts'
import type { Bucket } from '../../core/basics/bucket.ts'
import type { HttpClient, HttpRequest } from '../../core/ports/http.ts'

/** Bounds of the answers of one MCP server. */
export interface McpBounds {
  /** Bytes of one answer. */
  readonly answerBytes: number
  /** How long one answer may take. A stream of notifications that is cut by it is opened again. */
  readonly answerMs: number
  /** Bytes of all answers together, because a list of tools may have many pages. */
  readonly bytes?: Bucket
}

/** How long an answer may take to begin, and rest between two pieces. */
const FIRST_BYTE_MS = 60_000
const IDLE_MS = 10 * 60_000

/**
 * `fetch` for the library, over a client with bounds. It leaves redirects to the library. `onCut` is called when a reply was cut off,
 * because the library would wait for the rest until its own timeout.
 */
export function fetchOver(http: HttpClient, bounds: McpBounds, onCut: (reason: Error) => void): typeof fetch {
  const { answerBytes, answerMs, bytes } = bounds
  return async (input, init = {}) => {
    const request = new Request(input, init)
    const text = request.body ? await request.text() : undefined
    const { status, headers, body } = await http.request({
      url: request.url,
      method: request.method as HttpRequest['method'],
      headers: { ...Object.fromEntries(request.headers), ...hopsOf(text) },
      ...(text !== undefined && { body: text }),
      signal: init.signal ?? request.signal,
      maxBytes: answerBytes,
      timeouts: { firstByteMs: FIRST_BYTE_MS, idleMs: IDLE_MS, totalMs: answerMs },
    })
    const empty = status === 204 || status === 202 || status === 304
    if (empty) for await (const _ of body);
    const nesting = new Nesting(/^text\/event-stream\b/i.test(headers.get('content-type') ?? ''))
    const pieces = bounded(body, { nesting, bytes, onCut: request.method === 'POST' ? onCut : () => undefined })
    return new Response(empty ? null : (Readable.toWeb(Readable.from(pieces)) as ReadableStream), {
      status,
      headers: [...headers].map(([name, value]): [string, string] => [name, value]),
    })
  }
}

const Call = z.object({ params: z.object({ _meta: z.object({ uamp: z.object({ hops: z.number() }) }) }) })

/** The header that says how often a call was passed on. The library has one set of headers for all calls, so the body says it. */
function hopsOf(text: string | undefined): Readonly<Record<string, string>> {
  const { data } = Call.safeParse(text === undefined ? undefined : JSON.parse(text))
  return data ? { [HOPS_HEADER]: String(data.params._meta.uamp.hops) } : {}
}

async function* bounded(
  body: AsyncIterable<Uint8Array>,
  { nesting, bytes, onCut }: { readonly nesting: Nesting; readonly bytes: Bucket | undefined; readonly onCut: (reason: Error) => void },
): AsyncGenerator<Uint8Array, void> {
  try {
    for await (const chunk of body) {
      if (bytes?.take(chunk.length) === false) throw new DOMException('The server sends too much at once', 'QuotaExceededError')
      nesting.take(chunk)
      yield chunk
    }
  } catch (thrown) {
    if (isTooMuch(thrown) || thrown instanceof TookTooLong) onCut(thrown)
    throw thrown
  }
}

/** The most levels of JSON in an answer. The library parses anything, and 4 MB of brackets would block the process for a second. */
const LEVELS = 512
const [QUOTE, BACKSLASH, BREAK] = [0x22, 0x5c, 0x0a]
/** Square and curly brackets differ in this bit. */
const [OPEN, CLOSE, CURLY] = [0x7b, 0x7d, 0x20]

/** Counts brackets as they come. In a stream it starts again with every line, because an event is one line of JSON. */
class Nesting {
  readonly #lines: boolean
  #depth = 0
  #quoted = false
  #escaped = false

  constructor(lines: boolean) {
    this.#lines = lines
  }

  take(chunk: Uint8Array): void {
    for (const byte of chunk) {
      if (this.#lines && byte === BREAK) {
        this.#depth = 0
        this.#quoted = this.#escaped = false
      } else if (this.#escaped) this.#escaped = false
      else if (this.#quoted && byte === BACKSLASH) this.#escaped = true
      else if (byte === QUOTE) this.#quoted = !this.#quoted
      else if (this.#quoted) continue
      else if ((byte | CURLY) === OPEN) this.#depth++
      else if ((byte | CURLY) === CLOSE) this.#depth--
      if (this.#depth > LEVELS) throw new DOMException(`The answer nests more than ${LEVELS} levels`, 'QuotaExceededError')
    }
  }
}
