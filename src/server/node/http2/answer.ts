import type { OutgoingHttpHeaders } from 'node:http'
import { Http2ServerResponse, type ServerHttp2Stream } from 'node:http2'
import { requestIdFrom } from '../../trace.ts'
import { carrierOf, Line } from './line.ts'
import type { Http2Request } from './request.ts'

type Chunk = string | Uint8Array
type Callback = (error: Error) => void

/** Answers of HTTP/2 with the headers of all our answers, which are written at the pace of their readers. */
export class Http2Answer extends Http2ServerResponse<Http2Request> {
  readonly line: Line
  requestId: string | undefined

  constructor(stream: ServerHttp2Stream) {
    super(stream)
    this.line = new Line(stream, { carrier: carrierOf(stream), answer: this, finish: () => super.end() })
    // Whoever waits for room waits for that of the line.
    stream.removeAllListeners('drain')
    this.line.on('drain', () => this.emit('drain'))
  }

  override writeHead(status: number, reason?: string | OutgoingHttpHeaders, headers?: OutgoingHttpHeaders): this {
    const { connection, ...given } = (typeof reason === 'string' ? headers : reason) ?? {}
    const id = this.requestId ?? requestIdFrom(this.req.headers['x-request-id'] as string | undefined)
    super.writeHead(status, { 'x-content-type-options': 'nosniff', ...given, 'x-request-id': id })
    // HTTP/2 has no such header: it says the same of the connection, which ends after the answers that have begun (RFC 9113 §6.8).
    if (connection === 'close') this.line.carrier.session.close()
    return this
  }

  override write(chunk: Chunk, encoding?: BufferEncoding | Callback, done?: Callback): boolean {
    if (!this.headersSent) this.writeHead(this.statusCode)
    // To a HEAD there is no more than the headers, and Node has sent their end.
    if (this.stream.writableEnded) return true
    const then = typeof encoding === 'function' ? encoding : done
    const written = then && ((error?: Error | null) => then(error as Error))
    return typeof encoding === 'string' ? this.line.write(chunk, encoding, written) : this.line.write(chunk, written)
  }

  override end(chunk?: Chunk | (() => void), encoding?: BufferEncoding | (() => void), done?: () => void): this {
    const [body, then] = typeof chunk === 'function' ? [undefined, chunk] : [chunk, typeof encoding === 'function' ? encoding : done]
    if (then) this.stream.once('finish', then)
    if (body !== undefined && body.length > 0) {
      if (typeof encoding === 'string') this.write(body, encoding)
      else this.write(body)
    }
    if (this.line.bytesWritten > 0) this.line.end()
    else super.end()
    return this
  }

  override destroy(): this {
    this.line.destroy()
    return this
  }
}
