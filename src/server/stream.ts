import type { Streamed, Texts } from '../core/ports/transport.ts'
import { PREFLIGHT_MS } from '../core/reading/response-batches.ts'
import { SSE_HEADERS } from '../wire/sse.ts'

/**
 * A route's generator as a stream of server-sent events. Its first text is awaited, so that what it throws before it says
 * anything becomes an HTTP error and not an empty 200.
 */
export async function sseStream(texts: AsyncGenerator<string, void>, headersOnly: boolean): Promise<Streamed> {
  if (headersOnly) return { status: 200, headers: SSE_HEADERS, frames: texts }
  const first = texts.next()
  first.catch(() => {}) // Whoever reads the frames sees it too; if nobody does any more, it must not end the process.
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

/** The headers alone. What would follow is told to stop before it has begun. */
export function headResponse({ status, headers, frames }: Streamed): Response {
  frames[Symbol.asyncIterator]()
    .return?.()
    .catch(() => {})
  return new Response(null, { status, headers })
}

/** For runtimes whose only stream is the web's. The Node server writes the frames itself. */
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
