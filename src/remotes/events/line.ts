import type { Turn } from '../../core/ports/agent.ts'
import type { HttpAnswer } from '../../core/ports/http.ts'
import { upstreamEvents } from '../../upstream/upstream-events.ts'
import { postUpstream, shortBounds, streamBounds, type AnswerBounds } from '../../upstream/upstream.ts'
import { UampError } from '../../protocol/errors.ts'
import type { ServerEvent } from '../../protocol/events.ts'
import { explainError } from '../../wire/upstream.ts'
import { sseParser, type ParsedSse } from '../../wire/sse-parse.ts'
import { readEvent } from './incoming.ts'

/** For the last word, which nobody waits for. */
const GOODBYE_MS = 5_000
/** An acknowledgement: what was taken, and nothing that was said. */
const TAKEN_BYTES = 1024 * 1024
const TAKEN_MS = 120_000

export interface LineOptions {
  readonly name: string
  readonly url: string
  readonly token?: string
}

/** One response of the other server: its events come in, answers go out. */
export class Line {
  readonly #options: LineOptions
  readonly #turn: Turn
  readonly #session: string
  readonly #batches: AsyncIterator<readonly ParsedSse[]>

  private constructor(options: LineOptions, turn: Turn, { headers, body }: HttpAnswer) {
    this.#options = options
    this.#turn = turn
    this.#session = headers.get('x-session-id') ?? ''
    this.#batches = upstreamEvents(body, { name: options.name, parse: sseParser() })
  }

  static async open(options: LineOptions, turn: Turn, events: readonly object[]): Promise<Line> {
    const answer = await post(options, turn, { events, headers: { accept: 'text/event-stream' }, once: true, ...streamBounds() })
    return new Line(options, turn, answer)
  }

  /** The next events, all that came together. The end of the response is among the last of them, or it was cut off. */
  async next(): Promise<readonly ServerEvent[]> {
    const step = await this.#batches.next()
    if (step.done) throw new UampError('provider_error', `The answer of "${this.#options.name}" was cut off`)
    return step.value.flatMap(({ data }) => readEvent(data) ?? [])
  }

  /** Rejects with what the other server said no with, but for an answer that it no longer waits for. */
  async send(event: object): Promise<void> {
    try {
      await this.#post(event, this.#turn.signal)
    } catch (thrown) {
      if (UampError.from(thrown).code !== 'not_found') throw thrown
    }
  }

  /** Ends the session. A response that still runs is cancelled there, as nobody reads it any more. Nobody waits for this. */
  close({ over }: { readonly over: boolean }): void {
    const ignore = (): undefined => undefined
    // Read to its end, the connection can be used again.
    Promise.resolve(over ? this.#batches.next() : this.#batches.return?.()).catch(ignore)
    this.#post({ type: 'session.end' }, AbortSignal.timeout(GOODBYE_MS)).catch(ignore)
  }

  async #post(event: object, signal: AbortSignal): Promise<void> {
    const headers = { 'x-session-id': this.#session }
    const { body } = await post(
      this.#options,
      { http: this.#turn.http, signal },
      { events: [event], headers, ...shortBounds(TAKEN_BYTES, TAKEN_MS) },
    )
    for await (const _ of body);
  }
}

interface Post extends AnswerBounds {
  readonly events: readonly object[]
  readonly headers: Readonly<Record<string, string>>
  readonly once?: boolean
}

function post({ name, url, token }: LineOptions, by: Pick<Turn, 'http' | 'signal'>, { events, ...how }: Post): Promise<HttpAnswer> {
  const to = { name: `The server of "${name}"`, url: `${url.replace(/\/+$/, '')}/events`, token, ...how }
  return postUpstream({ ...to, explain: explainError, body: events }, by)
}
