import { WebSocket } from 'ws'
import type { Answered } from './forms.ts'

/** A message as it came over the wire. */
export type Heard = { readonly [field: string]: any } // eslint-disable-line

export interface LineOptions {
  readonly path: string
  readonly headers?: Record<string, string>
  readonly protocols?: readonly string[]
}

/** A socket whose messages are JSON. */
export class Line {
  readonly heard: Heard[] = []
  readonly #socket: WebSocket
  #wake: (() => void) | undefined
  #gone = false

  private constructor(socket: WebSocket) {
    this.#socket = socket
    socket.on('message', (data: Buffer) => {
      this.heard.push(JSON.parse(data.toString()) as Heard)
      this.#wake?.()
    })
    socket.on('close', () => {
      this.#gone = true
      this.#wake?.()
    })
  }

  /** The socket, or how the upgrade was refused. */
  static open(url: string, { path, headers = {}, protocols = [] }: LineOptions): Promise<Line | Answered> {
    const socket = new WebSocket(url.replace('http', 'ws') + path, [...protocols], { headers, perMessageDeflate: false })
    const line = new Line(socket)
    return new Promise((resolve, reject) => {
      socket.once('open', () => resolve(line))
      socket.on('error', reject)
      socket.once('unexpected-response', (_, response) => {
        let text = ''
        const { statusCode: status = 0, headers: answered } = response
        response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
        response.on('end', () => resolve({ status, challenge: answered['www-authenticate'] ?? null, text }))
      })
    })
  }

  send(message: object): void {
    this.#socket.send(JSON.stringify(message))
  }

  /** The first that fits, also of those that came before. */
  async next(fits: (message: Heard) => boolean = () => true): Promise<Heard> {
    for (let at = 0; ;) {
      for (; at < this.heard.length; at++) if (fits(this.heard[at] as Heard)) return this.heard[at] as Heard
      if (this.#gone) throw new Error(`The socket was closed after ${JSON.stringify(this.heard)}`)
      await new Promise<void>((resolve) => (this.#wake = resolve))
    }
  }

  close(): void {
    this.#socket.terminate()
  }
}
