// @ts-check
import { connect } from 'node:net'
import { EVENTS } from './dialects.js'
import { SURFACES } from './surfaces.js'
import { Tally } from './tally.js'

/** @typedef {import('./surfaces.js').Surface} Surface */

const END = Buffer.from('\r\n0\r\n\r\n')

export const isSurface = (/** @type {string} */ transport) => transport in SURFACES

/** One kept-alive connection that asks again and again. Counts the ends of events and looks at nothing else, unless it checks. */
export class SurfaceClient {
  tally = new Tally(EVENTS)
  sessionId = ''
  #options
  #surface
  #headers
  /** @type {import('node:net').Socket | undefined} */
  #socket
  /** Events of an answer that are not deltas, counted while checking. */
  #overhead = 0
  #answered = false
  #events = 0
  #tail = Buffer.alloc(0)
  #text = ''
  #left = -1
  /** What was asked last, where it is asked again with the same bytes. @type {{ text: string, json: string } | undefined} */
  #asked
  /** @type {(() => void) | undefined} */
  #done
  /** @type {((reason: Error) => void) | undefined} */
  #failed

  /** @param {{ port: number, transport: string, buffer: Uint8Array, headers: Record<string, string>, token: () => string }} options */
  constructor(options) {
    this.#options = options
    this.#headers = Object.entries(options.headers)
      .map(([name, value]) => `${name}: ${value}\r\n`)
      .join('')
    this.#surface = /** @type {Surface} */ (SURFACES[options.transport])
  }

  async open() {
    const { port, buffer } = this.#options
    const callback = (/** @type {number} */ size, /** @type {Uint8Array} */ bytes) => {
      this.#read(/** @type {Buffer} */ (bytes).subarray(0, size))
      return true
    }
    await new Promise((resolve, reject) => {
      this.#socket = connect({ port, host: '127.0.0.1', noDelay: true, onread: { buffer, callback } }, () => resolve(undefined))
      this.#socket.on('error', (error) => (reject(error), this.#failed?.(error)))
      this.#socket.on('end', () => (this.#socket = undefined))
      this.#socket.on('close', () => {
        // A server lets go of a connection that was idle for some seconds; the next request opens another.
        this.#socket = undefined
        this.#failed?.(new Error('the server closed the connection'))
      })
    })
  }

  /** @param {string} text */
  async respond(text) {
    const { path, headers = '' } = this.#surface
    const json = this.#json(text)
    const { port, token } = this.#options
    const head = `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nContent-Type: application/json\r\nAuthorization: Bearer ${token()}\r\n${headers}${this.#headers}`
    this.#answered = false
    this.#events = 0
    this.#text = ''
    this.#left = -1
    this.#tail = Buffer.alloc(0)
    if (!this.#socket) await this.open()
    this.tally.begin()
    this.tally.firstAt = 0
    const done = new Promise((resolve, reject) => {
      this.#done = () => resolve(undefined)
      this.#failed = reject
    })
    this.#socket?.write(`${head}Content-Length: ${Buffer.byteLength(json)}\r\n\r\n${json}`)
    await done
    this.#failed = undefined
    this.tally.deltas = this.#surface.stream ? this.#events - this.#overhead : 1
    return { event: undefined }
  }

  /** @param {string} text */
  #json(text) {
    const { body, constant } = this.#surface
    if (this.#asked?.text === text) return this.#asked.json
    const json = JSON.stringify(body(text))
    if (constant) this.#asked = { text, json }
    return json
  }

  /** Reads one whole answer. @param {string} text @param {string} expected @param {number} deltas */
  async verify(text, expected, deltas) {
    this.tally.check = true
    await this.respond(text)
    this.tally.check = false
    const body = this.#surface.stream ? unchunked(this.#text) : this.#text.slice(this.#text.indexOf('\r\n\r\n') + 4)
    const answer = this.#surface.parse(body)
    if (answer.whole.trim() !== expected) throw new Error(`wrong answer: ${answer.whole.slice(0, 200)}`)
    if (answer.deltas.length !== deltas) throw new Error(`${answer.deltas.length} deltas instead of ${deltas}`)
    this.#overhead = this.#events - deltas
    return { overhead: this.#overhead, bytes: body.length, signature: answer.signature }
  }

  /** @param {number} events */
  expect(events) {
    this.#overhead = events
  }

  close() {
    this.#socket?.removeAllListeners('close').destroy()
  }

  /** @param {Buffer} bytes */
  #read(bytes) {
    if (!this.#answered) {
      this.#answered = true
      const status = bytes.subarray(0, 12).toString('latin1')
      if (status !== 'HTTP/1.1 200') return this.#failed?.(new Error(`refused: ${bytes.toString()}`))
    }
    if (this.tally.check) this.#text += bytes.toString('utf8')
    if (this.#surface.stream) this.#stream(bytes)
    else this.#once(bytes)
  }

  /** Events end with two line feeds; the lines of the chunked coding have carriage returns. @param {Buffer} bytes */
  #stream(bytes) {
    // The end of an event may lie in two reads.
    if (bytes[0] === 10 && this.#tail.at(-1) === 10) this.#events++
    let at = bytes.indexOf('\n\n')
    if (at >= 0 && this.tally.firstAt === 0) this.tally.firstAt = performance.now()
    for (; at >= 0; at = bytes.indexOf('\n\n', at + 2)) this.#events++
    this.#tail =
      bytes.length >= END.length ? Buffer.from(bytes.subarray(-END.length)) : Buffer.concat([this.#tail, bytes]).subarray(-END.length)
    if (this.#tail.equals(END)) this.#done?.()
  }

  /** @param {Buffer} bytes */
  #once(bytes) {
    if (this.tally.firstAt === 0) {
      this.tally.firstAt = performance.now()
      const head = bytes.toString('latin1', 0, bytes.indexOf('\r\n\r\n') + 4)
      this.#left = head.length + Number(/content-length: (\d+)/i.exec(head)?.[1])
    }
    this.#left -= bytes.length
    if (this.#left === 0) this.#done?.()
  }
}

/** @param {string} answer with its head, in the chunked coding; ASCII only */
function unchunked(answer) {
  let rest = answer.slice(answer.indexOf('\r\n\r\n') + 4)
  let body = ''
  for (;;) {
    const end = rest.indexOf('\r\n')
    const size = parseInt(rest.slice(0, end), 16)
    if (!(size > 0)) return body
    body += rest.slice(end + 2, end + 2 + size)
    rest = rest.slice(end + 4 + size)
  }
}
