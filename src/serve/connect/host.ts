import { WebSocket } from 'ws'
import { Outbox } from './outbox.ts'

/** The most bytes of one message. The longest holds a whole conversation. */
const MESSAGE = 384 * 1024 * 1024
const OPEN_MS = 15_000
/** How long a ping, or any other sign of life, may take. */
const PONG_MS = 10_000
/** How long a host has to answer a close. */
const CLOSE_MS = 2_000
/** In place of what OpenSSL says, which has lines of its own. */
const NO_TLS = 'no TLS is spoken there; a host without it has an address with ws://'

export interface HostSocketOptions {
  readonly url: string
  readonly pingMs: number
  readonly newId: () => string
  readonly onOpen: () => void
  readonly onMessage: (text: string) => void
  /** Once, when the socket is gone or could not be opened. */
  readonly onClose: (why: Closing) => void
}

export interface Closing {
  readonly code: number
  readonly reason: string
  /** What the server answered instead of opening a socket. */
  readonly status?: number
}

/** One connection to a host. */
export class HostSocket {
  readonly outbox: Outbox
  readonly #ws: WebSocket
  readonly #options: HostSocketOptions
  readonly #timers: NodeJS.Timeout[] = []
  #heard = true
  #isOver = false

  constructor(options: HostSocketOptions) {
    const { url, pingMs, newId, onOpen, onMessage } = options
    this.#options = options
    const ws = new WebSocket(url, { maxPayload: MESSAGE, perMessageDeflate: false, handshakeTimeout: OPEN_MS, followRedirects: false })
    this.#ws = ws
    this.outbox = new Outbox({
      get isOpen() {
        return ws.readyState === WebSocket.OPEN
      },
      send: (text, sent) => ws.send(text, sent),
    })
    ws.on('open', () => {
      this.#timers.push(setInterval(() => this.#ping(newId()), pingMs))
      onOpen()
    })
    ws.on('message', (data, isBinary) => {
      this.#heard = true
      // A Buffer, because `binaryType` has its default.
      if (!isBinary && !this.#isOver) onMessage((data as Buffer).toString())
    })
    ws.on('ping', () => (this.#heard = true))
    let failure = ''
    // A name with several addresses fails without a message.
    ws.on('error', (error: NodeJS.ErrnoException) => (failure = error.code === 'EPROTO' ? NO_TLS : error.message || (error.code ?? '')))
    ws.on('close', (code, reason) => {
      const [, status] = /^Unexpected server response: (\d+)$/.exec(failure) ?? []
      this.#over({ code, reason: reason.toString() || failure, ...(status !== undefined && { status: Number(status) }) })
    })
  }

  get isOpen(): boolean {
    return this.#ws.readyState === WebSocket.OPEN
  }

  /** Writes one event now, after all that waits. */
  tell(event: object): void {
    this.outbox.flush()
    if (this.isOpen) this.#ws.send(JSON.stringify(event))
  }

  /** A host that does not answer in time is dead, though the socket does not know. */
  #ping(event_id: string): void {
    this.#heard = false
    this.tell({ type: 'ping', event_id })
    this.#timers.push(
      setTimeout(() => {
        if (!this.#heard) this.#ws.terminate()
      }, PONG_MS),
    )
    if (this.#timers.length > 2) this.#timers.splice(1, this.#timers.length - 2)
  }

  async close(): Promise<void> {
    if (this.#isOver) return
    this.outbox.flush()
    await new Promise<void>((resolve) => {
      const late = setTimeout(() => this.#ws.terminate(), CLOSE_MS)
      this.#ws.once('close', () => {
        clearTimeout(late)
        resolve()
      })
      this.#ws.close(1000)
    })
  }

  cut(): void {
    this.#ws.terminate()
  }

  #over(why: Closing): void {
    if (this.#isOver) return
    this.#isOver = true
    for (const timer of this.#timers) clearTimeout(timer)
    this.outbox.close()
    this.#options.onClose(why)
  }
}
