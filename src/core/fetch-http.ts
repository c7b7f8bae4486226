import type { HttpClient, HttpRequest } from './ports/http.ts'

/** Outbound HTTP where there is nothing but `fetch`. */
export function fetchHttp(): HttpClient {
  return {
    async request(request) {
      const { url, method, headers, body, timeouts } = request
      const watch = new Watch(request)
      try {
        // A copy: the types of `fetch` want bytes that are not shared with another thread.
        const sent = typeof body === 'object' ? new Uint8Array(body) : body
        watch.wait(timeouts?.firstByteMs)
        // A redirect would take the credentials in the headers to a place that nobody has chosen.
        const init = { method, headers, signal: watch.signal, redirect: 'manual' as const }
        const response = await fetch(url, { ...init, ...(sent !== undefined && { body: sent }) })
        watch.wait(timeouts?.idleMs)
        return { status: response.status, headers: response.headers, body: chunks(response.body, watch) }
      } catch (thrown) {
        watch.end()
        throw thrown
      }
    },
  }
}

async function* chunks(body: ReadableStream<Uint8Array> | null, watch: Watch): AsyncGenerator<Uint8Array, void> {
  const reader = body?.getReader()
  try {
    for (let step = await reader?.read(); step && !step.done; step = await reader?.read()) {
      watch.seen()
      yield step.value
    }
  } finally {
    watch.end()
    await reader?.cancel().catch(() => undefined)
  }
}

/** Aborts a request with its signal, or when nothing comes. One timer for a whole answer: a piece of it only notes the time. */
class Watch {
  readonly #controller = new AbortController()
  readonly #outer: AbortSignal
  readonly #stop = (): void => this.#controller.abort(this.#outer.reason)
  #timer: ReturnType<typeof setTimeout> | undefined
  #seenAt = 0

  constructor({ signal }: HttpRequest) {
    this.#outer = signal
    signal.addEventListener('abort', this.#stop)
    if (signal.aborted) this.#stop()
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  wait(ms: number | undefined): void {
    this.seen()
    clearTimeout(this.#timer)
    if (ms !== undefined) this.#arm(ms, ms)
  }

  seen(): void {
    this.#seenAt = performance.now()
  }

  end(): void {
    clearTimeout(this.#timer)
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
