import type { HttpAnswer, HttpClient } from '../../core/ports/http.ts'
import { upstreamEvents } from '../../upstream/upstream-events.ts'
import { callUpstream, streamBounds, type AnswerBounds, type UpstreamCall } from '../../upstream/upstream.ts'
import { UampError } from '../../protocol/errors.ts'
import { jsonIn } from '../../protocol/json.ts'
import { sseParser, type ParsedSse } from '../../wire/sse-parse.ts'
import type { Ask, Dialect } from './dialect.ts'
import { failureIn, isOtherTongue, toError } from './errors.ts'
import type { Told } from './model.ts'
import { readJson } from '../../wire/upstream.ts'

/** Bytes of an answer in one piece, such as a task with all its artifacts. A longer one fails. */
const WHOLE_BYTES = 64 * 1024 * 1024
/** Time for an agent that cannot stream: it may answer only when its work is done. */
const BLOCKING_MS = 10 * 60_000

/** An event, and its id if the server can resume a stream from there. */
export interface Heard {
  readonly told: Told
  readonly id: string | undefined
}

export interface EndpointOptions {
  /** The agent's name here. */
  readonly name: string
  readonly http: HttpClient
  readonly dialect: Dialect
  /** Credentials, extensions. */
  readonly headers: Readonly<Record<string, string>>
}

/** One address of the agent: calls and their answers. */
export class Endpoint {
  readonly dialect: Dialect
  readonly #options: EndpointOptions

  constructor(options: EndpointOptions) {
    this.dialect = options.dialect
    this.#options = options
  }

  /** `once`: the request is not repeated where that could do something twice. */
  async call(ask: Ask, signal: AbortSignal, { once = false } = {}): Promise<Told> {
    const bounds = { ...streamBounds(once ? { firstByteMs: BLOCKING_MS } : undefined), maxBytes: WHOLE_BYTES }
    const { body } = await this.#send(ask, { signal, once, ...bounds })
    return this.#read(await readJson(this.#options.name, body, WHOLE_BYTES))
  }

  /** Yields the events that came together. An answer in one piece is one event. */
  async *stream(ask: Ask, signal: AbortSignal, lastEventId?: string): AsyncGenerator<readonly Heard[], void> {
    const accept = { accept: 'text/event-stream', ...(lastEventId !== undefined && { 'last-event-id': lastEventId }) }
    const { headers, body } = await this.#send(
      { ...ask, headers: { ...ask.headers, ...accept } },
      {
        signal,
        retries: 0,
        once: true,
        ...streamBounds(),
      },
    )
    const { name } = this.#options
    if (!/^text\/event-stream\b/i.test(headers.get('content-type') ?? '')) {
      yield [{ told: this.#read(await readJson(name, body, WHOLE_BYTES)), id: undefined }]
      return
    }
    for await (const batch of upstreamEvents(body, { name, parse: sseParser() })) yield batch.flatMap((event) => this.#event(event) ?? [])
  }

  /** The stream of the first of several requests that the server understands. */
  async *streamAny(asks: readonly Ask[], signal: AbortSignal, lastEventId?: string): AsyncGenerator<readonly Heard[], void> {
    for (const [index, ask] of asks.entries()) {
      const stream = this.stream(ask, signal, lastEventId)
      let first: IteratorResult<readonly Heard[], void>
      try {
        first = await stream.next()
      } catch (thrown) {
        if (index < asks.length - 1 && isOtherTongue(thrown)) continue
        throw thrown
      }
      if (first.done) return
      yield first.value
      yield* stream
      return
    }
  }

  #event({ data, event, id }: ParsedSse): Heard | undefined {
    const value = jsonIn(data)
    const { name, dialect } = this.#options
    const failure = event === 'error' ? failureIn(value) : undefined
    if (failure) throw toError(name, failure)
    // With a reason, so that it does not count as a broken connection.
    if (value === undefined) throw toError(name, { reason: 'INVALID_AGENT_RESPONSE', message: 'an event is not JSON' })
    const told = dialect.read(value, name)
    return told && { told, id }
  }

  #read(value: unknown): Told {
    const { name, dialect } = this.#options
    const told = dialect.read(value, name)
    if (told) return told
    throw new UampError('provider_error', `${name} gave an answer that is not A2A: is the address right?`)
  }

  async #send(ask: Ask, call: AnswerBounds & Pick<UpstreamCall, 'signal' | 'retries' | 'once'>): Promise<HttpAnswer> {
    const { name, http, headers } = this.#options
    let said: unknown
    const explain = (body: unknown): string | undefined => failureIn((said = body))?.message
    try {
      return await callUpstream({ name, http, explain, request: { ...ask, headers: { ...ask.headers, ...headers } }, ...call })
    } catch (thrown) {
      // The reason of A2A says more than the HTTP status. Nothing of a refused key is repeated.
      const failure = failureIn(said)
      if (thrown instanceof UampError && failure?.reason !== undefined) throw toError(name, failure, thrown)
      throw thrown
    }
  }
}
