import { UampError } from '../protocol/errors.ts'
import { sseParser } from '../wire/sse-parse.ts'
import { explainError, isStream, wholeAnswer } from '../wire/upstream.ts'
import { isTooMuch, TookTooLong } from '../core/http/answer-bounds.ts'
import type { AgentPrice } from '../core/ports/payments.ts'
import type { HttpAnswer, HttpClient, HttpRequest, Timeouts } from '../core/ports/http.ts'

/** What every remote agent is given. */
export interface RemoteOptions {
  /** The name of the agent here. */
  readonly name: string
  readonly url: string
  readonly token?: string
  /** Tokens that are made for this remote agent, instead of `token`. */
  readonly auth?: RemoteAuth | OutboundAuth
  /** Sent with every request. */
  readonly headers?: Readonly<Record<string, string>>
  readonly description?: string
  /** What callers here pay for it. Default: nothing. */
  readonly price?: Omit<AgentPrice, 'tools'>
  readonly newId?: () => string
  /** Pays what the agent wants. Default: whoever asks is asked to pay it. */
  readonly wallet?: RemoteWallet
}

export type { Timeouts } from '../core/ports/http.ts'
import type { Span } from '../core/ports/trace.ts'
import { pause } from '../core/basics/time.ts'
import { refusedBy, type Explain } from '../core/http/upstream-error.ts'
import type { RemoteWallet } from './payer.ts'
import type { OutboundAuth, RemoteAuth } from './outbound-auth.ts'
import type { EventBatch } from './answer-drafts.ts'
import { upstreamEvents } from './upstream-events.ts'

const SILENCE_MS = 120_000
/**
 * The most that an answer of a model or of another agent may take. Events of a stream are a hundred times as long as the text in them,
 * and a model may think for long; but an answer that never ends must end here.
 */
const ANSWER_BYTES = 256 * 1024 * 1024
const ANSWER_MS = 60 * 60_000
/** How often a request is sent again before the first byte of an answer. After that byte the answer would begin a second time. */
const RETRIES = 2
const FIRST_WAIT_MS = 500
/** The longest pause that is chosen here, between the last attempts of many. */
const LONGEST_WAIT_MS = 60_000
/**
 * The longest pause that the server may ask for. Whoever waits longer is told when to come again: the answer to a client begins after
 * two seconds at the latest, and then it has no status to be told with. A fallback is asked at once.
 */
const LONGEST_ASKED_MS = 500

/** Bounds of an answer. By default it may be silent for 120 s, before its beginning and within it. */
export interface AnswerBounds {
  readonly maxBytes: number
  readonly timeouts: {
    readonly firstByteMs?: number | undefined
    readonly idleMs?: number | undefined
    readonly totalMs: number
  }
}

/** For an answer that a model sends while it thinks. */
export function streamBounds(timeouts?: Partial<Timeouts>): AnswerBounds {
  const { firstByteMs, idleMs, totalMs = ANSWER_MS } = timeouts ?? {}
  return { maxBytes: ANSWER_BYTES, timeouts: { firstByteMs, idleMs, totalMs } }
}

/** The times of an answer, with those that nobody gave. */
export function timesOf({ firstByteMs = SILENCE_MS, idleMs = SILENCE_MS, totalMs = ANSWER_MS }: Partial<Timeouts> = {}): Timeouts {
  return { firstByteMs, idleMs, totalMs }
}

/** For an answer that a model sends once it is complete, so that the first byte may take as long as the whole. */
function wholeBounds({ idleMs, totalMs = ANSWER_MS }: Partial<Timeouts> = {}): AnswerBounds {
  return { maxBytes: ANSWER_BYTES, timeouts: { firstByteMs: totalMs, idleMs, totalMs } }
}

/** For a short answer that needs no thinking. */
export function shortBounds(maxBytes: number, ms: number): AnswerBounds {
  return { maxBytes, timeouts: { firstByteMs: ms, idleMs: ms, totalMs: ms } }
}

export interface UpstreamCall extends AnswerBounds {
  /** The name of the server, for error messages. */
  readonly name: string
  readonly http: HttpClient
  readonly request: Omit<HttpRequest, 'signal' | 'timeouts' | 'maxBytes'>
  readonly signal: AbortSignal
  /** Finds the vendor's reason in the body of a refusal. */
  readonly explain: Explain
  readonly retries?: number | undefined
  /** The request has effects: it is sent again only if it surely did not begin. */
  readonly once?: boolean | undefined
  readonly random?: (() => number) | undefined
}

