import { credentialsEnded, mayDo, TOKEN_EXPIRED } from '../../core/basics/principal.ts'
import type { Access, Principal } from '../../core/ports/access.ts'
import type { Batch, Reader, Session } from '../../core/ports/session.ts'
import type { Host, KnownCall, Quota, Streamed, Texts } from '../../core/ports/transport.ts'
import { ResponseRun } from '../../core/reading/response-run.ts'
import { UampError } from '../../protocol/errors.ts'
import type { ClientEvent, Draft } from '../../protocol/events.ts'
import { JsonBoundError, parseJson } from '../../protocol/json.ts'
import { limits } from '../../protocol/limits.ts'
import { parseClientEvent, type ParsedEvent } from '../../protocol/parse.ts'
import { SSE_HEADERS, SSE_HEARTBEAT, sseLine } from '../../wire/sse.ts'
import {
  announced,
  checkEvent,
  findSession,
  identify,
  marks,
  onlyRefreshes,
  openSession,
  position,
  refreshed,
  resumedEvent,
} from './open.ts'
import { rateHeaders, whatIsLeft } from './rate-limit.ts'
import { viewOf } from './view.ts'

const SESSION_HEADER = 'x-session-id'
/** The newest event when the stream begins: what comes up to it is a replay. */
const HEAD_HEADER = 'x-session-head'
/** Events in one POST. */
const BATCH = 64

/** `POST /events`: one event or an array of them. With `Accept: text/event-stream` the answer is the stream of the response. */
export async function postEvents(host: Host, request: Request, call: KnownCall): Promise<Response | Streamed> {
  const text = await call.text()
  const parsed = parseBatch(text, host.newId)
  const sent = parsed.flatMap((item) => (item.kind === 'event' ? [item.event] : []))
  const ignored = parsed.flatMap((item) => (item.kind === 'unknown' ? [item.type] : []))
  if (ignored.length > 0)
    host.log('info', 'Ignored an event of unknown type', { type: [...new Set(ignored)].join(', '), ...call.trace.fields })
  host.gateway.checkSlots(sent, text.length)
  const receipt = { accepted: sent.map(({ event_id }) => event_id), ...(ignored.length > 0 && { ignored }) }
  const [first] = sent
  const named = request.headers.get(SESSION_HEADER) ?? first?.session_id
  let after: number | undefined
  let session: Session | undefined
  let sender: KnownSender = { principal: call.principal, trace: call.trace }
  let rest = sent
  if (first?.type === 'session.create') {
    sender = { principal: await identify(call.access, first.token, call.principal), trace: call.trace }
    const opened = await openSession(host, { event: first, agent: call.agent, ...sender })
    session = opened.session
    after = opened.after
    rest = sent.slice(1)
  } else if (named !== undefined && named !== null) {
    session = await findSession(host, named, call.principal)
  } else if (rest.length > 0 && rest.every(({ type }) => type === 'ping')) {
    const pongs = rest.map(() => ({ type: 'pong', ...marks(host) }))
    return Response.json({ ...receipt, events: pongs }, { headers: rateHeaders(call.quota) })
  } else if (rest.length > 0) {
    const details = ignored.length > 0 ? { details: { ignored } } : {}
    throw new UampError('invalid_request', 'Name a session: send the X-Session-ID header, or begin with session.create', details)
  }
  if (session && wantsStream(request, rest)) {
    const reader = session.read({
      after: after ?? session.lastSeq,
      extensions: announced(session.client).extensions,
      signal: call.signal,
    })
    try {
      await sendAll(host, session, { events: rest, access: call.access, ...sender })
    } catch (thrown) {
      reader.close()
      session.leave()
      throw thrown
    }
    const view = viewOf(session.client)
    const run = new ResponseRun(host, { session, reader, response: session.lastResponse ?? '', releases: false })
    return streamed(host, { session, reader, quota: call.quota, ...sender, frames: run.frames((batch) => toSse(view(batch))) })
  }
  if (session) await sendAll(host, session, { events: rest, access: call.access, ...sender }).finally(() => session.leave())
  return Response.json(
    { ...(session && { session_id: session.id }), ...receipt },
    { status: after === undefined ? 202 : 201, headers: { ...rateHeaders(call.quota), ...(session && { [SESSION_HEADER]: session.id }) } },
  )
}

/** A client that accepts a stream gets one if it asks for a response. */
function wantsStream(request: Request, events: readonly ClientEvent[]): boolean {
  return (request.headers.get('accept')?.includes('text/event-stream') ?? false) && events.some(({ type }) => type === 'response.create')
}

/** `GET /events/stream`: the session's log from `Last-Event-ID`, or from its beginning, for as long as the client listens. */
export async function streamEvents(host: Host, request: Request, call: KnownCall): Promise<Streamed> {
  const query = new URL(request.url).searchParams
  const id = request.headers.get(SESSION_HEADER) ?? query.get('session_id')
  if (id === null) throw new UampError('invalid_request', 'Name a session: send the X-Session-ID header or ?session_id=')
  const session = await findSession(host, id, call.principal)
  const from = request.headers.get('last-event-id') ?? query.get('after')
  const after = from === 'head' ? session.lastSeq : position(from)
  const asked = query.get('extensions')
  const extensions = asked === null ? announced(session.client).extensions : asked === 'all' ? asked : asked.split(',')
  const reader = session.read({ after, extensions, signal: call.signal })
  if (!reader.recovered) reader.tell(resumedEvent(host, session, { resume: { recovered: false, after, head: session.lastSeq } }))
  // From here on the reader keeps the session in memory.
  session.leave()
  const { quota } = call
  const view = viewOf(session.client)
  let begun = false
  const frames = mapAsync(reader, (batch) => {
    if (begun) return toSse(view(batch))
    begun = true
    return beginning(view(batch), aside(host, session, whatIsLeft(quota, host.now())))
  })
  return streamed(host, { session, reader, quota, principal: call.principal, frames })
}

