// @ts-check
import { connect } from 'node:net'
import { EVENTS } from './dialects.js'
import { Tally } from './tally.js'

const TEXT = 1
const CLOSE = 8
const PING = 9
const PONG = 10
const EMPTY = Buffer.alloc(0)

/** A WebSocket on a bare socket: reads frame headers and the first bytes of each event, nothing else. */
export class WsClient {
  tally
  dialect
  sessionId = ''
  #socket
  #upgraded = false
  /** Bytes of a delta still to come. */
  #skip = 0
  #tail = EMPTY

  /** @param {{ port: number, buffer: Uint8Array, dialect?: import('./dialects.js').Dialect, tally?: Tally }} options `buffer` is shared: each read is used up before the next */
  constructor({ port, buffer, dialect = EVENTS, tally = new Tally(dialect) }) {
    this.dialect = dialect
    this.tally = tally
    this.#socket = connect({
      port,
      host: '127.0.0.1',
      noDelay: true,
      onread: {
        buffer,
        callback: (size, bytes) => {
          this.#read(/** @type {Buffer} */ (bytes), size)
          return true
        },
      },
    })
    this.#socket.on('error', (error) => this.tally.fail(error))
    this.#socket.on('close', () => this.tally.fail(new Error('the server closed the socket')))
    this.#socket.write(
      `GET ${dialect.path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
        'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n',
    )
  }

  /** Resolves once the socket is open; with `session`, once the server has opened one. @param {{ session?: boolean }} [options] */
  async open({ session = true } = {}) {
    const { event } = await this.tally.until(this.dialect.greeting)
    if (session) this.sessionId = await this.dialect.open(this, event)
  }

  /** @param {string} text */
  async respond(text) {
    const done = this.tally.until(this.dialect.end)
    this.tally.begin()
    this.send(...this.dialect.ask(text, this.sessionId))
    return await done
  }

  /** @param {...string} texts */
  send(...texts) {
    this.#socket.write(Buffer.concat(texts.map((text) => frame(TEXT, Buffer.from(text)))))
  }

  close() {
    this.#socket.removeAllListeners('close').destroy()
  }

  /** @param {Buffer} bytes @param {number} size */
  #read(bytes, size) {
    if (!this.#upgraded) return this.#upgrade(bytes.subarray(0, size))
    if (this.#skip >= size) {
      this.#skip -= size
      return
    }
    if (this.#tail.length === 0) return this.#frames(bytes, size)
    const joined = Buffer.concat([this.#tail, bytes.subarray(0, size)])
    this.#frames(joined, joined.length)
  }

  /** @param {Buffer} bytes @param {number} end */
  #frames(bytes, end) {
    let at = this.#skip
    const { tally, dialect } = this
    const { peek } = dialect
    while (at < end) {
      let length = bytes[at + 1] ?? 0
      let body = at + 2
      if (length === 126) {
        length = ((bytes[at + 2] ?? 0) << 8) | (bytes[at + 3] ?? 0)
        body = at + 4
      } else if (length === 127) {
        if (at + 10 > end) break
        length = bytes.readUInt32BE(at + 6)
        body = at + 10
      }
      if (body + (length < peek ? length : peek) > end) break
      if (length > peek && !tally.check && dialect.isDelta(bytes, body)) tally.delta()
      else if (body + length > end) break
      else this.#other((bytes[at] ?? 0) & 15, bytes.subarray(body, body + length))
      at = body + length
    }
    this.#skip = at > end ? at - end : 0
    this.#tail = at < end ? Buffer.from(bytes.subarray(at, end)) : EMPTY
  }

  /** @param {number} opcode @param {Buffer} payload */
  #other(opcode, payload) {
    if (opcode === TEXT) this.tally.event(payload.toString())
    else if (opcode === PING) this.#socket.write(frame(PONG, payload))
    else if (opcode === CLOSE)
      this.tally.fail(new Error(`closed with ${payload.length >= 2 ? payload.readUInt16BE(0) : 'no code'}: ${payload.subarray(2)}`))
  }

  /** @param {Buffer} bytes */
  #upgrade(bytes) {
    this.#tail = Buffer.concat([this.#tail, bytes])
    const end = this.#tail.indexOf('\r\n\r\n')
    if (end < 0) return
    const head = this.#tail.subarray(0, end).toString()
    if (!head.startsWith('HTTP/1.1 101')) return this.tally.fail(new Error(`not upgraded: ${head}`))
    const rest = this.#tail.subarray(end + 4)
    this.#tail = EMPTY
    this.#upgraded = true
    this.tally.event('{"type":"open"}')
    if (rest.length) this.#frames(rest, rest.length)
  }
}

/** RFC 6455 §5.3: a client's frame must be masked; with a key of zeros the payload stays as it is. @param {number} opcode @param {Buffer} payload */
function frame(opcode, payload) {
  const long = payload.length > 125
  const out = Buffer.alloc((long ? 8 : 6) + payload.length)
  out[0] = 0x80 | opcode
  out[1] = 0x80 | (long ? 126 : payload.length)
  if (long) out.writeUInt16BE(payload.length, 2)
  payload.copy(out, long ? 8 : 6)
  return out
}
