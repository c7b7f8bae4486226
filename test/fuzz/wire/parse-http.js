// @ts-check

/**
 * An answer as it came over the wire.
 *
 * @typedef {object} Answer
 * @property {number} status
 * @property {ReadonlyMap<string, string>} headers
 * @property {string} head as it came
 * @property {Buffer} body
 * @property {boolean} whole false: the connection ended, or was left, in the middle of it
 */

/** Bytes that are no answer. */
export class Malformed extends Error {}

const STATUS_LINE = /^HTTP\/1\.1 (\d{3}) [^\r\n]*$/
const HEADER = /^([!#$%&'*+.^_`|~\w-]+): ?([^\r\n\0]*)$/
const TWICE = new Set(['content-length', 'transfer-encoding', 'content-type', 'location', 'etag'])

/**
 * The answers in some bytes, the last of which may not be whole. As strict as a proxy could be, since what one reader takes for the end
 * of an answer another may not.
 *
 * @param {Buffer} bytes
 * @param {{ heads: number, ended: boolean }} how how many HEAD requests came first, and whether the connection ended
 * @returns {Answer[]}
 */
export function parseAnswers(bytes, { heads, ended }) {
  /** @type {Answer[]} */
  const answers = []
  let at = 0
  while (at < bytes.length) {
    const end = bytes.indexOf('\r\n\r\n', at)
    if (end < 0) {
      if (ended) throw new Malformed(`a head without an end: ${shown(bytes.subarray(at))}`)
      break
    }
    const head = bytes.toString('latin1', at, end)
    const { status, headers } = parseHead(head)
    at = end + 4
    if (status === 101) {
      answers.push({ status, headers, head, body: bytes.subarray(at), whole: true })
      break
    }
    if (status < 200) continue
    // The first answers are to the request, which may be sent twice; those that follow are to what was sent after it.
    // Who cannot read a request to its end does not look whether it was HEAD, and closes the connection.
    const isLast = status === 400 && headers.get('connection') === 'close'
    const bodiless = status === 204 || status === 304 || (answers.length < heads && !isLast)
    const { body, whole, next } = bodiless ? { body: Buffer.alloc(0), whole: true, next: at } : parseBody(bytes, { at, headers, ended })
    answers.push({ status, headers, head, body, whole })
    at = next
    if (!whole) break
  }
  return answers
}

/** @param {string} head */
function parseHead(head) {
  const [first = '', ...lines] = head.split('\r\n')
  const status = STATUS_LINE.exec(first)?.[1]
  if (status === undefined) throw new Malformed(`a status line that is none: ${shown(Buffer.from(first))}`)
  /** @type {Map<string, string>} */
  const headers = new Map()
  for (const line of lines) {
    const [, name, value] = HEADER.exec(line) ?? []
    if (name === undefined || value === undefined) throw new Malformed(`a header that is none: ${shown(Buffer.from(line))}`)
    const key = name.toLowerCase()
    if (TWICE.has(key) && headers.has(key)) throw new Malformed(`${key} twice`)
    headers.set(key, value)
  }
  return { status: Number(status), headers }
}

/**
 * @param {Buffer} bytes
 * @param {{ at: number, headers: ReadonlyMap<string, string>, ended: boolean }} place
 * @returns {{ body: Buffer, whole: boolean, next: number }}
 */
function parseBody(bytes, { at, headers, ended }) {
  const length = headers.get('content-length')
  const encoding = headers.get('transfer-encoding')
  if (length !== undefined && encoding !== undefined) throw new Malformed('content-length and transfer-encoding at once')
  if (encoding !== undefined) return parseChunks(bytes, at)
  // It ends with its connection.
  if (length === undefined) return { body: bytes.subarray(at), whole: ended && headers.get('connection') === 'close', next: bytes.length }
  if (!/^\d+$/.test(length)) throw new Malformed(`content-length: ${length}`)
  const end = at + Number(length)
  return { body: bytes.subarray(at, end), whole: end <= bytes.length, next: end }
}

/** @param {Buffer} bytes @param {number} start */
function parseChunks(bytes, start) {
  /** @type {Buffer[]} */
  const parts = []
  let at = start
  for (;;) {
    const line = bytes.indexOf('\r\n', at)
    if (line < 0) break
    const size = bytes.toString('latin1', at, line)
    if (!/^[0-9a-f]+$/i.test(size)) throw new Malformed(`a chunk of "${size.slice(0, 20)}" bytes`)
    const from = line + 2
    const to = from + Number.parseInt(size, 16)
    if (to + 2 > bytes.length) {
      parts.push(bytes.subarray(from, to))
      break
    }
    if (bytes.toString('latin1', to, to + 2) !== '\r\n') throw new Malformed('a chunk that is longer than it says')
    parts.push(bytes.subarray(from, to))
    at = to + 2
    if (to === from) return { body: Buffer.concat(parts), whole: true, next: at }
  }
  return { body: Buffer.concat(parts), whole: false, next: bytes.length }
}

/** @param {Buffer} bytes */
function shown(bytes) {
  return JSON.stringify(bytes.toString('latin1', 0, 200))
}
