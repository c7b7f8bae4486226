import type { EventOf, ServerEvent } from '../protocol/events.ts'
import { isTransient, tellsExpiry, UampClientError } from './errors.ts'
import { parseEvent, requestWith } from './http.ts'
import { createdExtension, type Line } from './line.ts'
import { type Attempt, keepConnected, type Link, type LinkOptions, retryAfterMs, withDeadline } from './reconnect.ts'
import { Renewal } from './renewal.ts'

/** The part of a WebSocket that the client uses. Those of browsers, Node and `ws` all fit. */
export interface SocketLike {
  send(data: string): void
  close(code?: number, reason?: string): void
  addEventListener(type: 'open' | 'error', listener: () => void): void
  addEventListener(type: 'message', listener: (event: { readonly data: unknown }) => void): void
  addEventListener(type: 'close', listener: (event: { readonly code: number; readonly reason: string }) => void): void
}

export type SocketConstructor = new (url: string, protocols: string[]) => SocketLike

export interface WebSocketLinkOptions extends LinkOptions {
  readonly WebSocket: SocketConstructor
  readonly newId: () => string
  /** Called if no WebSocket can be opened, though the server answers HTTP. Undefined: there is nothing else to try. */
  readonly onBlocked: ((lines: readonly Line[]) => void) | undefined
}

/** Time from the attempt to the first message. */
const OPEN_MS = 10_000
/** Failures in a row before HTTP is tried, once a WebSocket has worked. */
const BLOCKED_AFTER = 3
const UNAUTHORIZED = [1008, 4401]
const TOO_LARGE = 1009

interface Lost {
  readonly code: number
  readonly reason: string
  /** True if anything was received. */
  readonly heard: boolean
}

/** Carries all sessions over one socket, by `session_id`: UAMP events §10 and §13.1. */
export class WebSocketLink implements Link {
  readonly #options: WebSocketLinkOptions
  readonly #lines = new Set<Line>()
  /** By the id of the `session.create` that has no answer yet. */
  readonly #asked = new Map<string, Line>()
  /** By session id: sessions that the server has attached to this connection. */
  readonly #joined = new Map<string, Line>()
  #socket: SocketLike | undefined
  #stop: AbortController | undefined
  /** The server has refused a token, and has accepted none since. */
  #refused = false
  #tried: { readonly token: string | undefined; readonly isNew: boolean } | undefined
  #renewal: Renewal | undefined

  constructor(options: WebSocketLinkOptions) {
    this.#options = options
  }

