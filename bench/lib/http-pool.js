// @ts-check
import { connect } from 'node:net'

/** A few keep-alive connections for posting events; requests wait for a free one. */
export class HttpPool {
  #port
  #free
  /** @type {((connection: Connection) => void)[]} */
  #waiting = []

  /** @param {{ port: number, size: number }} options */
  constructor({ port, size }) {
    this.#port = port
    this.#free = Array.from({ length: size }, () => new Connection(port))
  }

  /**
   * @param {string} body
   * @param {string} [sessionId]
   */
  async post(body, sessionId) {
    /** @type {Connection} */
    const connection = this.#free.pop() ?? (await new Promise((resolve) => this.#waiting.push(resolve)))
    const session = sessionId ? `X-Session-ID: ${sessionId}\r\n` : ''
    const head = `POST /events HTTP/1.1\r\nHost: 127.0.0.1:${this.#port}\r\nContent-Type: application/json\r\n${session}`
    try {
      const reply = await connection.send(`${head}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`)
      if (!/^HTTP\/1.1 20\d/.test(reply)) throw new Error(`refused: ${reply}`)
      return reply
    } finally {
      const next = this.#waiting.shift()
      if (next) next(connection)
      else this.#free.push(connection)
    }
  }

  close() {
    for (const connection of this.#free) connection.close()
  }
}

class Connection {
  #port
  /** @type {import('node:net').Socket | undefined} */
  #socket
  #reply = ''
  /** @type {((reply: string) => void) | undefined} */
  #resolve
  /** @type {((reason: Error) => void) | undefined} */
  #reject

  /** @param {number} port */
  constructor(port) {
    this.#port = port
  }

  /** Opens again what the server closed for idleness. @param {string} request @returns {Promise<string>} */
  send(request) {
    this.#socket ??= this.#connect()
    this.#reply = ''
    return new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
      this.#socket?.write(request)
    })
  }

  close() {
    this.#socket?.destroy()
  }

  #connect() {
    const socket = connect({ port: this.#port, host: '127.0.0.1', noDelay: true }).setEncoding('latin1')
    socket.on('data', (text) => this.#read(String(text)))
    socket.on('error', (error) => this.#reject?.(error))
    const forget = () => {
      if (this.#socket === socket) this.#socket = undefined
    }
    socket.on('end', forget)
    socket.on('close', () => {
      forget()
      // A request that has opened the next connection since is not this one's.
      if (!this.#socket) this.#reject?.(new Error('the server closed the connection'))
    })
    return socket
  }

  /** @param {string} text */
  #read(text) {
    this.#reply += text
    const end = this.#reply.indexOf('\r\n\r\n')
    if (end < 0) return
    const length = /\r\ncontent-length: (\d+)/i.exec(this.#reply)
    const whole = length ? this.#reply.length >= end + 4 + Number(length[1]) : this.#reply.endsWith('\r\n0\r\n\r\n')
    if (whole) this.#resolve?.(this.#reply)
  }
}
