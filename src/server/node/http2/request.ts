import { Http2ServerRequest } from 'node:http2'
import { carrierOf, type Carrier } from './line.ts'

/** Requests of HTTP/2 that know their connection, which Node hides behind a proxy object for each request. */
export class Http2Request extends Http2ServerRequest {
  readonly carrier: Carrier

  constructor(...received: ConstructorParameters<typeof Http2ServerRequest>) {
    super(...received)
    this.carrier = carrierOf(received[0])
  }

  /** Names and values of the headers, without those that HTTP/1.1 has in its first line. */
  get fields(): readonly string[] {
    const { rawHeaders } = this
    const first = rawHeaders.findIndex((name, index) => index % 2 === 0 && !name.startsWith(':'))
    return first < 0 ? [] : rawHeaders.slice(first)
  }

  get headerBytes(): number {
    return this.rawHeaders.reduce((sum, text) => sum + text.length, 0)
  }

  override push(chunk: Buffer | null, encoding?: BufferEncoding): boolean {
    this.carrier.bodyBytes += chunk?.length ?? 0
    return super.push(chunk, encoding)
  }
}
