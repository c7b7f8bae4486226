// @ts-check
import { connect } from 'node:net'
import { CLOSE, frame, PING } from '../mutate/frames.js'
import { Malformed, parseAnswers } from './parse-http.js'

/** @typedef {import('./parse-http.js').Answer} Answer */
/** @typedef {{ opcode: number, payload: Buffer }} Heard */

const KEY = 'dGhlIHNhbXBsZSBub25jZQ=='
const PATIENCE_MS = 12_000

/** A WebSocket of bare bytes: it sends what it is told to, and is strict with what it hears. */
export class RawSocket {
  /** @type {Heard[]} */
  heard = []
  /** Why what came is no WebSocket. @type {string | undefined} */
  malformed
  /** The server's answer to the upgrade. @type {Answer | undefined} */
  answer
  isClosed = false
  /** The code that the server closed with. @type {number | undefined} */
  closeCode
  /** @type {Buffer[]} */
  sent = []
  #rest = Buffer.alloc(0)
  /** A message that has come in part. @type {Heard | undefined} */
  #message
  #waiting = () => {}
  /** @type {import('node:net').Socket} */
  #socket

  /** @param {number} port */
  constructor(port) {
    this.#socket = connect({ port, host: '127.0.0.1', noDelay: true })
    this.#socket.on('data', (chunk) => this.#take(chunk))
    this.#socket.on('error', () => undefined)
    this.#socket.on('close', () => {
      this.isClosed = true
      this.#waiting()
    })
  }

  /** Whether it was accepted. @param {string} target @param {readonly [string, string][]} headers @returns {Promise<boolean>} */
  async open(target, headers) {
    const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`).join('')
    const upgrade = `connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: ${KEY}\r\n`
    this.write(Buffer.from(`GET ${target} HTTP/1.1\r\n${upgrade}${lines}\r\n`, 'latin1'))
    await this.until(() => this.answer !== undefined, PATIENCE_MS)
    return this.answer?.status === 101
  }

  /** @param {Buffer} bytes */
  write(bytes) {
    this.sent.push(bytes)
    if (!this.#socket.destroyed) this.#socket.write(bytes)
  }

  /** Resolves when it holds, the socket is closed, or the time is over. @param {() => boolean} holds @param {number} ms @returns {Promise<boolean>} whether it holds */
  until(holds, ms) {
    if (holds() || this.isClosed) return Promise.resolve(holds())
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer)
        this.#waiting = () => {}
        resolve(holds())
      }
      const timer = setTimeout(done, ms)
      this.#waiting = () => (holds() || this.isClosed) && done()
    })
  }

  /** Whether the server still answers a ping, or has closed the socket. @returns {Promise<boolean>} */
  async isAnswered() {
    const before = this.heard.length
    const mark = Buffer.from(`still there ${before}`)
    this.write(frame(mark, { opcode: PING }))
    await this.until(
      () =>
        this.isClosed || this.closeCode !== undefined || this.heard.some(({ opcode, payload }) => opcode === 10 && payload.equals(mark)),
      PATIENCE_MS,
    )
    return this.isClosed || this.closeCode !== undefined || this.heard.some(({ opcode, payload }) => opcode === 10 && payload.equals(mark))
  }

  /** Whether the connection ends. @returns {Promise<boolean>} */
  ends() {
    return this.until(() => this.isClosed, PATIENCE_MS)
  }

  /** @param {boolean} politely */
  leave(politely) {
    if (politely) this.#socket.end(frame(Buffer.from([3, 232]), { opcode: CLOSE }))
    setTimeout(() => this.#socket.destroy(), politely ? 200 : 0)
  }

  /** @param {Buffer} chunk */
  #take(chunk) {
    if (this.malformed !== undefined) return
    this.#rest = Buffer.concat([this.#rest, chunk])
    try {
      if (this.answer === undefined && !this.#takeAnswer()) return
      if (this.answer?.status === 101) while (this.#takeFrame());
    } catch (error) {
      if (!(error instanceof Malformed)) throw error
      this.malformed = error.message
    }
    this.#waiting()
  }

  #takeAnswer() {
    const [answer] = parseAnswers(this.#rest, { heads: 0, ended: false })
    if (!answer?.whole) return false
    this.answer = answer
    this.#rest = answer.status === 101 ? Buffer.from(answer.body) : Buffer.alloc(0)
    return true
  }

  #takeFrame() {
    const bytes = this.#rest
    if (bytes.length < 2) return false
    const [first = 0, second = 0] = bytes
    if (first & 0x70) throw new Malformed('a frame with reserved bits')
    if (second & 0x80) throw new Malformed('a frame of the server that is masked')
    const opcode = first & 15
    const fin = first >= 128
    if (opcode > 10 || (opcode > 2 && opcode < 8)) throw new Malformed(`a frame of the kind ${opcode}`)
    let length = second
    let at = 2
    if (length === 126) {
      if (bytes.length < 4) return false
      length = bytes.readUInt16BE(2)
      at = 4
    } else if (length === 127) {
      if (bytes.length < 10) return false
      length = Number(bytes.readBigUInt64BE(2))
      at = 10
    }
    if (bytes.length < at + length) return false
    this.#rest = bytes.subarray(at + length)
    this.#hear({ opcode, payload: Buffer.from(bytes.subarray(at, at + length)) }, fin)
    return true
  }

  /** @param {Heard} heard @param {boolean} fin */
  #hear(heard, fin) {
    const { opcode, payload } = heard
    if (opcode >= 8) {
      if (!fin || payload.length > 125) throw new Malformed('a control frame that is none')
      if (opcode === CLOSE) {
        this.#closed(payload)
        // Else the server would wait for it.
        this.write(frame(payload.subarray(0, 2), { opcode: CLOSE }))
      }
      this.heard.push(heard)
      return
    }
    if ((opcode === 0) === (this.#message === undefined)) throw new Malformed('a message within a message')
    const before = this.#message
    const message = before ? { opcode: before.opcode, payload: Buffer.concat([before.payload, payload]) } : heard
    this.#message = fin ? undefined : message
    if (fin) this.heard.push(message)
  }

  /** @param {Buffer} payload */
  #closed(payload) {
    this.closeCode = payload.length === 0 ? 1005 : payload.readUInt16BE(0)
    const known = this.closeCode === 1005 || (this.closeCode >= 1000 && this.closeCode <= 1014 && ![1004, 1006].includes(this.closeCode))
    if (!known && !(this.closeCode >= 3000 && this.closeCode < 5000)) throw new Malformed(`a close with ${this.closeCode}`)
    if (!isUtf8(payload.subarray(2))) throw new Malformed('a reason to close that is no text')
  }
}

/** @param {Buffer} bytes */
function isUtf8(bytes) {
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(bytes)
    return true
  } catch {
    return false
  }
}
