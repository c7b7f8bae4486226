import { setMaxListeners } from 'node:events'
import type { Duplex } from 'node:stream'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { WebSocket } from 'ws'
import type { Hold } from '../../core/ports/session.ts'
import type { Quota, Socket, Texts } from '../../core/ports/transport.ts'
import { COUNTED_BYTES } from '../bodies.ts'
import type { Limits } from '../limits.ts'
import type { Bounds, Connection } from '../upgrade.ts'
import { mixedFrames, textFrames } from './frames.ts'
import type { Lingerer, Lingering } from './lingering.ts'
import { Pace, Progress, Taking } from './sweeper.ts'
import type { Swept } from './sweeper.ts'

type Message = string | Uint8Array

/** The most messages and bytes that wait for the transport before the server stops reading. */
const INBOX = 64
const INBOX_BYTES = 256 * 1024
/** After so many sends the event loop gets a turn, so that a writer that never waits cannot starve the process. */
const SENDS_PER_TURN = 64
/** A peer that sends too much is told so at most this often. */
const FLOOD_MS = 1000

/** How long a cut peer has to end its side. */
const CUT_MS = 1_000
const UNAUTHORIZED = 4401
const TRY_LATER = 1013

const OPEN = 1
const DONE = Promise.resolve({ done: true, value: undefined } as const)
const SENT = Promise.resolve()

export interface NodeSocketOptions {
  readonly limits: Limits
  readonly lingering: Lingering
  readonly monotonic: () => number
  readonly onClose: (socket: NodeSocket) => void
}

/** What a peer without a token may still send. */
interface Restricted extends Bounds {
  messagesLeft: number
  bytesLeft: number
}

const NO_TOKEN = (messages: number): string => `No valid token in ${messages === 3 ? 'three' : messages} messages`

/** A WebSocket of `ws` as the port wants it. The library reads, and writes control frames; this class writes text frames. */
export class NodeSocket implements Connection, Swept {
  readonly #ws: WebSocket
  readonly #socket: Duplex
  readonly #options: NodeSocketOptions
  #inbox: Message[] = []
  #taken = 0
  #inboxBytes = 0
  /** Bytes since the last whole message. */
  #unfinished = 0
  #openHold: (() => Hold) | undefined
  #hold: Hold | undefined
  /** Counts bytes that the peer has not read. */
  #unread: Hold | undefined
  #taking: Taking | undefined
  #pace: Pace | undefined
  #reader: ((result: IteratorResult<Message, undefined>) => void) | undefined
  #ended = false
  #full = false
  #restricted: Restricted | undefined
  #throttle: NodeJS.Timeout | undefined
  #tokens: number
  #refilledAt: number
  onFlood: Socket['onFlood']
  #floodedAt = -Infinity
  #sends = 0
  #drained: Promise<void> | undefined
  #drain: (() => void) | undefined
  #progress: Progress | undefined
  #heard = true
  #heardAt = 0
  #pingedAt: number | undefined
  /** The data of the peer's last ping, until it is answered. */
  #ping: Buffer | undefined
  #abort: AbortController | undefined
  #lingerer: Lingerer | undefined

