import { parseSse } from '../wire/sse-parse.ts'
import { backoff } from '../wire/backoff.ts'
import { isTransient, tellsExpiry, UampClientError } from './errors.ts'
import { parseEvent, request } from './http.ts'
import type { Line } from './line.ts'
import type { Outgoing } from './outbox.ts'
import { follow, keepConnected, type Link, type LinkOptions, patienceMs, retryAfterMs, sleep, withDeadline, within } from './reconnect.ts'
import { Renewal } from './renewal.ts'

/** A reader that takes nothing for so long is given up, so that other readers of its session go on. */
const STALL_MS = 30_000

/** The most characters of one event. The longest holds a whole answer as JSON, in which every character may be escaped. */
const EVENT = 384 * 1024 * 1024

/** The most that goes into one request. */
const GROUP = { events: 64, size: 1024 * 1024 }

/** One stream of a session, among those that follow each other. */
interface Stream {
  readonly proved: () => void
  readonly renewal: Renewal
  /** Aborted when there is a newer token, for a stream that goes on from where this one is. */
  readonly next: AbortSignal
}

/**
 * Carries each session over a stream of its own, and a POST per group of events: UAMP events §13.2. Browsers open six connections to a
 * host over HTTP/1.1, which is enough for five sessions.
 */
export class SseLink implements Link {
  readonly #options: LinkOptions
  readonly #stops = new Map<Line, AbortController>()
  /** Sessions whose stream is not open. */
  readonly #down = new Set<Line>()
  readonly #posting = new Set<Line>()

  readonly #patience: number

  constructor(options: LinkOptions) {
    this.#options = options
    this.#patience = patienceMs(options.reconnect)
  }

  add(line: Line): void {
    const { onStatus, reconnect } = this.#options
    const stop = new AbortController()
    this.#stops.set(line, stop)
    this.#down.add(line)
    line.onSend = () => void this.#post(line, stop.signal)
    line.onOver = () => {
      stop.abort()
      this.#stops.delete(line)
      this.#up(line)
    }
    if (this.#stops.size === 1) onStatus('connecting')
    keepConnected({
      attempt: ({ proved }) => this.#followAll(line, proved, stop.signal),
      reconnect,
      signal: stop.signal,
      onRetry: (error) => {
        this.#down.add(line)
        onStatus('reconnecting', error)
      },
    }).catch((error: UampClientError) => {
      if (this.#stops.size === 1) onStatus('closed', error)
      line.fail(error)
    })
  }

  close(): void {
    for (const stop of this.#stops.values()) stop.abort()
    this.#stops.clear()
  }

  #up(line: Line): void {
    if (this.#down.delete(line) && this.#down.size === 0 && this.#stops.size > 0) this.#options.onStatus('open')
  }

  /** Follows a stream until it is lost. With each newer token it is replaced by another, because a stream cannot be shown one. */
  async #followAll(line: Line, proved: () => void, stop: AbortSignal): Promise<boolean> {
    const { tokens, reconnect } = this.#options
    let next = new AbortController()
    const show = (): string => {
      next.abort()
      return ''
    }
    const renewal = new Renewal({ tokens, reconnect, show })
    try {
      while (!stop.aborted && (await this.#follow(line, { proved, renewal, next: next.signal }, stop)) === 'renewed')
        next = new AbortController()
      return true
    } finally {
      renewal.stop()
    }
  }

  async #follow(line: Line, { proved, renewal, next }: Stream, stop: AbortSignal): Promise<'lost' | 'renewed'> {
    const { tokens } = this.#options
    // Before the clock begins to run for the server.
    await tokens.get()
    const lost = new AbortController()
    const releases = [follow(stop, lost), follow(next, lost)]
    let alive = false
    const heart = setInterval(() => {
      if (!alive) lost.abort()
      alive = false
    }, this.#patience)
    try {
      const id = line.id ?? (await this.#create(line, lost.signal))
      const headers = { accept: 'text/event-stream', 'x-session-id': id, 'last-event-id': String(line.seq) }
      const path = `/events/stream?extensions=${line.extensions}`
      const { response, token } = await request(this.#options, { path, headers, signal: lost.signal, cache: 'no-store' })
      const { body } = response
      line.head = Number(response.headers.get('x-session-head') ?? 0)
      line.open(id)
      proved()
      renewal.begin(token)
      this.#up(line)
      void this.#post(line, stop)
      if (!body) return 'lost'
      const heard = new TransformStream<Uint8Array, Uint8Array>({
        transform(chunk, controller) {
          alive = true
          controller.enqueue(chunk)
        },
      })
      for await (const { data } of parseSse(body.pipeThrough(heard), { limit: EVENT })) {
        const event = parseEvent(data)
        if (event && tokens.renews && tellsExpiry(event)) {
          if (event.type === 'session.end') {
            tokens.spent(token)
            return 'lost'
          }
          renewal.expired(() => undefined)
        } else if (event) line.receive(event, data.length)
        for (let room = line.room; room; room = line.room) {
          if (!(await within(room, STALL_MS))) line.shed()
          alive = true
        }
      }
      return 'lost'
    } catch (thrown) {
      if (next.aborted && !stop.aborted) return 'renewed'
      // The event would be too large on the next connection, too.
      if (!(thrown instanceof RangeError)) throw thrown
      throw new UampClientError({ code: 'too_large', message: 'The server sent an event that is too large for this client' }, thrown)
    } finally {
      clearInterval(heart)
      for (const release of releases) release()
      lost.abort()
    }
  }

  async #create(line: Line, signal: AbortSignal): Promise<string> {
    const body = await this.#send(JSON.stringify(line.hello()), undefined, signal)
    return (JSON.parse(body) as { session_id: string }).session_id
  }

  /** Sends waiting events in order, one request at a time. */
  async #post(line: Line, signal: AbortSignal): Promise<void> {
    if (this.#posting.has(line) || line.id === undefined) return
    this.#posting.add(line)
    // Events that are sent together, such as an input and its response.create, share a request.
    await Promise.resolve()
    const delay = backoff(this.#options.reconnect)
    let failures = 0
    for (;;) {
      const events = line.outbox.take(GROUP)
      if (events.length === 0 || signal.aborted) break
      try {
        await this.#deliver(line, events, signal)
        failures = 0
      } catch (thrown) {
        line.outbox.rewind()
        await sleep(Math.max(delay(failures++), retryAfterMs(thrown as UampClientError)), signal)
      }
    }
    this.#posting.delete(line)
  }

  /** Throws if another try may work. */
  async #deliver(line: Line, events: readonly Outgoing[], signal: AbortSignal): Promise<void> {
    const [first] = events
    const body = events.length === 1 && first ? first.text : `[${events.map(({ text }) => text).join(',')}]`
    try {
      await this.#send(body, line.id, signal)
      line.outbox.acknowledge(events.map(({ id }) => id))
    } catch (thrown) {
      const error = thrown as UampClientError
      if (isTransient(error)) throw error
      // The server refused one of them. Sent alone, each gets its own answer.
      if (events.length === 1 && first) line.outbox.refuse(first.id, error)
      else for (const event of events) await this.#deliver(line, [event], signal)
    }
  }

  /** Gives the text of the answer. Without an answer in time it rejects, and the events are sent again with the same ids. */
  #send(body: string, id: string | undefined, stop: AbortSignal): Promise<string> {
    const headers = { 'content-type': 'application/json', ...(id !== undefined && { 'x-session-id': id }) }
    return withDeadline(stop, this.#patience, async (signal) => {
      const { response } = await request(this.#options, { path: '/events', method: 'POST', body, headers, signal })
      return response.text()
    })
  }
}
