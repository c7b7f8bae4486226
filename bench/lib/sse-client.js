// @ts-check
import { connect } from 'node:net'
import { EVENTS } from './dialects.js'
import { message, Tally } from './tally.js'

const LF = 10
const EMPTY = Buffer.alloc(0)

/** `POST /events` and `GET /events/stream` on bare sockets: undoes the chunked coding, finds the ends of lines, looks at the type. */
export class SseClient {
  tally = new Tally(EVENTS)
  dialect = EVENTS
  sessionId = ''
  #options
  /** @type {import('node:net').Socket | undefined} */
  #socket
  #open = false
  /** Bytes left of the chunk being read; -1 while its size is being read. */
  #left = -1
  /** An unfinished chunk header, or an unfinished line. */
  #header = EMPTY
  #line = EMPTY

  /** @param {{ port: number, buffer: Uint8Array, pool: import('./http-pool.js').HttpPool }} options */
  constructor(options) {
    this.#options = options
  }

  /** Resolves once the stream's headers are there. */
  async open() {
    const reply = await this.#options.pool.post(message('session.create', { uamp_version: '1.0', session: { modalities: ['text'] } }))
    this.sessionId = /\r\nx-session-id: ([^\r]+)/i.exec(reply)?.[1] ?? ''
    const opened = this.tally.until('open')
    const { port, buffer } = this.#options
    const callback = (/** @type {number} */ size, /** @type {Uint8Array} */ bytes) => {
      this.#read(/** @type {Buffer} */ (bytes), size)
      return true
    }
    this.#socket = connect({ port, host: '127.0.0.1', noDelay: true, onread: { buffer, callback } })
    this.#socket.on('error', (error) => this.tally.fail(error))
    this.#socket.on('close', () => this.tally.fail(new Error('the server closed the stream')))
    this.#socket.write(
      `GET /events/stream HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAccept: text/event-stream\r\nX-Session-ID: ${this.sessionId}\r\n\r\n`,
    )
    await opened
  }

  /** @param {string} text */
  async respond(text) {
    const { pool } = this.#options
    const events = [message('input.text', { session_id: this.sessionId, text }), message('response.create', { session_id: this.sessionId })]
    const done = this.tally.until('response.done')
    this.tally.begin()
    const [end] = await Promise.all([done, pool.post(`[${events.join(',')}]`, this.sessionId)])
    return end
  }

  close() {
    this.#socket?.removeAllListeners('close').destroy()
  }

  /** @param {Buffer} bytes @param {number} size */
  #read(bytes, size) {
    if (!this.#open) return this.#head(bytes.subarray(0, size))
    let at = 0
    while (at < size) {
      if (this.#left < 0) {
        at = this.#size(bytes, at, size)
        continue
      }
      const end = Math.min(size, at + this.#left)
      this.#left -= end - at
      this.#lines(bytes, at, end)
      at = end
      if (this.#left === 0) this.#left = -1
    }
  }

  /** RFC 9112 §7.1: `size CRLF data CRLF`, so after the first chunk a header begins with the CRLF of the one before. */
  #size(/** @type {Buffer} */ bytes, /** @type {number} */ at, /** @type {number} */ size) {
    let end = bytes.indexOf(LF, at)
    if (end === at || (end === at + 1 && this.#header.length === 0)) return end + 1
    if (end < 0 || end >= size) {
      this.#header = Buffer.concat([this.#header, bytes.subarray(at, size)])
      return size
    }
    const header = this.#header.toString('latin1') + bytes.toString('latin1', at, end)
    this.#header = EMPTY
    this.#left = header.trim() === '' ? -1 : parseInt(header, 16)
    if (this.#left === 0) this.tally.fail(new Error('the server ended the stream'))
    return end + 1
  }

  /** @param {Buffer} bytes @param {number} from @param {number} to */
  #lines(bytes, from, to) {
    let at = from
    let end = to
    if (this.#line.length) {
      bytes = Buffer.concat([this.#line, bytes.subarray(from, to)])
      this.#line = EMPTY
      at = 0
      end = bytes.length
    }
    const { tally } = this
    while (at < end) {
      const stop = bytes.indexOf(LF, at)
      if (stop < 0 || stop >= end) {
        this.#line = Buffer.from(bytes.subarray(at, end))
        return
      }
      // "data: " and then the event.
      if (bytes[at] === 100) {
        const body = bytes[at + 5] === 32 ? at + 6 : at + 5
        if (!tally.check && bytes[body + 9] === 114 && bytes[body + 18] === 100 && bytes[body + 19] === 101) tally.delta()
        else tally.event(bytes.toString('utf8', body, stop))
      }
      at = stop + 1
      if (at < end && bytes[at] === LF) at++
    }
  }

  /** @param {Buffer} bytes */
  #head(bytes) {
    this.#header = Buffer.concat([this.#header, bytes])
    const end = this.#header.indexOf('\r\n\r\n')
    if (end < 0) return
    const head = this.#header.subarray(0, end).toString()
    const rest = this.#header.subarray(end + 4)
    this.#header = EMPTY
    if (!/^HTTP\/1.1 200/.test(head)) return this.tally.fail(new Error(`no stream: ${head}`))
    if (!/transfer-encoding: chunked/i.test(head)) return this.tally.fail(new Error(`not chunked: ${head}`))
    this.#open = true
    this.tally.event('{"type":"open"}')
    if (rest.length) this.#read(rest, rest.length)
  }
}
