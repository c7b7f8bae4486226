// @ts-check
import { DIALECTS } from './lib/dialects.js'
import { HttpPool } from './lib/http-pool.js'
import { answer } from './lib/process.js'
import { SseClient } from './lib/sse-client.js'
import { isSurface, SurfaceClient } from './lib/surface-client.js'
import { message } from './lib/tally.js'
import { VersionClient } from './lib/version-client.js'
import { WsClient } from './lib/ws-client.js'

/** How many connections are being opened at a time: a listen queue is finite. */
const STEP = 100

/** @type {(WsClient | SseClient | SurfaceClient | VersionClient)[]} */
let clients = []
/** @type {HttpPool | undefined} */
let pool
const buffer = Buffer.alloc(256 * 1024)

answer({ open, check, run, cancel, close })

/** @param {{ port: number, transport: import('./lib/measure.js').Load['transport'], count: number, session?: boolean, headers?: Record<string, string>, tokens?: readonly string[], version?: import('./lib/version-client.js').Version }} options */
async function open({ port, transport, count, session = true, headers = {}, tokens = ['none'], version }) {
  pool ??= new HttpPool({ port, size: Math.min(count, 64) })
  const posts = pool
  let shown = 0
  const token = () => tokens[shown++ % tokens.length] ?? ''
  const make = () => {
    if (version) return new VersionClient({ port, version, transport })
    if (isSurface(transport)) return new SurfaceClient({ port, transport, buffer, headers, token })
    const dialect = DIALECTS[transport]
    return dialect ? new WsClient({ port, buffer, dialect }) : new SseClient({ port, buffer, pool: posts })
  }
  while (clients.length < count) {
    const step = Array.from({ length: Math.min(STEP, count - clients.length) }, make)
    await Promise.all(step.map((client) => client.open({ session })))
    clients.push(...step)
  }
}

/**
 * Parses every event of one response: the numbers are 1 … n, and nothing is missing.
 *
 * @param {{ text: string, deltas: number, words: number, signed?: boolean }} options
 */
async function check({ text, deltas, words, signed = false }) {
  const client = clients[0] ?? missing()
  const expected = Array.from({ length: words }, (_, i) => i + 1).join(' ')
  if (client instanceof SurfaceClient) {
    const { overhead, bytes, signature } = await client.verify(text, expected, deltas)
    checkSigned(signature, signed)
    for (const other of clients) if (other instanceof SurfaceClient) other.expect(overhead)
    return { bytes }
  }
  if (client instanceof VersionClient) {
    await client.respond(text)
    if (client.tally.deltas !== deltas) throw new Error(`${client.tally.deltas} deltas instead of ${deltas}`)
    return {}
  }
  const { tally } = client
  tally.check = true
  const { event } = await client.respond(text)
  tally.check = false
  client.dialect.check(tally.seen, event, expected)
  checkSigned(event.signature, signed)
  return { bytes: JSON.stringify(tally.seen[0]).length, example: tally.seen[0] }
}

/** @param {unknown} signature @param {boolean} signed */
function checkSigned(signature, signed) {
  if ((signature !== undefined) !== signed) throw new Error(signed ? 'the answer is not signed' : 'the answer is signed')
}

/**
 * Every client asks for `responses` answers one after the other, `parallel` clients at a time.
 *
 * @param {{ text: string, deltas: number, responses: number, parallel?: number }} options
 */
async function run({ text, deltas, responses, parallel = clients.length }) {
  /** @type {number[]} */
  const firsts = []
  const queue = clients.values()
  const worker = async () => {
    for (const client of queue) {
      for (let i = 0; i < responses; i++) {
        await client.respond(text)
        if (client.tally.deltas !== deltas) throw new Error(`${client.tally.deltas} deltas instead of ${deltas}`)
        firsts.push(client.tally.firstAt - client.tally.sentAt)
      }
    }
  }
  const from = process.cpuUsage()
  const began = performance.now()
  await Promise.all(Array.from({ length: parallel }, worker))
  const ms = performance.now() - began
  const { user, system } = process.cpuUsage(from)
  return { ms, cpu: user + system, events: clients.length * responses * deltas, firsts }
}

/** Cancels an endless answer at its 20th delta. @param {{ runs: number }} options */
async function cancel({ runs }) {
  const client = /** @type {WsClient} */ (clients[0] ?? missing())
  const { tally, sessionId } = client
  /** @type {number[]} */
  const times = []
  for (let i = 0; i < runs; i++) {
    let sentAt = 0
    tally.reached = () => {
      sentAt = performance.now()
      client.send(message('response.cancel', { session_id: sessionId }))
    }
    const cancelled = tally.until('response.cancelled')
    tally.mark = 20
    tally.begin()
    client.send(
      message('input.text', { session_id: sessionId, text: '/count 1000000000' }),
      message('response.create', { session_id: sessionId }),
    )
    await cancelled
    times.push(performance.now() - sentAt)
  }
  tally.mark = -1
  return times
}

function close() {
  for (const client of clients) client.close()
  clients = []
  pool?.close()
  pool = undefined
}

/** @returns {never} */
function missing() {
  throw new Error('no client is open')
}