/**
 * Sends a request to a provider. Resolves with a good answer; rejects with a `UampError` otherwise. A refusal that may pass (408,
 * 409, 429, 5xx) and a connection that breaks are tried again, with jitter, or when `Retry-After` says, if that is soon; but see
 * `once`. A server that hangs is not: it may be at work on the first request, and a fallback may be waiting for its turn.
 */
export async function callUpstream(call: UpstreamCall): Promise<HttpAnswer> {
  const { signal, retries, random, timeouts, request } = call
  const { firstByteMs = SILENCE_MS, totalMs } = timeouts
  const span = beginCall(call)
  const sent = span ? { ...call, request: { ...request, headers: { ...span.headers, ...request.headers } } } : call
  let sends = 0
  const attempt = (leftMs: number): Promise<Tried<HttpAnswer>> => {
    if (sends++ > 0) span?.set({ 'http.request.resend_count': sends - 1 })
    return send(sent, leftMs)
  }
  try {
    const answer = await withRetries(attempt, { signal, retries, random, firstByteMs, totalMs })
    span?.end()
    return answer
  } catch (thrown) {
    span?.end(UampError.from(thrown).code)
    throw thrown
  }
}

interface Patience extends Pick<UpstreamCall, 'signal' | 'retries' | 'random'>, Pick<Timeouts, 'firstByteMs' | 'totalMs'> {}

/** Tries until there is an answer, a failure that stays, or no time. `attempt` is told how much time all attempts have left. */
export async function withRetries<T>(attempt: (leftMs: number) => Promise<Tried<T>>, patience: Patience): Promise<T> {
  const { signal, retries = RETRIES, random = Math.random, firstByteMs, totalMs } = patience
  const begun = performance.now()
  for (let count = 0; ; count++) {
    // All attempts share the time.
    const tried = await attempt(Math.max(1, totalMs - (performance.now() - begun)))
    if ('answer' in tried) return tried.answer
    const { error, mayPass, retryAfterMs } = tried
    if (!mayPass || count >= retries) throw error
    if (retryAfterMs !== undefined && retryAfterMs > LONGEST_ASKED_MS) throw error
    if (performance.now() - begun >= firstByteMs) throw error
    const waitMs = retryAfterMs ?? FIRST_WAIT_MS * 2 ** count * (0.75 + random() / 4)
    if (waitMs > LONGEST_WAIT_MS) throw error
    await pause(waitMs, signal)
  }
}

/** Names the server that is called, without the path and the query, which may hold a secret. */
function beginCall({ name, http, request: { method, url } }: UpstreamCall): Span | undefined {
  if (!http.trace) return undefined
  // The name is made for sentences: `The card of "remote"`.
  const [, upstream = name] = /"([^"]+)"/.exec(name) ?? []
  const address = URL.canParse(url) ? new URL(url).hostname : undefined
  const attributes = { 'uamp.upstream': upstream, 'http.request.method': method, 'server.address': address }
  return http.trace.begin('upstream', `${method} ${upstream}`, attributes)
}

export interface UpstreamPost extends AnswerBounds, Pick<UpstreamCall, 'name' | 'explain' | 'once' | 'retries'> {
  readonly url: string
  readonly token?: string | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
  readonly body: unknown
}

/** Posts JSON, with a token if there is one. */
export function postUpstream(post: UpstreamPost, { http, signal }: Pick<UpstreamCall, 'http' | 'signal'>) {
  const { url, token, headers, body, name, explain, once, retries, maxBytes, timeouts } = post
  const request = {
    url,
    method: 'POST' as const,
    headers: { 'content-type': 'application/json', ...bearer(token), ...headers },
    body: JSON.stringify(body),
  }
  return callUpstream({ name, explain, once, retries, maxBytes, timeouts, http, signal, request })
}

export function bearer(token: string | undefined): Record<string, string> {
  return token === undefined ? {} : { authorization: `Bearer ${token}` }
}

export interface ModelPost extends Omit<UpstreamPost, 'maxBytes' | 'timeouts' | 'explain' | 'token'> {
  readonly timeouts?: Partial<Timeouts> | undefined
  readonly explain?: Explain
  /** Asks for an answer in one piece. */
  readonly whole?: boolean
}

type Fields = Readonly<Record<string, unknown>>

