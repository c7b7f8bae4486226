import type { SocketConstructor, SocketLike } from '../../client/link-websocket.ts'
import type { Turn } from '../../core/ports/agent.ts'
import { UampError } from '../../protocol/errors.ts'
import type { ServerEvent } from '../../protocol/events.ts'
import type { RemoteEventsOptions } from './index.ts'
import type { Line } from '../../upstream/line.ts'
import { readEvent, type Received } from '../../wire/server-event.ts'
import { requestOf, stamp } from './request.ts'

const OPEN_MS = 30_000
/** After this much silence the other side is pinged, and after twice as much it is given up. */
const SILENCE_MS = 30_000
const TOTAL_MS = 60 * 60_000
/** Characters of the whole answer, and of those that wait for the agent. */
const ANSWER = 256 * 1024 * 1024
const WAITING = 64 * 1024 * 1024
/** From here on the socket is not read, where the runtime can stop reading. */
const ENOUGH = 1024 * 1024
/** A uamp server takes no larger message before it knows the token. */
const STRANGER = 16 * 1024

type Pausable = SocketLike & { pause?(): void; resume?(): void }

/** Opens a line over WebSocket, with one session: UAMP events §13.1. */
export async function openSocket(options: RemoteEventsOptions, turn: Turn): Promise<Line> {
  const given = options.WebSocket ?? (globalThis as { WebSocket?: SocketConstructor }).WebSocket
  const WebSocket = given ?? (await import('../../client/node.ts')).NodeWebSocket
  const { create, input, respond } = requestOf(turn, options)
  const line = new SocketLine(new WebSocket(addressOf(options.url), []), { name: options.name, signal: turn.signal })
  try {
    await line.opened()
    if (JSON.stringify(create).length > STRANGER && options.token !== undefined) {
      line.tell({ ...stamp('session.update'), token: options.token })
    }
    line.tell(create)
    await line.answered()
    line.checkAdmitted()
    line.tell(input)
    line.tell(respond)
    return line
  } catch (thrown) {
    line.close()
    throw thrown
  }
}

function addressOf(url: string): string {
  const address = new URL(url)
  if (!/\/(ws|uamp)\/?$/.test(address.pathname)) address.pathname = `${address.pathname.replace(/\/+$/, '')}/ws`
  return address.href
}

class SocketLine implements Line {
  readonly #socket: Pausable
  readonly #name: string
  readonly #timers: ReturnType<typeof setInterval>[]
  readonly #leave: () => void
  readonly #signal: AbortSignal
  #isOpen = false
  #session: string | undefined
  /** The other side has opened the session, or refused to. */
  #isAnswered = false
  #received: ServerEvent[] = []
  #waiting = 0
  #total = 0
  #silent = 0
  #failure: Error | undefined
  #wake: () => void = () => undefined

