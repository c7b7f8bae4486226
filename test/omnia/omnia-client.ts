import { onTestFinished } from 'vitest'
import type { WebSocket } from 'ws'
import { dial } from '../support/dial.ts'

/** A server message as it came over the wire. */
export type Heard = { readonly type: string; readonly [field: string]: any } // eslint-disable-line

/** A binary frame as it came over the wire. */
export interface HeardFrame {
  readonly type: 'binary'
  readonly bytes: Buffer
  readonly flags: number
  readonly kind: number
  readonly sequence: number
  readonly mediaId: string
  readonly meta: Record<string, unknown>
  readonly payload: Buffer
}

export interface ClientOptions {
  readonly path?: string
  readonly headers?: Record<string, string>
}

/** What a client says of its sound. */
export const SOUND = { mime_type: 'audio/pcm', codec: 'pcm', sample_rate: 24_000, channels: 1 }

export const flags = { compressed: 1, chunked: 2, last: 4 }

export interface FrameParts {
  readonly flags?: number
  readonly kind?: number
  readonly sequence?: number
  readonly meta?: object
  readonly payload?: Uint8Array
}

/** A binary frame, byte by byte as Omnia describes it. */
export function frame({ flags: bits = 0, kind = 1, sequence = 0, meta = SOUND, payload = new Uint8Array() }: FrameParts = {}): Buffer {
  const json = Buffer.from(JSON.stringify(meta))
  const header = Buffer.alloc(32)
  header.write('OMNI', 0, 'latin1')
  header.writeUInt8(1, 4)
  header.writeUInt8(bits, 5)
  header.writeUInt16BE(kind, 6)
  header.writeUInt32BE(json.length, 8)
  header.writeUInt32BE(payload.length, 12)
  header.writeUInt32BE(sequence, 16)
  return Buffer.concat([header, json, payload])
}

function read(bytes: Buffer): HeardFrame {
  const metaEnd = 32 + bytes.readUInt32BE(8)
  return {
    type: 'binary',
    bytes,
    flags: bytes.readUInt8(5),
    kind: bytes.readUInt16BE(6),
    sequence: bytes.readUInt32BE(16),
    mediaId: bytes.toString('latin1', 20, 32).replace(/\0+$/, ''),
    meta: JSON.parse(bytes.toString('utf8', 32, metaEnd)) as Record<string, unknown>,
    payload: bytes.subarray(metaEnd, metaEnd + bytes.readUInt32BE(12)),
  }
}

/** An Omnia client as plain as it can be. */
export class OmniaClient {
  /** Everything that came, in order. */
  readonly heard: (Heard | HeardFrame)[] = []
  readonly socket: WebSocket
  readonly closed: Promise<{ code: number; reason: string }>
  /** The session that the server named last. */
  sessionId = ''
  #cursor = 0
  #gone: string | undefined
  #wake: () => void = () => undefined

  static async open(url: string, { path = '/omnia?agent=demo', headers = {} }: ClientOptions = {}): Promise<OmniaClient> {
    const client = new OmniaClient(dial.webSocket(url + path, headers))
    await client.next('connected')
    return client
  }

  constructor(socket: WebSocket) {
    this.socket = socket
    onTestFinished(() => socket.terminate())
    socket.on('message', (data: Buffer, isBinary) => {
      const message = isBinary ? read(data) : (JSON.parse(data.toString()) as Heard)
      if (message.type === 'connected') this.sessionId = (message as Heard)['session_id'] as string
      this.heard.push(message)
      this.#wake()
    })
    socket.on('error', (error) => {
      this.#gone ??= error.message
      this.#wake()
    })
    this.closed = new Promise((resolve) =>
      socket.once('close', (code, reason) => {
        this.#gone ??= `${code} ${reason.toString()}`
        this.#wake()
        resolve({ code, reason: reason.toString() })
      }),
    )
  }

  /** The next message of that type, after those that were asked for before. */
  async next(type: string): Promise<Heard> {
    for (;;) {
      while (this.#cursor < this.heard.length) {
        const message = this.heard[this.#cursor++] as Heard
        if (message.type === type) return message
        if (message.type === 'error' && type !== 'error') throw new Error(`an error came: ${JSON.stringify(message)}`)
      }
      if (this.#gone !== undefined) throw new Error(`closed: ${this.#gone}`)
      await new Promise<void>((resolve) => (this.#wake = resolve))
    }
  }

  send(message: object | string | Uint8Array): void {
    this.socket.send(typeof message === 'string' || message instanceof Uint8Array ? message : JSON.stringify(message))
  }

  /** Sends, and waits for the next message of that type. */
  ask(message: object | string | Uint8Array, type: string): Promise<Heard> {
    this.send(message)
    return this.next(type)
  }

  /** Says something in the session, and gives everything up to the end of the answer. */
  async say(content: string, more: object = {}): Promise<Heard[]> {
    const from = this.heard.length
    await this.ask({ type: 'message', session_id: this.sessionId, content, ...more }, 'done')
    return this.heard.slice(from, this.#cursor) as Heard[]
  }

  /** Sends what is wrong, and gives the error. Everything goes on after it. */
  async fails(message: object | string | Uint8Array): Promise<Heard['error']> {
    return (await this.ask(message, 'error'))['error']
  }
}

export const typesOf = (messages: readonly { readonly type: string }[]): string[] => messages.map(({ type }) => type)