/** Asks a model. Gives the events of its answer, or what `inPieces` makes of an answer in one piece. */
export async function askModel<T = never>(
  { name, url, headers, body, once, retries, timeouts, explain = explainError, whole = false }: ModelPost,
  by: Pick<UpstreamCall, 'http' | 'signal'>,
  inPieces?: (answer: Fields) => AsyncIterable<EventBatch<T>>,
): Promise<AsyncIterable<EventBatch<string | T>>> {
  const bounds = whole ? wholeBounds(timeouts) : streamBounds(timeouts)
  const got = await postUpstream({ name, url, headers, body, once, retries, explain, ...bounds }, by)
  if (isStream(got.headers, whole)) return upstreamEvents(got.body, { name, parse: sseParser() })
  const answer = await wholeAnswer(name, got.body)
  if (inPieces) return inPieces(answer)
  throw new UampError('provider_error', `${name} did not answer with a stream`, { cause: answer })
}

export type Tried<T> =
  { readonly answer: T } | { readonly error: UampError; readonly mayPass: boolean; readonly retryAfterMs?: number | undefined }

async function send(
  { name, http, request, signal, explain, once, maxBytes, timeouts: given }: UpstreamCall,
  leftMs: number,
): Promise<Tried<HttpAnswer>> {
  const { url, method, headers: sent, body: content } = request
  const { firstByteMs = SILENCE_MS, idleMs = SILENCE_MS } = given
  const timeouts = { firstByteMs, idleMs, totalMs: leftMs }
  const beyond = beyondOf(name, given.totalMs)
  let answer: HttpAnswer
  try {
    answer = await http.request({ url, method, headers: sent, body: content, signal, maxBytes, timeouts, once })
  } catch (thrown) {
    signal.throwIfAborted()
    const over = beyond(thrown)
    if (over) return { error: over, mayPass: false }
    if (isTimeout(thrown)) return { error: late(`${name} did not answer within ${timeouts.firstByteMs} ms`, thrown), mayPass: false }
    if (thrown instanceof UampError) return { error: thrown, mayPass: !once && thrown.code === 'provider_error' }
    return { error: new UampError('provider_error', `${name} cannot be reached`, { cause: thrown }), mayPass: !once || isUnsent(thrown) }
  }
  const { status, headers } = answer
  const body = new Body(answer.body, (cause) => {
    if (signal.aborted) return signal.reason as Error
    const over = beyond(cause)
    if (over) return over
    if (isTimeout(cause)) return late(`${name} fell silent for ${timeouts.idleMs} ms`, cause)
    return cause instanceof UampError ? cause : new UampError('provider_error', `The answer of ${name} was cut off`, { cause })
  })
  if (status >= 200 && status < 300) return { answer: { status, headers, body } }
  try {
    const refused = await refusedBy({ name, answer: { status, headers, body }, explain })
    const unbegun = (status === 429 || status === 503) && refused.retryAfterMs !== undefined
    return { ...refused, mayPass: refused.mayPass && (!once || unbegun) }
  } catch (thrown) {
    signal.throwIfAborted()
    return { error: UampError.from(thrown), mayPass: !once }
  }
}

/** The error for a peer that sends too much or for too long. */
function beyondOf(name: string, totalMs: number): (thrown: unknown) => UampError | undefined {
  return (thrown) => {
    if (thrown instanceof TookTooLong) return late(`${name} did not come to an end within ${totalMs} ms`, thrown)
    return isTooMuch(thrown) ? new UampError('provider_error', `${name} sent too much: ${thrown.message}`, { cause: thrown }) : undefined
  }
}

const UNSENT: ReadonlySet<unknown> = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH'])

/** True if there was no connection to send the request on. */
function isUnsent(thrown: unknown): boolean {
  const { code, cause } = thrown as { code?: unknown; cause?: { code?: unknown } | null }
  return UNSENT.has(code) || UNSENT.has(cause?.code)
}

function isTimeout(thrown: unknown): boolean {
  return thrown instanceof DOMException && thrown.name === 'TimeoutError'
}

function late(message: string, cause: unknown): UampError {
  return new UampError('timeout', message, { cause })
}

/** A body whose failures become errors of ours. Not a generator, so that a good piece costs nothing more. */
class Body implements AsyncIterable<Uint8Array> {
  readonly #body: AsyncIterable<Uint8Array>
  readonly #explain: (cause: unknown) => Error

  constructor(body: AsyncIterable<Uint8Array>, explain: (cause: unknown) => Error) {
    this.#body = body
    this.#explain = explain
  }

  [Symbol.asyncIterator](): AsyncIterator<Uint8Array> {
    const chunks = this.#body[Symbol.asyncIterator]()
    const failed = (cause: unknown): never => {
      throw this.#explain(cause)
    }
    return {
      next: () => chunks.next().catch(failed),
      return: async () => (await chunks.return?.()) ?? { done: true, value: undefined },
    }
  }
}
