import { credentialsEnded } from '../core/basics/principal.ts'
import type { Principal } from '../core/ports/access.ts'
import type { LiveUses } from '../core/ports/live.ts'
import type { Frame, Streamed, Texts } from '../core/ports/transport.ts'
import { PREFLIGHT_MS } from '../core/reading/response-batches.ts'
import { UampError } from '../protocol/errors.ts'
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

/** Calls `fail` when the stream has to end early, until the returned function is called. */
export type WatchStream = (fail: (error: UampError) => void) => () => void

/** A stream ends with the credentials of whoever asked for it. */
export function watchStream(live: LiveUses, principal: Principal | undefined, expired: Streamed['expired']): WatchStream {
  if (!principal) return () => () => undefined
  return (fail) => live.add({ principal: () => principal, expired, cut: (reason) => fail(credentialsEnded(reason)) })
}

export interface ReadableOptions {
  readonly heartbeatMs: number
  readonly watch?: WatchStream
  readonly onEnd?: () => void
}

/**
 * For runtimes that only have web streams, and for frameworks that change the answer on its way out. The Node server writes the frames
 * itself. A frame is asked for when the client has read the one before.
 */
export function readableResponse(
  { status, headers, frames, heartbeat, failure }: Streamed,
  { heartbeatMs, watch, onEnd }: ReadableOptions,
): Response {
  const iterator = frames[Symbol.asyncIterator]()
  const encoder = new TextEncoder()
  let pending: Promise<IteratorResult<Frame, Frame | void>> | undefined
  /** The next bytes, and whether they are the last. Empty bytes would leave a reader waiting: nobody asks again after them. */
  const next = async (): Promise<{ bytes: Uint8Array; done: boolean }> => {
    for (;;) {
      pending ??= iterator.next()
      const step = heartbeat === undefined ? await pending : await within(pending, heartbeatMs)
      if (step === undefined) return { bytes: encoder.encode(heartbeat), done: false }
      pending = undefined
      const bytes = bytesOf(step.value ?? '', encoder)
      if (step.done || bytes.length > 0) return { bytes, done: step.done === true }
    }
  }
  const told = (error: unknown): Uint8Array => {
    const frame = failure?.(UampError.from(error))
    if (frame === undefined) {
      over()
      throw error
    }
    return bytesOf(frame, encoder)
  }
  /** Why the stream has to end, and whoever waits for its next bytes. */
  let ended: UampError | undefined
  let interrupt: ((error: UampError) => void) | undefined
  const unwatch = watch?.((error) => {
    ended = error
    interrupt?.(error)
    iterator.return?.().catch(() => undefined)
  })
  const over = (): void => {
    unwatch?.()
    onEnd?.()
  }
  const nextUnlessEnded = (): ReturnType<typeof next> =>
    new Promise((resolve, reject) => {
      if (ended) return reject(ended)
      interrupt = reject
      next().then(resolve, reject)
    })
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { bytes, done } = await nextUnlessEnded().catch((error: unknown) => ({ bytes: told(error), done: true }))
        if (bytes.length > 0) controller.enqueue(bytes)
        if (!done) return
        controller.close()
        over()
      },
      async cancel() {
        over()
        await iterator.return?.()
      },
    },
    { highWaterMark: 0 },
  )
  return new Response(body, { status, headers })
}

/** Undefined: it takes longer. */
async function within<T>(promise: Promise<T>, ms: number): Promise<T | undefined> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<undefined>((resolve) => (timer = setTimeout(() => resolve(undefined), ms)))
  return Promise.race([promise, late]).finally(() => clearTimeout(timer))
}

function bytesOf(frame: Frame, encoder: TextEncoder): Uint8Array {
  return frame instanceof Uint8Array ? frame : encoder.encode(typeof frame === 'string' ? frame : joined(frame))
}

function joined(texts: Texts): string {
  const all: string[] = []
  texts.eachText((text) => all.push(text))
  return all.join('')
}
