import { UampError } from '../protocol/errors.ts'
import type { HttpAnswer, HttpClient, HttpRequest } from './ports/http.ts'
import { refusedBy, type Explain } from './upstream-error.ts'

export interface Timeouts {
  /** Until the headers of the answer are there: connecting, and the first thought of the model. */
  readonly firstByteMs: number
  /** Between two pieces of an answer. */
  readonly idleMs: number
}

const TIMEOUTS: Timeouts = { firstByteMs: 120_000, idleMs: 120_000 }
/** How often a request is sent again, before the first byte of an answer. After it the answer would begin anew. */
const RETRIES = 2
const FIRST_WAIT_MS = 500
const LONGEST_WAIT_MS = 60_000

export interface UpstreamCall {
  /** Whom it is sent to, for what people are told. */
  readonly name: string
  readonly http: HttpClient
  readonly request: Omit<HttpRequest, 'signal'>
  readonly signal: AbortSignal
  /** Where in the body of a refusal the vendor says why. */
  readonly explain: Explain
  readonly timeouts?: Partial<Timeouts> | undefined
  readonly retries?: number | undefined
  readonly random?: (() => number) | undefined
}

/**
 * Sends a request to a provider. Resolves with a good answer; rejects with a `UampError` otherwise. A refusal that may pass (408,
 * 409, 429, 5xx) and a connection that breaks are tried again, with jitter, or when `Retry-After` says.
 */
export async function callUpstream(call: UpstreamCall): Promise<HttpAnswer> {
  const { name, signal, retries = RETRIES, random = Math.random } = call
  for (let attempt = 0; ; attempt++) {
    const tried = await send(call)
    if ('answer' in tried) return tried.answer
    const { error, mayPass, retryAfterMs } = tried
    if (!mayPass || attempt >= retries) throw error
    const waitMs = retryAfterMs ?? FIRST_WAIT_MS * 2 ** attempt * (0.75 + random() / 4)
    if (waitMs > LONGEST_WAIT_MS) throw error
    await pause(waitMs, signal, name)
  }
}

type Tried =
  { readonly answer: HttpAnswer } | { readonly error: UampError; readonly mayPass: boolean; readonly retryAfterMs?: number | undefined }

async function send({ name, http, request, signal, explain, timeouts }: UpstreamCall): Promise<Tried> {
  const { firstByteMs, idleMs } = { ...TIMEOUTS, ...timeouts }
  const attempt = new AbortController()
  const stop = (): void => attempt.abort(signal.reason)
  signal.throwIfAborted()
  signal.addEventListener('abort', stop, { once: true })
  const watch = new Watch(firstByteMs, () => attempt.abort(new UampError('timeout', `${name} did not answer within ${firstByteMs} ms`)))
  const leave = (): void => {
    watch.end()
    signal.removeEventListener('abort', stop)
  }
  try {
    const answer = await http.request({ ...request, signal: attempt.signal })
    watch.restart(idleMs, () => attempt.abort(new UampError('timeout', `${name} fell silent for ${idleMs} ms`)))
    const body = watched(answer.body, { watch, leave, name, reason: () => (attempt.signal.aborted ? attempt.signal.reason : undefined) })
    if (answer.status >= 200 && answer.status < 300) return { answer: { status: answer.status, headers: answer.headers, body } }
    return await refusedBy({ name, answer: { ...answer, body }, explain })
  } catch (thrown) {
    leave()
    signal.throwIfAborted()
    if (attempt.signal.aborted) return { error: UampError.from(attempt.signal.reason), mayPass: true }
    if (thrown instanceof UampError) return { error: thrown, mayPass: thrown.code === 'provider_error' }
    return { error: new UampError('provider_error', `${name} cannot be reached`, { cause: thrown }), mayPass: true }
  }
}

interface Watched {
  readonly watch: Watch
  readonly leave: () => void
  readonly name: string
  readonly reason: () => unknown
}

async function* watched(body: AsyncIterable<Uint8Array>, { watch, leave, name, reason }: Watched): AsyncGenerator<Uint8Array, void> {
  try {
    for await (const chunk of body) {
      watch.seen()
      yield chunk
    }
  } catch (cause) {
    throw (reason() as Error | undefined) ?? new UampError('provider_error', `The answer of ${name} was cut off`, { cause })
  } finally {
    leave()
  }
}

/** One timer for a whole answer: a piece of it only notes the time. */
class Watch {
  #timer: ReturnType<typeof setTimeout> | undefined
  #seenAt = 0
  #late: () => void
  #ms: number

  constructor(ms: number, late: () => void) {
    this.#ms = ms
    this.#late = late
    this.restart(ms, late)
  }

  restart(ms: number, late: () => void): void {
    this.#ms = ms
    this.#late = late
    this.seen()
    this.#arm(ms)
  }

  seen(): void {
    this.#seenAt = performance.now()
  }

  end(): void {
    clearTimeout(this.#timer)
  }

  #arm(ms: number): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => {
      const left = this.#seenAt + this.#ms - performance.now()
      if (left > 1) this.#arm(left)
      else this.#late()
    }, ms)
  }
}

function pause(ms: number, signal: AbortSignal, name: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const aborted = (): void => {
      clearTimeout(timer)
      reject((signal.reason as Error | undefined) ?? new UampError('cancelled', `The call to ${name} was cancelled`))
    }
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', aborted)
      resolve()
    }, ms)
    signal.addEventListener('abort', aborted, { once: true })
  })
}
