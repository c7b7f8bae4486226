import { checkBounds, TookTooLong, tooManyBytes } from './answer-bounds.ts'
import type { HttpClient, HttpRequest } from '../ports/http.ts'

/** Outbound HTTP for runtimes that have only `fetch`. */
export function fetchHttp(): HttpClient {
  return {
    async request(request) {
      checkBounds(request)
      const { url, method, headers, body, timeouts, maxBytes } = request
      const watch = new Watch(request)
      try {
        // A copy, because the types of `fetch` require bytes that are not shared between threads.
        const sent = typeof body === 'object' ? new Uint8Array(body) : body
        watch.wait(timeouts.firstByteMs)
        // A redirect would send the credentials in the headers to a server that nobody chose.
        const init = { method, headers, signal: watch.signal, redirect: 'manual' as const }
        const response = await fetch(url, { ...init, ...(sent !== undefined && { body: sent }) })
        watch.wait(timeouts.idleMs)
        return { status: response.status, headers: response.headers, body: chunks(response.body, watch, maxBytes) }
      } catch (thrown) {
        watch.end()
        throw thrown
      }
    },
  }
}

async function* chunks(body: ReadableStream<Uint8Array> | null, watch: Watch, maxBytes: number): AsyncGenerator<Uint8Array, void> {
  const reader = body?.getReader()
  let bytes = 0
  try {
    for (let step = await reader?.read(); step && !step.done; step = await reader?.read()) {
      watch.seen()
      if ((bytes += step.value.length) > maxBytes) throw tooManyBytes(maxBytes)
      yield step.value
    }
  } finally {
    watch.end()
    await reader?.cancel().catch(() => undefined)
  }
}

/** Aborts a request with its signal, after a silence, or when its time is over. A chunk only notes the time, and sets no timer. */
class Watch {
  readonly #controller = new AbortController()
  readonly #outer: AbortSignal
  readonly #stop = (): void => this.#controller.abort(this.#outer.reason)
  readonly #whole: ReturnType<typeof setTimeout>
  #timer: ReturnType<typeof setTimeout> | undefined
  #seenAt = 0

  constructor({ signal, timeouts: { totalMs } }: HttpRequest) {
    this.#outer = signal
    this.#whole = setTimeout(() => {
      this.#controller.abort(new TookTooLong(totalMs))
      this.end()
    }, totalMs)
    signal.addEventListener('abort', this.#stop)
    if (signal.aborted) this.#stop()
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  wait(ms: number): void {
    this.seen()
    clearTimeout(this.#timer)
    this.#arm(ms, ms)
  }

  seen(): void {
    this.#seenAt = performance.now()
  }

  end(): void {
    clearTimeout(this.#timer)
    clearTimeout(this.#whole)
    this.#outer.removeEventListener('abort', this.#stop)
  }

  #arm(ms: number, whole: number): void {
    this.#timer = setTimeout(() => {
      const left = this.#seenAt + whole - performance.now()
      if (left > 1) this.#arm(left, whole)
      else this.#controller.abort(new DOMException('Nothing came in time', 'TimeoutError'))
    }, ms)
  }
}