  add(line: Line): void {
    this.#lines.add(line)
    line.onSend = () => this.#flush(line)
    line.onOver = () => {
      this.#lines.delete(line)
      if (line.id !== undefined && this.#joined.get(line.id) === line) this.#joined.delete(line.id)
    }
    if (this.#socket) this.#hello(line)
    else if (!this.#stop) void this.#run()
  }

  close(): void {
    this.#stop?.abort()
    this.#stop = undefined
  }

  async #run(): Promise<void> {
    const { reconnect, onStatus } = this.#options
    const stop = (this.#stop = new AbortController())
    onStatus('connecting')
    try {
      await keepConnected({
        attempt: (attempt) => this.#attempt(attempt, stop.signal),
        reconnect,
        signal: stop.signal,
        onRetry: (error) => onStatus('reconnecting', error),
      })
    } catch (thrown) {
      const error = thrown as UampClientError
      this.#stop = undefined
      onStatus('closed', error)
      for (const line of this.#lines) line.fail(error)
    }
  }

  async #attempt({ failures, known, proved }: Attempt, signal: AbortSignal): Promise<boolean> {
    let worked = known
    const works = (): void => {
      worked = true
      proved()
    }
    const open = (): Promise<boolean> => this.#open({ failures, known, proved: works }, signal)
    try {
      return await open()
    } catch (thrown) {
      const { code, message } = thrown as UampClientError
      // One that was tried before may have ended since, while the network was gone.
      const isFresh = this.#tried?.isNew === true
      if (code !== 'unauthorized' || !this.#options.tokens.renews || (this.#refused && isFresh)) throw thrown
      this.#refused = true
      // The very first token may have been an old one. Later on, there is a pause as before any other attempt.
      if (!worked) return open()
      throw new UampClientError({ code: 'unreachable', message }, thrown)
    }
  }

  async #open({ failures, known, proved }: Attempt, signal: AbortSignal): Promise<boolean> {
    const { base, onBlocked, tokens } = this.#options
    const token = await tokens.get()
    if (signal.aborted) return false
    this.#tried = { token, isNew: token !== this.#tried?.token }
    const { code, reason, heard } = await this.#connect(token, proved, signal).catch((thrown: unknown) => ({
      code: 0,
      reason: String(thrown),
      heard: false,
    }))
    if (signal.aborted) return false
    if (UNAUTHORIZED.includes(code)) {
      tokens.spent(token)
      throw new UampClientError({ code: 'unauthorized', message: reason || 'The server refused the connection' })
    }
    if (code === TOO_LARGE) this.#refuseLargest()
    if (heard) return true
    // A browser does not say why a socket did not open. A request with the same token does.
    const answers = await this.#answersHttp(token, signal)
    if (answers && onBlocked && (!known || failures >= BLOCKED_AFTER)) {
      this.#stop = undefined
      const lines = [...this.#lines]
      this.#lines.clear()
      onBlocked(lines)
      return false
    }
    throw new UampClientError({
      code: 'unreachable',
      message: answers
        ? `${base} answers, but no WebSocket can be opened`
        : `No connection to ${base}${reason ? `: ${reason}` : '. Is a server running there?'}`,
    })
  }

  /** True if the server answers at all. Throws if it refuses the token. */
  async #answersHttp(token: string | undefined, signal: AbortSignal): Promise<boolean> {
    try {
      await withDeadline(signal, OPEN_MS, (late) => requestWith(token, this.#options, { path: '/events/stream', signal: late }))
      return true
    } catch (thrown) {
      const error = thrown as UampClientError
      if (error.code === 'unauthorized') this.#options.tokens.spent(token)
      if (error.code === 'unauthorized' || error.code === 'forbidden') throw error
      return !isTransient(error)
    }
  }

  /** Resolves when the connection is lost. Rejects if the runtime forbids it. */
  #connect(token: string | undefined, proved: () => void, signal: AbortSignal): Promise<Lost> {
    const { base, tokens, WebSocket, newId, reconnect } = this.#options
    return new Promise((resolve) => {
      const socket = new WebSocket(`${base.replace(/^http/, 'ws')}/uamp`, [
        'uamp',
        ...(token === undefined ? [] : [`uamp.token.${base64url(token)}`]),
      ])
      let heard = false
      let alive = true
      let testing = false
      const tell = (event: object): string => {
        const event_id = newId()
        socket.send(JSON.stringify({ ...event, event_id }))
        return event_id
      }
      const show = (newer: string): string => tell({ type: 'session.update', token: newer })
      const renewal = new Renewal({ tokens, reconnect, show })
      const finish = (code: number, reason: string): void => {
        renewal.stop()
        clearTimeout(opening)
        clearInterval(heart)
        signal.removeEventListener('abort', leave)
        if (this.#socket === socket) this.#lost()
        socket.close()
        resolve({ code, reason, heard })
      }
      const leave = (): void => finish(1000, '')
      const opening = setTimeout(() => finish(0, 'no answer in time'), OPEN_MS)
      // A socket without a network may stay open for minutes. Browsers cannot ping, so the protocol's own ping is used.
      const heart = setInterval(() => {
        if (this.#socket !== socket) return
        if (!alive && testing) return finish(0, 'no sign of life')
        testing = !alive
        if (testing) tell({ type: 'ping' })
        alive = false
      }, reconnect.idleMs ?? 15_000)
      signal.addEventListener('abort', leave)
      socket.addEventListener('open', () => {
        if (signal.aborted) return
        this.#refused = false
        this.#socket = socket
        this.#renewal = renewal
        renewal.begin(token)
        for (const line of this.#lines) this.#hello(line)
      })
      socket.addEventListener('message', ({ data }) => {
        if (this.#socket !== socket || typeof data !== 'string') return
        alive = true
        if (!heard) {
          heard = true
          clearTimeout(opening)
          proved()
          this.#options.onStatus('open')
        }
        const event = parseEvent(data)
        // Servers may ping, too; ours does it by the WebSocket's own ping.
        if ((event?.type as string | undefined) === 'ping') tell({ type: 'pong' })
        else if (event) this.#receive(event, data.length)
      })
      // The `close` event follows in every runtime, and says as much.
      socket.addEventListener('error', () => undefined)
      socket.addEventListener('close', ({ code, reason }) => finish(code, reason))
    })
  }

  #lost(): void {
    this.#socket = undefined
    this.#asked.clear()
    this.#joined.clear()
    for (const line of this.#lines) line.outbox.rewind()
  }

  #hello(line: Line): void {
    if (line.over) return
    const hello = line.hello()
    this.#asked.set(hello.event_id, line)
    this.#socket?.send(JSON.stringify(hello))
  }

  #flush(line: Line): void {
    if (!this.#socket || line.id === undefined || this.#joined.get(line.id) !== line) return
    const events = line.outbox.take()
    for (const { text } of events) this.#socket.send(text)
    if (!line.acks) line.outbox.acknowledge(events.map(({ id }) => id))
  }

  #receive(event: ServerEvent, size: number): void {
    if (this.#renewal?.hears(event)) return
    if (this.#tellsUs(event)) return this.#expired(event)
    if (event.type === 'session.created') return this.#created(event, size)
    if ((event.type === 'session.error' || event.type === 'response.error') && this.#refusedCreate(event)) return
    // With one session, events may lack the id: UAMP events §10.1. A pong without one answers our own ping.
    const id = event.session_id ?? (this.#joined.size === 1 && event.type !== 'pong' ? [...this.#joined.keys()][0] : undefined)
    if (id !== undefined) this.#joined.get(id)?.receive(event, size)
  }

  /** True if the token of this client has expired, and there may be another. */
  #tellsUs(event: ServerEvent): boolean {
    const { session_id: id } = event
    return this.#options.tokens.renews && tellsExpiry(event) && (id === undefined || this.#joined.has(id))
  }

  /** A session that has ended here for want of a token goes on with a new one. */
  #expired({ type, session_id: id = '' }: ServerEvent): void {
    const line = type === 'session.end' ? this.#joined.get(id) : undefined
    if (line) {
      this.#joined.delete(id)
      line.outbox.rewind()
    }
    this.#renewal?.expired(() => line && this.#hello(line))
  }

  #created(event: EventOf<'session.created'>, size: number): void {
    const extension = createdExtension(event)
    // Other servers name no request, and answer in order.
    const request = extension?.request ?? [...this.#asked.keys()][0] ?? ''
    const line = this.#asked.get(request)
    const id = event.session_id ?? event.session.id
    // The event is in the session's log, too, and comes again with it.
    if (!line) return this.#joined.get(id)?.receive(event, size)
    this.#asked.delete(request)
    if (line.over) return
    if (line.id !== undefined && line.id !== id) {
      return line.fail(
        new UampClientError({ code: 'not_found', message: 'The server opened another session instead of resuming this one' }),
      )
    }
    const before = this.#joined.get(id)
    this.#joined.set(id, line)
    before?.close(new UampClientError({ code: 'closed', message: 'The session was resumed anew on this client' }))
    line.acks = extension !== undefined
    line.open(id)
    line.receive(event, size)
    this.#flush(line)
  }

  #refusedCreate(event: EventOf<'session.error' | 'response.error'>): boolean {
    const { event_id: named, slowed, reason } = event.error.details ?? {}
    // The server only reads more slowly, and has refused nothing.
    if (slowed === true) return false
    const id = typeof named === 'string' ? named : event.session_id === undefined ? [...this.#asked.keys()][0] : undefined
    const line = id === undefined ? undefined : this.#asked.get(id)
    if (id === undefined || !line) return false
    this.#asked.delete(id)
    const error = UampClientError.from(event)
    if (reason === 'token_expired' && this.#options.tokens.renews) this.#renewal?.expired(() => this.#hello(line))
    else if (line.id === undefined || !isTransient(error)) line.fail(error)
    else setTimeout(() => this.#socket && !this.#joined.has(line.id ?? '') && this.#hello(line), retryAfterMs(error) || 1000)
    return true
  }

  /** The server cut the connection because of a large message, and would do so again. It must have been the largest. */
  #refuseLargest(): void {
    let found: { readonly line: Line; readonly id: string; readonly length: number } | undefined
    for (const line of this.#lines) {
      const largest = line.outbox.largest
      if (largest && largest.text.length > (found?.length ?? 0)) found = { line, id: largest.id, length: largest.text.length }
    }
    found?.line.outbox.refuse(found.id, new UampClientError({ code: 'too_large', message: 'The event is larger than the server takes' }))
  }
}

function base64url(text: string): string {
  const binary = Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte)).join('')
  return btoa(binary).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')
}