interface Following {
  readonly session: Session
  readonly reader: Reader
  readonly quota: Quota
  readonly frames: Streamed['frames']
  /** Whose token opened it: the session may have brought one of its own. */
  readonly principal: Principal
}

function streamed(host: Host, { session, reader, quota, frames, principal }: Following): Streamed {
  return {
    status: 200,
    headers: { ...SSE_HEADERS, ...rateHeaders(quota), [SESSION_HEADER]: session.id, [HEAD_HEADER]: String(session.lastSeq) },
    frames,
    principal,
    heartbeat: SSE_HEARTBEAT,
    failure: (error) => {
      // After other errors a client can come back and go on. This one would come again.
      if (error.code === 'too_large') return aside(host, session, { type: 'session.error', error: error.toBody() })
      // It needs another token first. The session itself stays.
      if (error.code === 'unauthorized') return aside(host, session, { type: 'session.end', reason: String(error.details?.['reason']) })
      return undefined
    },
    expired: (grace) => {
      const error = credentialsEnded(TOKEN_EXPIRED, { grace_seconds: grace }).toBody()
      reader.tell({ type: 'session.error', ...marks(host), session_id: session.id, error })
    },
  }
}

/** An event without a number, as it is not in the log. */
function aside(host: Host, { id }: Session, draft: Draft): string {
  return sseLine(JSON.stringify({ ...draft, ...marks(host), session_id: id }))
}

function toSse(batch: Pick<Batch, 'eachText'>): Texts {
  return { eachText: (visit) => batch.eachText((text, seq) => visit(sseLine(text, seq))) }
}

/** A page that uses `EventSource` sees no headers: its stream tells what is left after the first events. */
function beginning(batch: Pick<Batch, 'eachText'>, told: string): Texts {
  return {
    eachText(visit) {
      toSse(batch).eachText(visit)
      visit(told)
    },
  }
}

interface Sent extends KnownSender {
  readonly events: readonly ClientEvent[]
  readonly access: Access
}

type KnownSender = Pick<KnownCall, 'principal' | 'trace'>

/** Sends events in order, up to the first that is refused. Resolves when all are durable. */
async function sendAll(host: Host, session: Session, { events, access, principal, trace }: Sent): Promise<void> {
  const taken: Promise<void>[] = []
  let refusal: unknown
  let by = principal
  for (const given of events) {
    let event = given
    if (event.type === 'session.create') throw new UampError('invalid_request', 'session.create comes first, and once, in a request')
    if (event.type === 'session.update' && event.token !== undefined) {
      by = await refreshed(access, event.token, by)
      // To the session it would be a change, which not everybody may make.
      if (onlyRefreshes(event) && !mayDo(access, by, { action: 'call', agent: session.agent })) continue
      const { token: _, ...rest } = event
      event = rest
    }
    checkEvent(host, event, { principal: by, agent: session.agent })
    const sent = session.send(event, { principal: by, trace })
    sent.catch((thrown: unknown) => (refusal ??= thrown))
    taken.push(sent)
    // A refusal is known by the next microtask; storing takes longer.
    await Promise.resolve()
    if (refusal !== undefined) break
  }
  await Promise.all(taken)
}

function parseBatch(text: string, newId: () => string): ParsedEvent[] {
  const value = readJson(text)
  const items = Array.isArray(value) ? value : [value]
  if (items.length === 0 || items.length > BATCH) throw new UampError('invalid_request', `Send 1 to ${BATCH} events in one request`)
  return items.map((item) => parseClientEvent(item, newId))
}

function readJson(text: string): unknown {
  try {
    // One level more than an event has: events may come in an array.
    return parseJson(text, limits.depth + 1)
  } catch (cause) {
    if (cause instanceof JsonBoundError) {
      if (cause.bound === 'members') throw new UampError('too_large', `A request ${cause.message}`, { cause })
      throw new UampError('invalid_request', `An event must nest at most ${limits.depth} levels of objects and arrays`, { cause })
    }
    throw new UampError('invalid_request', 'Not JSON: send an event, or an array of events, as JSON', { cause })
  }
}

/**
 * Maps the items of an iterable. Not a generator, because a generator that waits for its next item keeps the last one in memory: with
 * a thousand idle streams, a thousand texts of tens of kilobytes.
 */
function mapAsync<T, U>(source: AsyncIterable<T>, map: (item: T) => U): AsyncIterable<U> {
  return {
    [Symbol.asyncIterator]() {
      const items = source[Symbol.asyncIterator]()
      return {
        async next(): Promise<IteratorResult<U, undefined>> {
          const step = await items.next()
          return step.done ? { done: true, value: undefined } : { done: false, value: map(step.value) }
        },
        async return(): Promise<IteratorResult<U, undefined>> {
          await items.return?.()
          return { done: true, value: undefined }
        },
      }
    },
  }
}
