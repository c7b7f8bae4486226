import type { Http2Session, ServerHttp2Stream } from 'node:http2'
import { Duplex } from 'node:stream'

/** The most that is handed to HTTP/2 at once. Node says when all of a write has been taken, and nothing before. */
const PIECE_BYTES = 16 * 1024

/** A connection that speaks HTTP/2, and what goes over it now. */
export interface Carrier {
  /** The connection, whose address and certificate are those of the caller. */
  readonly socket: Duplex
  readonly session: Http2Session
  /** The oldest first. */
  readonly lines: Set<Line>
  /** The streams have brought so many bytes of bodies and messages. */
  bodyBytes: number
}

/** Node makes requests and answers itself, and gives them no more than their stream. */
const carriers = new WeakMap<Http2Session, Carrier>()

/** The connection carries streams from now on. */
export function carry(carrier: Carrier): void {
  carriers.set(carrier.session, carrier)
}

/** The connection of a stream that is open. */
export function carrierOf({ session }: ServerHttp2Stream): Carrier {
  const carrier = session && carriers.get(session)
  if (!carrier) throw new Error('The stream has no connection')
  return carrier
}

/**
 * One stream of HTTP/2, as if it were a connection of its own: what reads and writes HTTP/1.1 and WebSockets on a socket does so on
 * this, with the same bounds. It writes in small pieces, so that whoever looks sees whether the client takes anything: a client that
 * takes less than one piece in `stallMs`, such as one that opens its window byte by byte, counts as one that does not read.
 */
export class Line extends Duplex {
  readonly carrier: Carrier
  /** The answer that is written on it. */
  readonly answer: object
  readonly #stream: ServerHttp2Stream
  readonly #finish: () => void
  /** True if it is also read. */
  isOpen = false
  /** Bytes of the current write that the client has not made room for. */
  untaken = 0
  #taken = 0

  constructor(stream: ServerHttp2Stream, of: { readonly carrier: Carrier; readonly answer: object; readonly finish: () => void }) {
    super()
    this.#stream = stream
    this.carrier = of.carrier
    this.answer = of.answer
    this.#finish = of.finish
    this.carrier.lines.add(this)
    stream.once('close', () => {
      this.carrier.lines.delete(this)
      this.destroy()
    })
    // Its end, and that of its stream, say the same.
    this.on('error', () => undefined)
  }

  /** As `bytesWritten` of a socket, which counts what still waits. */
  get bytesWritten(): number {
    return this.#taken + this.writableLength
  }

  /** Bytes that wait on other streams of the connection; undefined if an older stream counts them. */
  get bytesBeside(): number | undefined {
    let bytes = 0
    let first: Line | undefined
    for (const line of this.carrier.lines) {
      first ??= line
      if (first !== this) return undefined
      if (line !== this) bytes += line.writableLength
    }
    return bytes
  }

  /** From now on it is also read, as the connection of a WebSocket is. */
  open(): void {
    this.isOpen = true
    this.#stream.on('data', (chunk: Buffer) => {
      this.carrier.bodyBytes += chunk.length
      if (!this.push(chunk)) this.#stream.pause()
    })
    this.#stream.once('end', () => this.push(null))
  }

  override _read(): void {
    if (this.#stream.isPaused()) this.#stream.resume()
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#send(chunk, 0, done)
  }

  override _writev(chunks: { readonly chunk: Buffer }[], done: (error?: Error | null) => void): void {
    this.#send(Buffer.concat(chunks.map(({ chunk }) => chunk)), 0, done)
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#finish()
    done()
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.untaken = 0
    // Not the usual code, which says that all is well: what the client has is not the whole.
    if (!this.writableFinished || error) this.#stream.close(CANCEL)
    else if (!this.#stream.closed) this.#stream.close()
    done(error)
  }

  #send(bytes: Buffer, at: number, done: (error?: Error | null) => void): void {
    const piece = bytes.length <= PIECE_BYTES ? bytes : bytes.subarray(at, at + PIECE_BYTES)
    const next = at + piece.length
    this.untaken = bytes.length - at
    this.#stream.write(piece, (error) => {
      this.#taken += piece.length
      if (!error && next < bytes.length) return this.#send(bytes, next, done)
      this.untaken = 0
      done(error)
    })
  }
}

/** RFC 9113 §7. */
const CANCEL = 0x8