  constructor(socket: Pausable, { name, signal }: { readonly name: string; readonly signal: AbortSignal }) {
    this.#socket = socket
    this.#name = name
    this.#signal = signal
    this.#leave = () => {
      this.#sayGoodbye()
      this.#fail(signal.reason as Error)
    }
    const unopened = (): void => void (this.#isAnswered || this.#fail(this.#late(`did not open a session within ${OPEN_MS} ms`)))
    this.#timers = [
      setInterval(() => this.#watch(), SILENCE_MS),
      setTimeout(unopened, OPEN_MS),
      setTimeout(() => this.#fail(this.#late(`did not come to an end within ${TOTAL_MS} ms`)), TOTAL_MS),
    ]
    signal.addEventListener('abort', this.#leave, { once: true })
    socket.addEventListener('open', () => {
      this.#isOpen = true
      this.#wake()
    })
    socket.addEventListener('message', ({ data }) => this.#take(data))
    // `close` follows, and says as much.
    socket.addEventListener('error', () => undefined)
    socket.addEventListener('close', ({ code, reason }) => this.#fail(this.#cut(code, reason)))
    if (signal.aborted) this.#leave()
  }

  opened(): Promise<void> {
    return this.#until(() => this.#isOpen)
  }

  answered(): Promise<void> {
    return this.#until(() => this.#isAnswered)
  }

  /** Throws if the other side did not believe the token: another one may be believed. */
  checkAdmitted(): void {
    const refused = this.#received.find((event) => event.type === 'session.error' && event.error.code === 'unauthorized')
    if (refused) throw this.#unauthorized()
  }

  async next(): Promise<readonly ServerEvent[]> {
    await this.#until(() => this.#received.length > 0)
    const events = this.#received
    this.#received = []
    this.#waiting = 0
    this.#socket.resume?.()
    return events
  }

  async #until(done: () => boolean): Promise<void> {
    while (!done()) {
      if (this.#failure !== undefined) throw this.#failure
      await new Promise<void>((resolve) => (this.#wake = resolve))
    }
  }

  send(event: object): Promise<void> {
    this.tell({ event_id: crypto.randomUUID(), ...event })
    return Promise.resolve()
  }

  tell(event: object): void {
    if (this.#failure !== undefined) return
    this.#socket.send(JSON.stringify(this.#session === undefined ? event : { ...event, session_id: this.#session }))
  }

  close(): void {
    this.#signal.removeEventListener('abort', this.#leave)
    for (const timer of this.#timers) clearTimeout(timer)
    this.#sayGoodbye()
    this.#failure ??= new UampError('cancelled', 'The line was closed')
    this.#socket.close(1000)
  }

  /** Ends the session, and with it a response that still runs. */
  #sayGoodbye(): void {
    if (this.#session !== undefined && this.#failure === undefined) this.tell(stamp('session.end'))
  }

  #take(data: unknown): void {
    if (typeof data !== 'string' || this.#failure !== undefined) return
    this.#silent = 0
    this.#total += data.length
    this.#waiting += data.length
    if (this.#total > ANSWER || this.#waiting > WAITING) return this.#fail(new UampError('provider_error', `"${this.#name}" sent too much`))
    if (this.#waiting > ENOUGH) this.#socket.pause?.()
    try {
      const event = readEvent(data)
      if (event) this.#hear(event)
    } catch (thrown) {
      this.#fail(UampError.from(thrown))
    }
    this.#wake()
  }

  #hear(event: Received): void {
    if (event.type === 'ping') return this.tell(stamp('pong'))
    if (event.type === 'session.created') this.#session ??= event.session_id ?? event.session.id
    this.#isAnswered ||= this.#session !== undefined || event.type === 'session.error' || event.type === 'response.error'
    this.#received.push(event)
  }

  #watch(): void {
    if (++this.#silent > 2) return this.#fail(this.#late(`fell silent for ${2 * SILENCE_MS} ms`))
    if (this.#isOpen) this.tell(stamp('ping'))
  }

  #fail(reason: Error): void {
    if (this.#failure !== undefined) return
    this.#failure = reason
    this.#wake()
    this.#socket.close()
  }

  #late(what: string): UampError {
    return new UampError('timeout', `The server of "${this.#name}" ${what}`)
  }

  #unauthorized(): UampError {
    const message = `The server of "${this.#name}" refused the credentials`
    return new UampError('provider_error', message, { details: { remote_code: 'unauthorized' } })
  }

  #cut(code: number, reason: string): UampError {
    if (code === 4401 || code === 1008) return this.#unauthorized()
    // A WebSocket does not say which: nobody there, a redirect, 401.
    if (!this.#isOpen) {
      const message = `The server of "${this.#name}" cannot be reached, or opens no WebSocket at this address`
      return new UampError('provider_error', message, { details: { close_code: code } })
    }
    const why = reason === '' ? '' : `: ${reason}`
    return new UampError('provider_error', `The answer of "${this.#name}" was cut off${why}`, { details: { close_code: code } })
  }
}
