import { shortBounds, streamBounds, bearer, callUpstream } from '../../upstream/upstream.ts'
import { upstreamEvents } from '../../upstream/upstream-events.ts'
import { pause } from '../../core/basics/time.ts'
import type { HttpClient } from '../../core/ports/http.ts'
import { bodyOf } from '../../envelope/body.ts'
import { didOf } from '../../envelope/did.ts'
import { Delta, type Intent } from '../../envelope/schema.ts'
import { signEnvelope, type SigningKey } from '../../envelope/signature.ts'
import { joinedBytes } from '../../protocol/bytes.ts'
import { UampError } from '../../protocol/errors.ts'
import { jsonIn } from '../../protocol/json.ts'
import { backoff } from '../../wire/backoff.ts'
import { sseParser } from '../../wire/sse-parse.ts'
import { explainError } from '../../wire/upstream.ts'

/** Frames that may be on their way. Half as many are acknowledged at a time. */
const WINDOW = 256
const SHORT_MS = 20_000
const SHORT_BYTES = 64 * 1024
const CLOSING_BYTES = 64 * 1024 * 1024
/** How often a stream that broke is asked for again before the answer fails. */
const RESUMES = 5

export interface ExchangeOptions {
  readonly name: string
  readonly url: string
  readonly token: string | undefined
  readonly headers: Readonly<Record<string, string>>
  readonly http: HttpClient
  /** The DID of the other side. */
  readonly to: string
  readonly key: SigningKey
}

/** A message that was sent, and the stream of its answer. */
export interface Asked {
  readonly id: string
  readonly stream: string
  readonly place: string
}

export interface HeardFrame {
  readonly frame: Delta
  /** As it came: this is what is hashed. */
  readonly text: string
}

interface Message {
  readonly intent: Intent
  readonly content: string
  readonly type?: string
  readonly replyTo?: string | undefined
  readonly stream?: string
  readonly signal: AbortSignal
}

/** Sends signed messages to one server, and reads the streams of its answers. */
export class Exchange {
  readonly #options: ExchangeOptions

  constructor(options: ExchangeOptions) {
    this.#options = options
  }

  async ask(content: string, { replyTo, signal }: { readonly replyTo: string | undefined; readonly signal: AbortSignal }): Promise<Asked> {
    const { name, url } = this.#options
    const stream = `str-${crypto.randomUUID()}`
    const { id, location } = await this.send({ intent: 'ask', content, replyTo, stream, signal })
    const place = URL.canParse(location ?? '', url) ? new URL(location ?? '', url) : undefined
    // The token is for that server alone.
    if (place?.origin !== new URL(url).origin) throw new UampError('provider_error', `${name} did not say where its answer is`)
    return { id, stream, place: place.href }
  }

  /** Sends a message. One that is sent twice has one effect, so it may be sent again. */
  async send({ intent, content, type = 'text/plain', replyTo, stream, signal }: Message) {
    const { to, key } = this.#options
    const unsigned = {
      id: `urn:uuid:${crypto.randomUUID()}`,
      ts: new Date().toISOString(),
      from: didOf(key.id),
      to: [to],
      intent,
      ...(replyTo !== undefined && { reply_to: replyTo }),
      ...(stream !== undefined && { stream_id: stream }),
      ...(intent === 'ask' && { delta_window: WINDOW }),
      body: bodyOf(type, content),
    }
    const body = JSON.stringify(await signEnvelope(unsigned, key))
    const headers = { 'content-type': 'application/uamp+json;v=1' }
    const answer = await this.#call(
      { path: '/v1/messages', method: 'POST', headers, body },
      { signal, ...shortBounds(SHORT_BYTES, SHORT_MS) },
    )
    for await (const _ of answer.body);
    return { id: unsigned.id, location: answer.headers.get('location') }
  }

  /** The frames of an answer, each once and in order, across connections. */
  async *frames(asked: Asked, signal: AbortSignal): AsyncGenerator<readonly HeardFrame[], void> {
    const { name } = this.#options
    const wait = backoff({ minMs: 200, maxMs: 5_000 })
    let last = -1
    let acknowledged = -1
    for (let failures = 0; ;) {
      try {
        for await (const batch of await this.#read(asked, last, signal)) {
          const frames = batch.map((frame) => this.#next(frame, ++last))
          failures = 0
          yield frames
          if (frames.some(({ frame: { type } }) => type === 'done' || type === 'cancel' || type === 'error')) return
          if (last - acknowledged < WINDOW / 2) continue
          acknowledged = last
          await this.#acknowledge(asked, last, signal)
        }
      } catch (thrown) {
        signal.throwIfAborted()
        if (!(thrown instanceof UampError) || thrown.code !== 'provider_error' || failures >= RESUMES) throw thrown
      }
      if (failures++ >= RESUMES) throw new UampError('provider_error', `The answer of ${name} broke off`)
      await pause(wait(failures), signal)
    }
  }

  /** The signed message that closes an exchange. */
  async closing({ id }: Asked, signal: AbortSignal): Promise<Uint8Array> {
    const asking = { path: `/v1/messages/${encodeURIComponent(id)}`, method: 'GET' as const, headers: {} }
    const { body } = await this.#call(asking, { signal, ...shortBounds(CLOSING_BYTES, SHORT_MS) })
    const pieces: Uint8Array[] = []
    for await (const piece of body) pieces.push(piece)
    return joinedBytes(pieces)
  }

  async #read({ place }: Asked, last: number, signal: AbortSignal) {
    const { name } = this.#options
    const headers = { accept: 'text/event-stream', ...(last >= 0 && { 'last-event-id': String(last) }) }
    const { body } = await this.#call({ url: place, method: 'GET', headers }, { signal, ...streamBounds() })
    return upstreamEvents(body, { name, parse: sseParser() })
  }

  #next({ data }: { readonly data: string }, expected: number): HeardFrame {
    const { name } = this.#options
    const frame = Delta.safeParse(jsonIn(data))
    if (!frame.success) throw new UampError('invalid_request', `${name} sent a frame that is none`)
    if (frame.data.delta_seq === expected) return { frame: frame.data, text: data }
    throw new UampError('invalid_request', `${name} sent frame ${frame.data.delta_seq} in place of ${expected}`)
  }

  async #acknowledge({ stream }: Asked, last: number, signal: AbortSignal): Promise<void> {
    await this.send({ intent: 'progress', stream, type: 'application/json', content: JSON.stringify({ ack: last }), signal })
  }

  #call(
    request: {
      readonly path?: string
      readonly url?: string
      readonly method: 'GET' | 'POST'
      readonly headers: Readonly<Record<string, string>>
      readonly body?: string
    },
    bounds: ReturnType<typeof shortBounds> & { readonly signal: AbortSignal },
  ) {
    const { name, url, token, headers, http } = this.#options
    const { path = '', url: whole = url + path, method, body } = request
    return callUpstream({
      name: `"${name}"`,
      http,
      explain: explainError,
      ...bounds,
      request: { url: whole, method, headers: { ...bearer(token), ...headers, ...request.headers }, ...(body !== undefined && { body }) },
    })
  }
}
