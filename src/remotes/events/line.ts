import * as z from 'zod/mini'
import type { Turn } from '../../core/ports/agent.ts'
import type { HttpAnswer } from '../../core/ports/http.ts'
import { upstreamEvents } from '../../upstream/upstream-events.ts'
import { bearer, callUpstream, postUpstream, shortBounds, streamBounds, type AnswerBounds } from '../../upstream/upstream.ts'
import type { Capabilities } from '../../protocol/capabilities.ts'
import { UampError } from '../../protocol/errors.ts'
import { ServerEvent, type Draft, type EventOf } from '../../protocol/events.ts'
import { FIRST_EXPLAINED } from '../../protocol/explain.ts'
import { isRecord, jsonIn, uampIn } from '../../protocol/json.ts'
import type { SessionConfig } from '../../protocol/session-config.ts'
import { UAMP_VERSION } from '../../protocol/version.ts'
import { explainError } from '../../wire/upstream.ts'
import { sseParser, type ParsedSse } from '../../wire/sse-parse.ts'
import type { RemoteEventsOptions } from './index.ts'

/** For `session.end`, which nobody waits for. */
const GOODBYE_MS = 5_000
/** The answer to a POST of events: which of them were accepted. */
const TAKEN_BYTES = 1024 * 1024
const TAKEN_MS = 120_000

const KNOWN: ReadonlySet<string> = new Set(ServerEvent.def.options.map((schema) => schema.shape.type.def.values[0] as string))

/** For learning what the other side can do: an IDE waits for it. */
const LOOK_BYTES = 4 * 1024 * 1024
const LOOK_MS = 10_000

type By = Pick<Turn, 'http' | 'signal'>

/** One response of the other server: its events come in, answers go out. */
export class Line {
  readonly #options: RemoteEventsOptions
  readonly #by: By
  readonly #session: string
  readonly #batches: AsyncIterator<readonly ParsedSse[]>

  private constructor(options: RemoteEventsOptions, by: By, { headers, body }: HttpAnswer) {
    this.#options = options
    this.#by = by
    this.#session = headers.get('x-session-id') ?? ''
    this.#batches = upstreamEvents(body, { name: options.name, parse: sseParser() })
  }

  static async open(options: RemoteEventsOptions, turn: Turn): Promise<Line> {
    const events = opening(turn, options.agent)
    const answer = await post(options, turn, { events, headers: { accept: 'text/event-stream' }, once: true, ...streamBounds() })
    return new Line(options, turn, answer)
  }

  /** Opens a session there, asks nothing, and reads what it says of itself. */
  static async look(options: RemoteEventsOptions, by: By): Promise<Line> {
    const { agent, token, url } = options
    const create = { type: 'session.create', uamp_version: UAMP_VERSION, ...(agent !== undefined && { agent }) }
    const bounds = { retries: 0, ...shortBounds(LOOK_BYTES, LOOK_MS) }
    const opened = await post(options, by, { events: [create], headers: {}, ...bounds })
    for await (const _ of opened.body);
    const session = opened.headers.get('x-session-id') ?? ''
    const headers = { accept: 'text/event-stream', 'x-session-id': session, ...bearer(token) }
    const request = { url: `${url.replace(/\/+$/, '')}/events/stream`, method: 'GET' as const, headers }
    const { body } = await callUpstream({ name: `The server of "${options.name}"`, explain: explainError, request, ...by, ...bounds })
    return new Line(options, by, { ...opened, body })
  }

  /** The next events, all that came together. Throws if the stream ends before the response does. */
  async next(): Promise<readonly ServerEvent[]> {
    const step = await this.#batches.next()
    if (step.done) throw new UampError('provider_error', `The answer of "${this.#options.name}" was cut off`)
    return step.value.flatMap(({ data }) => readEvent(data) ?? [])
  }

  /** Rejects with the refusal of the other server, unless it only says that it no longer waits for this answer. */
  async send(event: object): Promise<void> {
    try {
      await this.#post(event, this.#by.signal)
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
      { http: this.#by.http, signal },
      { events: [event], headers, ...shortBounds(TAKEN_BYTES, TAKEN_MS) },
    )
    for await (const _ of body);
  }
}

interface Post extends AnswerBounds {
  readonly events: readonly object[]
  readonly headers: Readonly<Record<string, string>>
  readonly once?: boolean
  readonly retries?: number
}

function post({ name, url, token }: RemoteEventsOptions, by: By, { events, ...how }: Post): Promise<HttpAnswer> {
  const to = { name: `The server of "${name}"`, url: `${url.replace(/\/+$/, '')}/events`, token, ...how }
  return postUpstream({ ...to, explain: explainError, body: events }, by)
}

/**
 * The events that ask the other side for one turn: a new session, the whole conversation, and the response. The other side remembers
 * nothing, so the turn may belong to a restarted session or go on from an old response.
 */
function opening({ messages, said = [], config, client }: Turn, agent: string | undefined): readonly object[] {
  return [
    {
      type: 'session.create',
      uamp_version: UAMP_VERSION,
      ...(agent !== undefined && { agent }),
      session: sessionOf(config),
      client_capabilities: capabilitiesOf(client, config),
    },
    { type: 'input.text', text: '', messages: [...messages, ...said] },
    { type: 'response.create' },
  ]
}

/** A response that nobody reads after our connection broke must stop, because it costs money. */
function sessionOf({ extensions, ...config }: SessionConfig): object {
  const { resume: _, ...kept } = uampIn(extensions)
  return { ...config, extensions: { ...extensions, uamp: { ...kept, on_detach: 'cancel' } } }
}

/** The other server sends every extension event; each reader here gets those that it understands. */
function capabilitiesOf(client: Capabilities | undefined, { modalities }: SessionConfig): object {
  return {
    id: 'uamp-remote',
    provider: 'uamp',
    modalities,
    supports_streaming: true,
    supports_thinking: true,
    supports_caching: false,
    ...client,
    extensions: { ...client?.extensions, uamp: { events: true } },
  }
}

/** One event of the other server, checked; undefined if its type is not known here (UAMP events §14.3 rule 4). */
function readEvent(text: string): ServerEvent | undefined {
  const value = jsonIn(text)
  if (!isRecord(value) || typeof value['type'] !== 'string') throw wrong('something that is no event')
  if (isTextDelta(value)) return value
  if (!KNOWN.has(value['type'])) return undefined
  const { error } = z.safeParse(ServerEvent, value, FIRST_EXPLAINED)
  const issue = error?.issues[0]
  if (issue) throw wrong(`${value['type']}: "${issue.path.join('.')}" ${issue.message}`)
  // Not the parsed copy: fields that a newer server adds go on to the client.
  return value as unknown as ServerEvent
}

/** Without the stamps of the other session. */
export function toDraft(event: ServerEvent): Draft {
  if (event.type === 'response.delta') return { type: event.type, delta: event.delta }
  const stamped = event as ServerEvent & { response_id?: string; seq?: number }
  const { event_id: _e, timestamp: _t, session_id: _s, seq: _q, response_id: _r, ...draft } = stamped
  return draft as unknown as Draft
}

function isTextDelta(value: Record<string, unknown>): value is EventOf<'response.delta'> & Record<string, unknown> {
  const delta = value['delta']
  return value['type'] === 'response.delta' && isRecord(delta) && delta['type'] === 'text' && typeof delta['text'] === 'string'
}

function wrong(what: string): UampError {
  return new UampError('provider_error', `The remote agent's server sent ${what}`)
}
