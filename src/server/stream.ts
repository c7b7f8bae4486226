import type { Streamed, Texts } from '../core/ports/transport.ts'
import { PREFLIGHT_MS } from '../core/reading/response-batches.ts'
import { SSE_HEADERS } from '../wire/sse.ts'

/**
 * A route's generator as a stream of server-sent events. Waits for the first text, so that an error before it becomes an HTTP error and
 * not an empty 200.
 */
export async function sseStream(texts: AsyncGenerator<string, void>, headersOnly: boolean): Promise<Streamed> {
  if (headersOnly) return { status: 200, headers: SSE_HEADERS, frames: texts }
  const first = texts.next()
  first.catch(() => {}) // The reader of the frames gets the error. If there is none, it must not end the process.
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, PREFLIGHT_MS)))
  await Promise.race([first, late]).finally(() => clearTimeout(timer))
  return { status: 200, headers: SSE_HEADERS, frames: startingWith(first, texts) }
}

function startingWith(first: Promise<IteratorResult<string, void>>, rest: AsyncGenerator<string, void>): AsyncIterable<string> {
  let next: Promise<IteratorResult<string, void>> | undefined = first
  const iterator: AsyncIterator<string, void> = {
    next: () => {
      const step = next ?? rest.next()
      next = undefined
      return step
    },
    return: () => rest.return(),
  }
  return { [Symbol.asyncIterator]: () => iterator }
}

/** Only the headers. Stops the frames before they begin. */
export function headResponse({ status, headers, frames }: Streamed): Response {
  frames[Symbol.asyncIterator]()
    .return?.()
    .catch(() => {})
  return new Response(null, { status, headers })
}

/** For runtimes that only have web streams. The Node server writes the frames itself. */
export function readableResponse({ status, headers, frames }: Streamed): Response {
  const iterator = frames[Symbol.asyncIterator]()
  const encoder = new TextEncoder()
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await iterator.next()
        if (value)
          controller.enqueue(value instanceof Uint8Array ? value : encoder.encode(typeof value === 'string' ? value : joined(value)))
        if (done) controller.close()
      },
      async cancel() {
        await iterator.return?.()
      },
    },
    { highWaterMark: 0 },
  )
  return new Response(body, { status, headers })
}

function joined(texts: Texts): string {
  const all: string[] = []
  texts.eachText((text) => all.push(text))
  return all.join('')
}