  constructor(ws: WebSocket, socket: Duplex, options: NodeSocketOptions) {
    this.#ws = ws
    this.#socket = socket
    this.#options = options
    this.#tokens = options.limits.messageBurst
    this.#refilledAt = options.monotonic()
    // A Buffer, because `binaryType` has its default.
    ws.on('message', (data, isBinary) => this.#receive(data as Buffer, isBinary))
    ws.on('ping', (data) => this.#pong(data))
    ws.on('pong', () => (this.#heard = true))
    // A protocol error: the library closes with a code of its own, and `close` follows.
    ws.on('error', () => this.#restricted && this.#cutSoon())
    ws.on('close', () => {
      this.#end()
      this.#hold?.close()
      this.#unread?.close()
      if (this.#lingerer) options.lingering.delete(this.#lingerer)
      options.onClose(this)
    })
  }

  get signal(): AbortSignal {
    if (!this.#abort) {
      this.#abort = new AbortController()
      // Each answer on a socket listens. The transport bounds their number; Node would warn at eleven.
      setMaxListeners(0, this.#abort.signal)
    }
    if (this.#ended) this.#abort.abort()
    return this.#abort.signal
  }

  [Symbol.asyncIterator](): AsyncIterator<Message, undefined> {
    // Leaving a loop neither closes the socket nor loses a message: the next loop continues.
    return { next: () => this.#next() }
  }

  send(frames: readonly Message[] | Texts): Promise<void> {
    if (this.#ws.readyState !== OPEN) return SENT
    const bytes = 'eachText' in frames ? textFrames(frames) : mixedFrames(frames)
    if (bytes.length === 0) return SENT
    // `ws.send` would cost a call, a header buffer and a write per frame. Nothing can come between, as frames are never fragmented.
    this.#socket.write(bytes)
    if (this.#socket.writableLength > this.#options.limits.outboundBytes) return this.#untilDrained()
    return ++this.#sends % SENDS_PER_TURN === 0 ? nextTurn() : SENT
  }

  close(code = 1000, reason = ''): void {
    if (this.#ended) return
    this.#inbox = []
    this.#taken = 0
    this.#end()
    // A paused socket would never read the peer's answer.
    this.#ws.resume()
    let said = reason.slice(0, 123)
    while (Buffer.byteLength(said) > 123) said = said.slice(0, -1)
    this.#ws.close(code, said)
  }

  cut(code: number, reason: string): void {
    this.close(code, reason)
    this.#cutSoon()
  }

  /** Ends the socket without waiting for a full close, and discards what the peer still sends. */
  #cutSoon(): void {
    this.#socket.removeAllListeners('data')
    this.#socket.resume()
    this.#socket.end()
    setTimeout(() => this.#ws.terminate(), CUT_MS).unref()
  }

  restrict(bounds: Bounds): () => void {
    const restricted: Restricted = { ...bounds, messagesLeft: bounds.messages, bytesLeft: bounds.messageBytes * (bounds.messages + 1) }
    const count = (chunk: Buffer): void => {
      restricted.bytesLeft -= chunk.length
      // While the transport handles a message, it may accept a token. The rest waits until then.
      if (!this.#reader) this.#ws.pause()
      else if (this.#isTooMuch(restricted)) this.#refuseLarge(bounds)
    }
    this.#restricted = restricted
    this.#socket.on('data', count)
    return () => {
      this.#restricted = undefined
      this.#socket.off('data', count)
      this.#resume()
    }
  }

  /** Includes a message that has only begun, because its parts are kept in memory. */
  #isTooMuch({ bytesLeft, messageBytes }: Restricted): boolean {
    return bytesLeft < 0 || announced(this.#ws) > messageBytes
  }

  count(open: () => Hold): void {
    this.#openHold = open
    // Runs before the library's listener, so that the chunk that completes a message does not count.
    this.#socket.prependListener('data', (chunk: Buffer) => {
      this.#unfinished += chunk.length
      this.#weigh()
    })
  }

  #weigh(): void {
    const bytes = this.#unfinished + this.#inboxBytes
    if (bytes <= COUNTED_BYTES) {
      this.#hold?.close()
      this.#hold = this.#pace = undefined
      return
    }
    try {
      this.#hold ??= this.#openHold?.()
      this.#hold?.grow(bytes)
    } catch {
      this.cut(TRY_LATER, 'Too much is on its way: try again later')
    }
  }

  /** Counts unread bytes, because all sessions of a socket may write before they have to wait. */
  #weighUnread(): void {
    const bytes = this.#socket.writableLength
    if (bytes <= COUNTED_BYTES) {
      this.#unread?.close()
      this.#unread = undefined
      return
    }
    this.#unread ??= this.#openHold?.()
    try {
      // One answer may be large and come in one piece. A client that reads it gets all of it.
      if ((this.#taking ??= new Taking()).since(this.#socket)) this.#unread?.set(bytes)
      else this.#unread?.grow(bytes)
    } catch {
      this.cut(TRY_LATER, 'Too much waits to be read: try again later')
    }
  }

  #refuseLarge({ messageBytes }: Bounds): void {
    this.cut(UNAUTHORIZED, `A message before the token may have at most ${messageBytes} bytes`)
  }

  /** True if a peer without a token may continue, with the next message if there is one. */
  #allows(restricted: Restricted, next: Message | undefined): boolean {
    if (restricted.messagesLeft === 0) this.cut(UNAUTHORIZED, NO_TOKEN(restricted.messages))
    else if (next === undefined ? this.#isTooMuch(restricted) : Buffer.byteLength(next) > restricted.messageBytes)
      this.#refuseLarge(restricted)
    else if (next !== undefined) restricted.messagesLeft--
    return !this.#ended
  }

  terminate(): void {
    this.#ws.terminate()
  }

  /**
   * Pings a silent peer, and cuts one that does not answer. Cuts a peer that reads nothing of the bytes that wait for it; while there are
   * any, it is not pinged, because the ping would wait behind them.
   */
  sweep(now: number): void {
    const { pingIntervalMs, pongTimeoutMs, stallMs } = this.#options.limits
    if (!this.#ended) this.#weighUnread()
    if (this.#unfinished <= COUNTED_BYTES || this.#ws.isPaused) this.#pace = undefined
    else if ((this.#pace ??= new Pace()).slowFor(this.#unfinished, now) >= stallMs) this.cut(TRY_LATER, 'Sending too slowly')
    if (this.#socket.writableLength > 0) {
      if ((this.#progress ??= new Progress()).stalledFor(this.#socket, now) >= stallMs) this.#cutOff()
      return
    }
    this.#progress = undefined
    if (this.#heard || this.#ws.isPaused) {
      this.#heard = false
      this.#heardAt = now
      this.#pingedAt = undefined
    } else if (this.#pingedAt !== undefined) {
      if (now - this.#pingedAt >= pongTimeoutMs) this.#ws.terminate()
    } else if (now - this.#heardAt >= pingIntervalMs && this.#ws.readyState === OPEN) {
      this.#pingedAt = now
      this.#ws.ping()
    }
  }

  /** The close waits behind unread bytes, for longer than the library would wait for the peer's answer. */
  #cutOff(): void {
    if (this.#ended) return
    const { lingering } = this.#options
    ;(this.#ws as { _closeTimeout?: number })._closeTimeout = lingering.lingerMs
    this.close(TRY_LATER, 'Reading too slowly')
    this.#lingerer = { bytes: this.#socket.writableLength, cut: () => this.#ws.terminate() }
    lingering.add(this.#lingerer)
  }

  /**
   * Answers pings instead of the library: a peer that sends pings and reads nothing would fill the memory with pongs. Of pings that come
   * together only the last is answered (RFC 6455 §5.5.3), because thousands of pongs would delay other clients.
   */
  #pong(data: Buffer): void {
    this.#heard = true
    if (--this.#tokens <= 0) this.#slowDown()
    if (this.#ping === undefined) queueMicrotask(() => this.#answerPing())
    this.#ping = data
  }

  #answerPing(): void {
    const ping = this.#ping
    this.#ping = undefined
    if (this.#ws.readyState === OPEN && this.#socket.writableLength <= this.#options.limits.outboundBytes) this.#ws.pong(ping)
  }

  #receive(data: Buffer, isBinary: boolean): void {
    this.#heard = true
    this.#unfinished = 0
    if (this.#ended) return
    const message = isBinary ? new Uint8Array(data.buffer, data.byteOffset, data.byteLength) : data.toString()
    if (--this.#tokens <= 0) this.#slowDown()
    if (this.#reader) {
      if (this.#restricted && !this.#allows(this.#restricted, message)) return
      const resolve = this.#reader
      this.#reader = undefined
      if (this.#hold) this.#weigh()
      resolve({ done: false, value: message })
      return
    }
    this.#inbox.push(message)
    this.#inboxBytes += data.byteLength
    if (this.#hold) this.#weigh()
    if (this.#inbox.length - this.#taken >= INBOX || this.#inboxBytes >= INBOX_BYTES) {
      this.#full = true
      this.#ws.pause()
    }
  }

  #next(): Promise<IteratorResult<Message, undefined>> {
    const value = this.#inbox[this.#taken]
    if (this.#restricted && !this.#ended) {
      if (!this.#allows(this.#restricted, value)) return DONE
      if (value === undefined) this.#resume()
    }
    if (value === undefined) return this.#ended ? DONE : new Promise((resolve) => (this.#reader = resolve))
    this.#taken++
    if (this.#taken === this.#inbox.length) {
      this.#inbox = []
      this.#taken = 0
      this.#inboxBytes = 0
      if (this.#hold) this.#weigh()
      this.#full = false
      this.#resume()
    }
    return Promise.resolve({ done: false, value })
  }

  get quota(): Quota {
    const { messageBurst: limit, messagesPerSecond } = this.#options.limits
    this.#refill()
    const resetMs = Math.ceil(((limit - this.#tokens) / messagesPerSecond) * 1000)
    return { limit, remaining: Math.max(0, Math.floor(this.#tokens)), resetMs }
  }

  #refill(): void {
    const { limits, monotonic } = this.#options
    const at = monotonic()
    this.#tokens = Math.min(limits.messageBurst, this.#tokens + ((at - this.#refilledAt) / 1000) * limits.messagesPerSecond)
    this.#refilledAt = at
  }

  /** Called only when the burst seems used up, because it reads the clock. */
  #slowDown(): void {
    const { limits } = this.#options
    this.#refill()
    if (this.#tokens >= 1 || this.#throttle) return
    this.#ws.pause()
    if (this.#refilledAt - this.#floodedAt >= FLOOD_MS) {
      this.#floodedAt = this.#refilledAt
      this.onFlood?.(this.quota)
    }
    const waitMs = Math.max(10, ((1 - this.#tokens) / limits.messagesPerSecond) * 1000)
    this.#throttle = setTimeout(() => {
      this.#throttle = undefined
      this.#resume()
    }, waitMs).unref()
  }

  #resume(): void {
    if (!this.#full && !this.#throttle && this.#ws.isPaused) this.#ws.resume()
  }

  #untilDrained(): Promise<void> {
    return (this.#drained ??= new Promise((resolve) => {
      this.#drain = () => {
        this.#socket.off('drain', this.#drain ?? resolve)
        this.#drained = this.#drain = undefined
        resolve()
      }
      this.#socket.on('drain', this.#drain)
    }))
  }

  #end(): void {
    if (this.#ended) return
    this.#ended = true
    clearTimeout(this.#throttle)
    this.#throttle = undefined
    this.#drain?.()
    this.#reader?.({ done: true, value: undefined })
    this.#abort?.abort()
  }
}

/** The size of the unfinished message, as its frame headers announce it. The library has no public field for it. */
function announced(ws: WebSocket): number {
  return (ws as { _receiver?: { _totalPayloadLength?: number } })._receiver?._totalPayloadLength ?? 0
}
