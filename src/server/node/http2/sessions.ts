import { createServer, type Http2Session, type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2'
import type { Duplex } from 'node:stream'
import { UampError } from '../../../protocol/errors.ts'
import { errorResponse } from '../../routes.ts'
import type { NodeApp } from '../app.ts'
import { refuseRequest } from '../answers.ts'
import { PIPELINED_BY_STRANGERS } from '../connections.ts'
import { Http2Answer } from './answer.ts'
import { Guard } from './guard.ts'
import { carry, type Carrier } from './line.ts'
import { Http2Request } from './request.ts'

/** Streams at once on a connection that has shown a valid token: fewer would be unusual (RFC 9113 §6.5.2). */
const STREAMS = 100
/** Headers beyond the limit that are still read, so that the answer can say so. With more, the stream is reset. */
const HEADERS_BEYOND = 32
/** What each header counts beside its text (RFC 9113 §6.5.2). */
const HEADER_OVERHEAD = 32

/** What Node tells of a stream. */
type Begun = [stream: ServerHttp2Stream, headers: IncomingHttpHeaders, flags: number, rawHeaders: readonly string[]]

export interface SessionsOptions {
  readonly monotonic: () => number
  /** Answers a request. */
  readonly handle: (request: Http2Request, answer: Http2Answer) => void
}

/** All connections of a server that speak HTTP/2. */
export class Sessions {
  readonly #app: NodeApp
  readonly #options: SessionsOptions
  readonly #guards = new Map<Carrier, Guard>()
  readonly #server
  #stopping = false

  constructor(app: NodeApp, options: SessionsOptions) {
    this.#app = app
    this.#options = options
    const { limits } = app
    this.#server = createServer({
      maxHeaderListPairs: limits.headerCount + HEADERS_BEYOND,
      maxSessionRejectedStreams: STREAMS,
      maxSessionInvalidFrames: STREAMS,
      settings: {
        enableConnectProtocol: true,
        maxConcurrentStreams: PIPELINED_BY_STRANGERS,
        maxHeaderListSize: limits.headerBytes + (limits.headerCount + HEADERS_BEYOND) * HEADER_OVERHEAD,
      },
    })
    // Not `request`: Node tells of a stream later than it comes, and would make a request of one that is gone meanwhile.
    this.#server.on('stream', (...[stream, headers, , rawHeaders]: Begun) => {
      if (stream.destroyed || !stream.session) return
      const request = new Http2Request(stream, headers, {}, rawHeaders)
      this.#take(request, new Http2Answer(stream))
    })
  }

  /** Speaks HTTP/2 on a connection from now on. */
  adopt(socket: Duplex): void {
    let session: Http2Session | undefined
    this.#server.once('session', (made) => (session = made as unknown as Http2Session))
    this.#server.emit('connection', socket)
    if (!session) return
    const carrier: Carrier = { socket, session, lines: new Set(), bodyBytes: 0 }
    carry(carrier)
    const { strangers, sweeper, limits } = this.#app
    const { monotonic } = this.#options
    const guard = new Guard(carrier, { limits, monotonic, strangers, late: (answer) => void refuseLate(answer) })
    this.#guards.set(carrier, guard)
    sweeper.add(guard)
    strangers.onEvict(socket, () => carrier.session.close())
    strangers.onKnown(socket, () => {
      if (!carrier.session.closed && !carrier.session.destroyed) carrier.session.settings({ maxConcurrentStreams: STREAMS })
    })
    // Why it ends is the client's business.
    socket.on('error', () => undefined)
    socket.once('close', () => {
      this.#guards.delete(carrier)
      sweeper.delete(guard)
    })
    if (this.#stopping) session.close()
  }

  /** Takes no more requests. Those that have begun are answered, and then the connections end (RFC 9113 §6.8). */
  stop(): void {
    this.#stopping = true
    for (const { session } of this.#guards.keys()) session.close()
  }

  cut(): void {
    for (const { session } of this.#guards.keys()) session.destroy()
  }

  #take(request: Http2Request, answer: Http2Answer): void {
    const { carrier } = request
    const { readers } = this.#app
    const { line } = answer
    // What the client says of the way here is not believed: it decides about links in answers.
    request.headers[':scheme'] = 'encrypted' in carrier.socket ? 'https' : 'http'
    this.#guards.get(carrier)?.watch(line, answer)
    readers.add(line)
    line.once('close', () => readers.delete(line))
    const { expect } = request.headers
    if (expect === '100-continue') answer.writeContinue()
    if (expect === undefined || expect === '100-continue') this.#options.handle(request, answer)
    else answer.writeHead(417).end()
  }
}

/** Answers a request that does not come to its end, and gives up what is missing of it. */
async function refuseLate(answer: Http2Answer): Promise<void> {
  await refuseRequest(answer, errorResponse(new UampError('timeout', 'The request took too long'), { status: 408 }))
  answer.stream.close()
}
