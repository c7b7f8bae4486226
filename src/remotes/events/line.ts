import type { Turn } from '../../core/ports/agent.ts'
import type { HttpAnswer } from '../../core/ports/http.ts'
import { UampError } from '../../protocol/errors.ts'
import type { ServerEvent } from '../../protocol/events.ts'
import { fieldsOf, jsonIn } from '../../protocol/json.ts'
import { upstreamEvents } from '../../upstream/upstream-events.ts'
import type { Line } from '../../upstream/line.ts'
import { bearer, callUpstream, postUpstream, shortBounds, streamBounds, type AnswerBounds } from '../../upstream/upstream.ts'
import { UAMP_VERSION } from '../../protocol/version.ts'
import { sseParser, type ParsedSse } from '../../wire/sse-parse.ts'
import { explainError, isStream } from '../../wire/upstream.ts'
import type { RemoteEventsOptions } from './index.ts'
import { readEvent, type Received } from '../../wire/server-event.ts'
import { requestOf, stamp, type Request } from './request.ts'

/** For `session.end`, which nobody waits for. */
const GOODBYE_MS = 5_000
/** The answer to a POST of events: which of them were accepted. */
const TAKEN_BYTES = 1024 * 1024
const TAKEN_MS = 120_000

/** How a server takes events: all of a turn in one POST, which is answered with its events; or one a POST, beside a stream of its own. */
export type Manner = 'together' | 'apart'

/** Opens a line over HTTP. `learn` is told how this server takes events. */
export async function openHttp(
  options: RemoteEventsOptions,
  turn: Turn,
  { known, learn }: { readonly known: Manner | undefined; readonly learn: (manner: Manner) => void },
): Promise<Line> {
  const peer = new Peer(options, turn)
  const request = requestOf(turn, { agent: options.agent })
  if (known !== 'apart') {
    const line = await peer.together(request, known === undefined)
    if (line) {
      learn('together')
      return line
    }
  }
  const line = await peer.apart(request)
  learn('apart')
  return line
}

/** For learning what the other side can do: an IDE waits for it. */
const LOOK_BYTES = 4 * 1024 * 1024
const LOOK_MS = 10_000

/** Opens a session there that asks for nothing. Its line has what the other side says of itself. */
export async function lookHttp(options: RemoteEventsOptions, by: By): Promise<Line<ServerEvent>> {
  const { agent } = options
  const create = { ...stamp('session.create'), uamp_version: UAMP_VERSION, ...(agent !== undefined && { agent }) }
  return new Peer(options, by).look(create)
}

/** What a turn brings that a call needs. */
type By = Pick<Turn, 'http' | 'signal'>

/** The other server, for one turn. */
class Peer {
  readonly #options: RemoteEventsOptions
  readonly #turn: By

  constructor(options: RemoteEventsOptions, turn: By) {
    this.#options = options
    this.#turn = turn
  }

  /** Undefined: this server may want one event a POST. Only asked where that is not known. */
  async together({ create, input, respond }: Request, mayRefuse: boolean): Promise<Line | undefined> {
    const how = { headers: { accept: 'text/event-stream' }, once: true, ...streamBounds() }
    try {
      const answer = await this.post([create, input, respond], how)
      if (isStream(answer.headers, true))
        return new HttpLine(this, { session: answer.headers.get('x-session-id') ?? '', body: answer.body })
      for await (const _ of answer.body);
    } catch (thrown) {
      const { code, details } = UampError.from(thrown)
      if (!mayRefuse || (code !== 'invalid_request' && details?.['status'] !== 415)) throw thrown
    }
    return undefined
  }

