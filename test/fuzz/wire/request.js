// @ts-check
import { connect } from 'node:net'
import { Malformed, parseAnswers } from './parse-http.js'

/** @typedef {import('../mutate/http.js').Wire} Wire */
/** @typedef {import('./parse-http.js').Answer} Answer */

/**
 * What became of a request.
 *
 * @typedef {object} Outcome
 * @property {Buffer} sent
 * @property {Answer[]} answers
 * @property {boolean} late neither a whole answer nor the end of the connection came in time
 * @property {string | undefined} malformed
 * @property {string} heard everything, for what must not be in it
 */

/** An answer, or the end of the connection, comes within this. The server's own times are shorter. */
const PATIENCE_MS = 12_000
/** How long a stream of events is listened to. */
const LISTEN_MS = 250
/** A body that is sent slowly comes in so many pieces, with such a pause between them. */
const PIECES = 5
const PAUSE_MS = 60
/** More than this is not read. */
const MOST_BYTES = 4 * 1024 * 1024

/** @param {Wire} wire @returns {Buffer} */
function bytesOf({ method, target, version, headers, body, framing }) {
  const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`).join('')
  const head = Buffer.from(`${method} ${target} ${version}\r\n${lines}`, 'latin1')
  if (Buffer.isBuffer(framing)) return Buffer.concat([head, framing, body])
  if (framing === 'length') {
    const length = body.length > 0 || !/^(GET|HEAD|DELETE|OPTIONS)$/.test(method) ? `content-length: ${body.length}\r\n` : ''
    return Buffer.concat([head, Buffer.from(`${length}\r\n`), body])
  }
  const half = body.length >> 1
  const chunks = [body.subarray(0, half), body.subarray(half)].filter(({ length }) => length > 0)
  return Buffer.concat([
    head,
    Buffer.from('transfer-encoding: chunked\r\n\r\n'),
    ...chunks.flatMap((chunk) => [Buffer.from(`${chunk.length.toString(16)}\r\n`), chunk, Buffer.from('\r\n')]),
    Buffer.from('0\r\n\r\n'),
  ])
}

/** Sends a request on a connection of its own and reads what comes. Never rejects. @param {number} port @param {Wire} wire @returns {Promise<Outcome>} */
export function send(port, wire) {
  const bytes = bytesOf(wire)
  const sent = Buffer.concat([bytes, wire.twice ? bytes : Buffer.alloc(0), wire.after ?? Buffer.alloc(0)])
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true })
    /** @type {Buffer[]} */
    const chunks = []
    let size = 0
    let over = false
    /** @type {NodeJS.Timeout | undefined} */
    let listening
    const timer = setTimeout(() => finish({ late: true }), PATIENCE_MS)
    const heads = wire.method !== 'HEAD' ? 0 : wire.twice ? 2 : 1

    /** @param {{ late?: boolean, ended?: boolean }} how */
    function finish({ late = false, ended = false }) {
      if (over) return
      over = true
      clearTimeout(timer)
      clearTimeout(listening)
      socket.destroy()
      const bytes = Buffer.concat(chunks)
      const heard = bytes.toString('utf8')
      try {
        resolve({ sent, answers: parseAnswers(bytes, { heads, ended }), late, malformed: undefined, heard })
      } catch (error) {
        if (!(error instanceof Malformed)) throw error
        resolve({ sent, answers: [], late, malformed: error.message, heard })
      }
    }

    /** Whether there is anything more to wait for. */
    function look() {
      try {
        const [first] = parseAnswers(Buffer.concat(chunks), { heads, ended: false })
        if (first?.whole && wire.after === undefined) finish({})
        else if (first && (first.headers.get('content-type')?.startsWith('text/event-stream') || wire.after !== undefined)) {
          listening ??= setTimeout(() => finish({}), LISTEN_MS)
        }
      } catch {
        finish({})
      }
    }

    socket.on('data', (chunk) => {
      chunks.push(chunk)
      size += chunk.length
      if (size > MOST_BYTES) finish({})
      // An answer in many pieces would be parsed again with each.
      else if (chunks.length < 20 || chunks.length % 50 === 0 || chunk.length < 1000) look()
    })
    socket.on('error', () => finish({ ended: false }))
    socket.on('close', () => finish({ ended: true }))
    socket.on('connect', () => void write(socket, sent, wire.pace).then((left) => left && finish({})))
  })
}

/** @param {import('node:net').Socket} socket @param {Buffer} bytes @param {Wire['pace']} pace @returns {Promise<boolean>} whether the client has left */
async function write(socket, bytes, pace) {
  const part = bytes.subarray(0, Math.ceil(bytes.length * 0.7))
  switch (pace) {
    case 'whole':
      socket.write(bytes)
      return false
    case 'slow': {
      const step = Math.ceil(bytes.length / PIECES)
      for (let at = 0; at < bytes.length && !socket.destroyed; at += step) {
        socket.write(bytes.subarray(at, at + step))
        await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
      }
      return false
    }
    case 'abort':
      socket.write(part)
      await new Promise((resolve) => setTimeout(resolve, 10))
      socket.resetAndDestroy()
      return true
    case 'half':
      socket.end(part)
      return false
    case 'stall':
      socket.write(part)
      return false
  }
}
