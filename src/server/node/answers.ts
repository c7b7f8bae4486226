/** How answers go out: their headers, their streams, and refusals on connections that have no answer object. */
import { ServerResponse, STATUS_CODES } from 'node:http'
import type { IncomingMessage, OutgoingHttpHeader, OutgoingHttpHeaders } from 'node:http'
import type { Duplex, Writable } from 'node:stream'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Trace } from '../../core/ports/trace.ts'
import type { Frame, Logger, Streamed } from '../../core/ports/transport.ts'
import { UampError } from '../../protocol/errors.ts'
import type { Limits } from '../limits.ts'
import { Http2Answer } from './http2/answer.ts'
import type { Lingering } from './lingering.ts'
import { Progress } from './sweeper.ts'
import { isInAnswer } from './connections.ts'
import { utf8Write } from './frames.ts'
import { requestIdFrom } from '../trace.ts'
import type { Sweeper, Swept } from './sweeper.ts'

/**
 * After so many writes, or about so many bytes, the event loop gets a turn. A generator that never waits would starve the process, and
 * so would a large answer to a client that reads as fast as it is written.
 */
const WRITES_PER_TURN = 64
const BYTES_PER_TURN = 512 * 1024

/** An answer of HTTP/1.1 or HTTP/2. */
export type Answer = ServerResponse | Http2Answer

/** What an answer is written to: the connection, or the stream of HTTP/2. */
function lineOf(answer: Answer): Duplex | null {
  return answer instanceof Http2Answer ? answer.line : answer.socket
}

/** True if nobody waits for it any more. */
export function isGone(answer: Answer): boolean {
  return answer instanceof Http2Answer ? answer.line.destroyed : answer.destroyed
}

export interface StreamWriterOptions {
  readonly limits: Limits
  readonly sweeper: Sweeper
  readonly lingering: Lingering
  readonly log: Logger
  readonly trace: Trace
}

/**
 * Writes the frames of one answer to `node:http` or `node:http2` as they come, without a web stream and its copies. When the client leaves, it returns
 * the frames' iterator, so that every `finally` upstream runs.
 */
export class StreamWriter implements Swept {
  readonly #response: Answer
  readonly #iterator: AsyncIterator<Frame, Frame | void>
  readonly #options: StreamWriterOptions
  readonly #progress = new Progress()
  readonly #heartbeat: string | undefined
  readonly #failure: Streamed['failure']
  #quiet = true
  #quietSince = 0
  #gone = false
  #lingers = false
  #writes = 0
  #bytes = 0
  /** What is still to be written of a frame that is too large for one turn. */
  #rest: string[] = []
  #wake: (() => void) | undefined
  /** The frame that goes out in one piece with the end. */
  #last: Frame | undefined

