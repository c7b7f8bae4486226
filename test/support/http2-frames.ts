/** HTTP/2 byte by byte (RFC 9113), for clients that do what no library does. */
import { once } from 'node:events'
import { connect, type TLSSocket } from 'node:tls'
import { onTestFinished } from 'vitest'

export const TYPE = { data: 0, headers: 1, priority: 2, reset: 3, settings: 4, ping: 6, goaway: 7, window: 8, continuation: 9 } as const
export const END_STREAM = 1
export const END_HEADERS = 4
const ACK = 1

export interface Frame {
  readonly type: number
  readonly flags?: number
  readonly stream?: number
  readonly body?: Buffer
}

function frame({ type, flags = 0, stream = 0, body = Buffer.alloc(0) }: Frame): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(body.length, 0, 3)
  head[3] = type
  head[4] = flags
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, body])
}

/** Headers as literals that nobody keeps (RFC 7541 §6.2.2). */
export function fields(headers: readonly (readonly [string, string])[]): Buffer {
  return Buffer.concat(headers.flatMap(([name, value]) => [Buffer.from([0]), text(name), text(value)]))
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value)
  if (bytes.length < 127) return Buffer.concat([Buffer.from([bytes.length]), bytes])
  const length: number[] = [127]
  let rest = bytes.length - 127
  for (; rest >= 128; rest = Math.floor(rest / 128)) length.push((rest % 128) + 128)
  return Buffer.concat([Buffer.from([...length, rest]), bytes])
}

export function number(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}

export function setting(id: number, value: number): Buffer {
  return Buffer.concat([Buffer.from([0, id]), number(value)])
}

export const INITIAL_WINDOW = 4

/** A connection that says whatever it is told to. */
export class RawHttp2 {
  readonly socket: TLSSocket
  readonly heard: Required<Frame>[] = []
  #rest = Buffer.alloc(0)
  #stream = -1

  static async open(port: number, settings: Buffer = Buffer.alloc(0)): Promise<RawHttp2> {
    const socket = connect({ port, host: '127.0.0.1', servername: 'localhost', ALPNProtocols: ['h2'], rejectUnauthorized: false })
    onTestFinished(() => void socket.destroy())
    await once(socket, 'secureConnect')
    const raw = new RawHttp2(socket)
    socket.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
    raw.send({ type: TYPE.settings, body: settings })
    // Nothing may come between the parts of headers, so the settings are acknowledged before.
    while (!raw.heard.some(({ type, flags }) => type === TYPE.settings && flags === ACK)) await once(socket, 'data')
    return raw
  }

  constructor(socket: TLSSocket) {
    this.socket = socket
    socket.on('error', () => undefined)
    socket.on('data', (chunk: Buffer) => this.#take(chunk))
  }

  get isOpen(): boolean {
    return !this.socket.destroyed && !this.socket.readableEnded
  }

  send(...frames: Frame[]): boolean {
    return this.socket.write(Buffer.concat(frames.map(frame)))
  }

  /** The frames of a request, and the number of its stream. */
  request(path: string, { method = 'GET', headers = [] as readonly (readonly [string, string])[], flags = END_STREAM | END_HEADERS } = {}) {
    const stream = (this.#stream += 2)
    const first = [[':method', method], [':scheme', 'https'], [':authority', 'localhost'], [':path', path]] as const // prettier-ignore
    return { stream, frame: { type: TYPE.headers, flags, stream, body: fields([...first, ...headers]) } }
  }

  ask(path: string, options?: Parameters<RawHttp2['request']>[1]): number {
    const { stream, frame: asked } = this.request(path, options)
    this.send(asked)
    return stream
  }

  /** The bytes of a stream so far. */
  bytesOf(stream: number): number {
    return this.heard.filter((each) => each.type === TYPE.data && each.stream === stream).reduce((sum, { body }) => sum + body.length, 0)
  }

  has(type: number, stream: number): boolean {
    return this.heard.some((each) => each.type === type && each.stream === stream)
  }

  /** Why the other side goes; undefined if it does not. */
  get goodbye(): number | undefined {
    return this.heard.findLast(({ type }) => type === TYPE.goaway)?.body.readUInt32BE(4)
  }

  #take(chunk: Buffer): void {
    this.#rest = Buffer.concat([this.#rest, chunk])
    while (this.#rest.length >= 9) {
      const length = this.#rest.readUIntBE(0, 3)
      if (this.#rest.length < 9 + length) return
      const [type = 0, flags = 0] = this.#rest.subarray(3, 5)
      this.heard.push({ type, flags, stream: this.#rest.readUInt32BE(5), body: this.#rest.subarray(9, 9 + length) })
      this.#rest = this.#rest.subarray(9 + length)
      if (type === TYPE.settings && flags === 0) this.send({ type: TYPE.settings, flags: ACK })
    }
  }
}