  /** UAMP events §13.2: a POST for each event, and the events of the server from a stream that names the session. */
  async apart({ create, input, respond }: Request): Promise<Line> {
    const session = await this.#create(create)
    const stream = await this.#stream(session)
    const line = new HttpLine(this, { session: session ?? '', body: stream.body })
    try {
      for (const event of [input, respond]) await this.tell(event, line.session, this.#turn.signal)
      return line
    } catch (thrown) {
      line.close({ over: false })
      throw thrown
    }
  }

  async look(create: object): Promise<Line<ServerEvent>> {
    const bounds = shortBounds(LOOK_BYTES, LOOK_MS)
    const session = await this.#create(create, bounds)
    const stream = await this.#stream(session, bounds)
    return new HttpLine(this, { session: session ?? '', body: stream.body })
  }

  async #create(create: object, bounds = shortBounds(TAKEN_BYTES, TAKEN_MS)): Promise<string | undefined> {
    const answer = await this.post(create, { headers: {}, once: true, ...bounds })
    let text = ''
    const decoder = new TextDecoder()
    for await (const chunk of answer.body) text += decoder.decode(chunk, { stream: true })
    const body = fieldsOf(jsonIn(text))
    const named = [answer.headers.get('x-session-id'), body['session_id'], fieldsOf(body['session'])['id']]
    return named.find((id): id is string => typeof id === 'string' && id !== '')
  }

  #stream(session: string | undefined, bounds = streamBounds()): Promise<HttpAnswer> {
    const { name, token } = this.#options
    const headers = { accept: 'text/event-stream', ...bearer(token), ...(session !== undefined && { 'x-session-id': session }) }
    const { http, signal } = this.#turn
    const request = { url: this.#url('/events/stream'), method: 'GET' as const, headers }
    return callUpstream({ name: `The server of "${name}"`, http, signal, request, explain: explainError, ...bounds })
  }

  async tell(event: object, session: string, signal: AbortSignal): Promise<void> {
    const headers = session === '' ? {} : { 'x-session-id': session }
    const named = session === '' ? event : { ...event, session_id: session }
    const { body } = await this.post(named, { headers, ...shortBounds(TAKEN_BYTES, TAKEN_MS) }, signal)
    for await (const _ of body);
  }

  post(body: unknown, how: How, signal = this.#turn.signal): Promise<HttpAnswer> {
    const { name, token } = this.#options
    const to = { name: `The server of "${name}"`, url: this.#url('/events'), token, ...how }
    return postUpstream({ ...to, explain: explainError, body }, { http: this.#turn.http, signal })
  }

  #url(path: string): string {
    return this.#options.url.replace(/\/+$/, '') + path
  }

  get name(): string {
    return this.#options.name
  }

  get signal(): AbortSignal {
    return this.#turn.signal
  }
}

interface How extends AnswerBounds {
  readonly headers: Readonly<Record<string, string>>
  readonly once?: boolean
}

class HttpLine implements Line<ServerEvent> {
  readonly #peer: Peer
  readonly #batches: AsyncIterator<readonly ParsedSse[]>
  session: string

  constructor(peer: Peer, { session, body }: { readonly session: string; readonly body: AsyncIterable<Uint8Array> }) {
    this.#peer = peer
    this.session = session
    this.#batches = upstreamEvents(body, { name: peer.name, parse: sseParser() })
  }

  async next(): Promise<readonly ServerEvent[]> {
    const step = await this.#batches.next()
    if (step.done) throw new UampError('provider_error', `The answer of "${this.#peer.name}" was cut off`)
    const received = step.value.flatMap(({ data }) => readEvent(data) ?? [])
    if (received.some(isPing)) void this.send(stamp('pong')).catch(() => undefined)
    return received.filter((event) => !isPing(event))
  }

  async send(event: object): Promise<void> {
    try {
      await this.#peer.tell({ event_id: crypto.randomUUID(), ...event }, this.session, this.#peer.signal)
    } catch (thrown) {
      if (UampError.from(thrown).code !== 'not_found') throw thrown
    }
  }

  close({ over }: { readonly over: boolean }): void {
    const ignore = (): undefined => undefined
    // Read to its end, the connection can be used again.
    Promise.resolve(over ? this.#batches.next() : this.#batches.return?.()).catch(ignore)
    this.#peer.tell(stamp('session.end'), this.session, AbortSignal.timeout(GOODBYE_MS)).catch(ignore)
  }
}

function isPing(event: Received): event is Extract<Received, { type: 'ping' }> {
  return event.type === 'ping'
}