  constructor(response: Answer, streamed: Streamed, options: StreamWriterOptions) {
    this.#response = response
    this.#iterator = streamed.frames[Symbol.asyncIterator]()
    this.#options = options
    this.#heartbeat = streamed.heartbeat
    this.#failure = streamed.failure
    response.once('close', () => this.#leave())
    response.writeHead(streamed.status, streamed.headers)
    // A reader of events must see at once that it is connected, even if nothing happens for an hour. Frames that are ready go with the
    // headers.
    const socket = lineOf(response)
    socket?.cork()
    if (response instanceof ServerResponse) response.flushHeaders()
    process.nextTick(() => socket?.uncork())
  }

  /** The reader was cut, and the last frame waits to be read. */
  get lingers(): boolean {
    return this.#lingers
  }

  /** Never rejects. */
  async run(): Promise<void> {
    const { sweeper, log, trace } = this.#options
    sweeper.add(this)
    try {
      if (isGone(this.#response)) this.#leave()
      while (await this.#writeNext());
      await this.#finish(this.#last)
    } catch (error) {
      log('error', 'A stream failed', { error, ...trace.fields })
      this.fail(UampError.from(error))
    } finally {
      this.#gone = true
      this.#rest = []
      sweeper.delete(this)
    }
  }

  /** A call of its own for each frame: a loop would keep the last frame alive while it waits for the next. */
  async #writeNext(): Promise<boolean> {
    if (this.#gone) return false
    const step = await this.#iterator.next()
    if (this.#gone) return false
    if (step.done) {
      if (step.value) this.#last = step.value
      return false
    }
    const content = contentOf(step.value)
    this.#quiet = false
    const wait = Array.isArray(content) ? this.#writeLarge(content, 0) : this.#hasRoom(this.#write(content))
    if (wait) await wait
    return true
  }

  /** Writes the pieces of a large frame but the last few, as the client reads them. */
  async #writeLarge(pieces: string[], left: number): Promise<void> {
    this.#rest = pieces
    while (!this.#gone && this.#rest.length > left) await this.#hasRoom(this.#write(this.#rest.shift() as string))
  }

  /** Undefined: more can be written at once. */
  #hasRoom(target: Writable): Promise<void> | undefined {
    if (target.writableLength > this.#options.limits.outboundBytes) return this.#drained(target)
    if (++this.#writes < WRITES_PER_TURN && this.#bytes < BYTES_PER_TURN) return undefined
    this.#writes = 0
    this.#bytes = 0
    return nextTurn()
  }

  async #finish(last: Frame | undefined): Promise<void> {
    if (last === undefined) return void this.#response.end()
    const content = contentOf(last)
    if (!Array.isArray(content)) return this.#endWith(content)
    await this.#writeLarge(content, 1)
    if (!this.#gone) this.#endWith('')
  }

  /** Ends the answer after pending writes. */
  end(): void {
    this.#leave()
    this.#writeRest()
    this.#response.end()
  }

  #writeRest(): void {
    for (const piece of this.#rest.splice(0)) this.#write(piece)
  }

  /** Sends the last frame and the end in one write, so that a client which stops at the last event can reuse the connection. */
  #endWith(frame: Frame): void {
    const socket = lineOf(this.#response)
    socket?.cork()
    try {
      this.#writeRest()
      for (const content of [contentOf(frame)].flat()) this.#write(content)
      this.#response.end()
    } finally {
      socket?.uncork()
    }
  }

  /** Ends the stream with the protocol's error, if it has one, after all pending frames: a mere end would look like a complete answer. */
  fail(error: UampError): void {
    const text = this.#gone ? undefined : this.#failure?.(error)
    if (text === undefined) {
      lineOf(this.#response)?.uncork()
      this.#response.destroy()
      return
    }
    this.#leave()
    this.#endWith(wholeOf(text))
  }

  sweep(now: number): void {
    const socket = lineOf(this.#response)
    if (socket && this.#progress.stalledFor(socket, now) >= this.#options.limits.stallMs) this.#cutOff()
    else if (this.#heartbeat !== undefined) this.#beat(now, this.#heartbeat)
  }

  /** Ends the stream with a reason behind the unread frames, in case the client comes back to read them. */
  #cutOff(): void {
    const text = this.#failure?.(new UampError('timeout', 'The stream was cut: it was read too slowly'))
    if (this.#gone || text === undefined) {
      this.#response.destroy()
      return
    }
    this.#leave()
    this.#endWith(wholeOf(text))
    this.#lingers = true
    const { lingering } = this.#options
    const lingerer = { bytes: lineOf(this.#response)?.writableLength ?? 0, cut: () => this.#response.destroy() }
    lingering.add(lingerer)
    this.#response.once('close', () => lingering.delete(lingerer))
  }

  #beat(now: number, text: string): void {
    // It would stand in the middle of a frame.
    if (this.#rest.length > 0) return
    if (!this.#quiet || this.#quietSince === 0) {
      this.#quiet = true
      this.#quietSince = now
    } else if (now - this.#quietSince >= this.#options.limits.heartbeatMs) {
      this.#quietSince = now
      this.#response.write(text)
    }
  }

  #leave(): void {
    if (this.#gone) return
    this.#gone = true
    this.#wake?.()
    const { log, trace } = this.#options
    this.#iterator.return?.().catch((error: unknown) => log('error', 'A stream failed to clean up', { error, ...trace.fields }))
  }

  /**
   * Writes a text as a chunk to the connection, in one write. `response.write` makes four of it, which costs
   * a fifth more if events come one by one. It still writes bytes, and answers that wait for the connection behind an earlier one.
   */
  #write(content: string | Uint8Array): Writable {
    this.#bytes += content.length
    if (this.#response instanceof Http2Answer) {
      if (content.length > 0) this.#response.write(content)
      return this.#response.line
    }
    const { socket, chunkedEncoding } = this.#response
    if (content.length === 0) return this.#response
    const framed = typeof content === 'string' && chunkedEncoding && socket !== null
    const target = framed ? socket : this.#response
    target.write(framed ? chunk(content) : content)
    return target
  }

  #drained(target: Writable): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = () => {
        target.off('drain', this.#wake ?? resolve)
        this.#wake = undefined
        resolve()
      }
      target.on('drain', this.#wake)
    })
  }
}

/** A failure is short: its frame is written in one piece. */
function wholeOf(frame: Frame): string | Uint8Array {
  const content = contentOf(frame)
  return Array.isArray(content) ? content.join('') : content
}

/** The content of a frame; in pieces if it is too large for one turn of the event loop. */
function contentOf(frame: Frame): string | string[] | Uint8Array {
  if (frame instanceof Uint8Array) return frame
  if (typeof frame === 'string') return frame.length > BYTES_PER_TURN ? piecesOf(frame) : frame
  let all = ''
  let pieces: string[] | undefined
  frame.eachText((text) => {
    if (text.length <= BYTES_PER_TURN) return void (all += text)
    // Joined, all of it would be copied once more.
    pieces = (pieces ?? []).concat(all === '' ? [] : all, piecesOf(text))
    all = ''
  })
  if (pieces === undefined) return all
  return all === '' ? pieces : pieces.concat(all)
}

function piecesOf(text: string): string[] {
  const pieces: string[] = []
  for (let at = 0; at < text.length; at += pieces.at(-1)?.length ?? 0) {
    const end = at + BYTES_PER_TURN
    pieces.push(text.slice(at, isPair(text, end) ? end + 1 : end))
  }
  return pieces
}

/** Whether a cut here would be in the middle of a surrogate pair, both halves of which would be lost. */
function isPair(text: string, at: number): boolean {
  return (text.charCodeAt(at - 1) & 0xfc00) === 0xd800 && (text.charCodeAt(at) & 0xfc00) === 0xdc00
}

/**
 * A chunk of the chunked coding (RFC 9112 §7.1). Bytes and not a string, because bytes that wait for a socket lie outside the heap,
 * where the collector need not copy them.
 */
function chunk(text: string): Buffer {
  const size = Buffer.byteLength(text)
  const head = `${size.toString(16)}\r\n`
  const bytes = Buffer.allocUnsafe(head.length + size + 2)
  utf8Write.call(bytes, head, 0)
  utf8Write.call(bytes, text, head.length)
  utf8Write.call(bytes, '\r\n', head.length + size)
  return bytes
}

/** Makes browsers believe the type of an answer, whatever its beginning looks like. */
const NOSNIFF = ['x-content-type-options', 'nosniff'] as const

/** The id of the request, by which its log lines are found. */
const REQUEST_ID = 'x-request-id'

type Headers = OutgoingHttpHeaders | OutgoingHttpHeader[]

/**
 * Adds both headers to every answer of our own server. It adds them with the other headers, because `setHeader` would cost six
 * microseconds: Node then takes the headers of an answer one by one.
 */
export class PlainResponse<R extends IncomingMessage = IncomingMessage> extends ServerResponse<R> {
  requestId: string | undefined

  override writeHead(status: number, reason?: string | Headers, headers?: Headers): this {
    const given = typeof reason === 'string' ? headers : reason
    const all = Array.isArray(given)
      ? [...given, ...NOSNIFF, REQUEST_ID, this.#id]
      : { [NOSNIFF[0]]: NOSNIFF[1], ...given, [REQUEST_ID]: this.#id }
    return typeof reason === 'string' ? super.writeHead(status, reason, all) : super.writeHead(status, all)
  }

  get #id(): string {
    return this.requestId ?? requestIdFrom(this.req.headers[REQUEST_ID] as string | undefined)
  }
}

/** Sets the id that the client is told. */
export function tellId(response: Answer, id: string): void {
  if (response instanceof PlainResponse || response instanceof Http2Answer) response.requestId = id
  else response.setHeader(REQUEST_ID, id)
}

/** The same for a response of a user's own server. */
export function withoutSniffing(response: ServerResponse): void {
  response.setHeader(...NOSNIFF)
}

/** Refuses a request that does not get to the app. */
export async function refuseRequest(response: Answer, refusal: Response): Promise<void> {
  const body = await refusal.text()
  const headers = Object.fromEntries(refusal.headers)
  if (response instanceof Http2Answer) response.writeHead(refusal.status, headers).end(body)
  else response.writeHead(refusal.status, headers).end(body)
}

/** Answers on a bare connection, which has no `ServerResponse`: before an upgrade, or if the request could not be parsed. */
export async function refuse(socket: Duplex, response: Response): Promise<void> {
  socket.on('error', () => socket.destroy())
  const body = await response.text()
  if (!socket.writable) return
  // Another answer began meanwhile.
  if (isInAnswer(socket)) {
    socket.destroy()
    return
  }
  const lines = [`HTTP/1.1 ${response.status} ${STATUS_CODES[response.status] ?? ''}`]
  for (const [name, value] of response.headers) if (name !== 'connection') lines.push(`${name}: ${value}`)
  lines.push(NOSNIFF.join(': '))
  if (!response.headers.has(REQUEST_ID)) lines.push(`${REQUEST_ID}: ${requestIdFrom(undefined)}`)
  lines.push(`content-length: ${Buffer.byteLength(body)}`, 'connection: close', '', body)
  socket.once('finish', () => socket.destroy())
  socket.end(lines.join('\r\n'))
}
