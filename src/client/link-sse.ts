import { parseSse } from '../wire/sse-parse.ts'
import { backoff } from '../wire/backoff.ts'
import { isTransient, tellsExpiry, UampClientError } from './errors.ts'
import { parseEvent, request } from './http.ts'
import type { Line } from './line.ts'
import type { Outgoing } from './outbox.ts'
import { follow, keepConnected, type Link, type LinkOptions, retryAfterMs, sleep, withDeadline, within } from './reconnect.ts'

/** A reader that takes nothing for so long is given up, so that other readers of its session go on. */
const STALL_MS = 30_000

/** The most characters of one event. The longest holds a whole answer as JSON, in which every character may be escaped. */
const EVENT = 384 * 1024 * 1024

/** If tokens last less than this, the next one is not asked for at once. */
const SHORT_MS = 5_000

/** The most that goes into one request. */
const GROUP = { events: 64, size: 1024 * 1024 }

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

  /** Longer than the server's heartbeat. */
  readonly #patience: number

  constructor(options: LinkOptions) {
    this.#options = options
    this.#patience = (options.reconnect.idleMs ?? 15_000) * 2
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

  /** Follows a stream until it is lost. One whose token expires is replaced by another, which goes on from there. */
  async #followAll(line: Line, proved: () => void, stop: AbortSignal): Promise<boolean> {
    const delay = backoff(this.#options.reconnect)
    let short = 0
    for (;;) {
      const openedAt = performance.now()
      if ((await this.#follow(line, proved, stop)) === 'lost') return true
      short = performance.now() - openedAt < SHORT_MS ? short + 1 : 0
      if (short > 1) await sleep(delay(short), stop)
      if (stop.aborted) return true
    }
  }

  async #follow(line: Line, proved: () => void, stop: AbortSignal): Promise<'lost' | 'expired'> {
    const { tokens } = this.#options
    const lost = new AbortController()
    const release = follow(stop, lost)
    let alive = false
    const heart = setInterval(() => {
      if (!alive) lost.abort()
      alive = false
    }, this.#patience)
    try {
      const id = line.id ?? (await this.#create(line, lost.signal))
      const headers = { accept: 'text/event-stream', 'x-session-id': id, 'last-event-id': String(line.seq) }
      const { body, headers: answered } = await request(this.#options, `/events/stream?extensions=${line.extensions}`, {
        headers,
        signal: lost.signal,
        cache: 'no-store',
      })
      const token = await tokens.get()
      line.head = Number(answered.get('x-session-head') ?? 0)
      line.open(id)
      proved()
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
          tokens.spent(token)
          return 'expired'
        }
        if (event) line.receive(event, data.length)
        for (let room = line.room; room; room = line.room) {
          if (!(await within(room, STALL_MS))) line.shed()
          alive = true
        }
      }
      return 'lost'
    } catch (thrown) {
      // The event would be too large on the next connection, too.
      if (!(thrown instanceof RangeError)) throw thrown
      throw new UampClientError({ code: 'too_large', message: 'The server sent an event that is too large for this client' }, thrown)
    } finally {
      clearInterval(heart)
      release()
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
      const response = await request(this.#options, '/events', { method: 'POST', body, headers, signal })
      return response.text()
    })
  }
}
