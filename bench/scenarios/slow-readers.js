// @ts-check
import { once } from 'node:events'
import { connect } from 'node:net'
import { start } from '../lib/process.js'
import { sqlite } from '../servers/index.js'

/** @typedef {{ kind: string, readers: number, peak: number, left: number }} Held the most resident memory, and what is left after a collection, in bytes */

const BYTES = 16 * 1024 * 1024
/** Without a bound the collector lets garbage lie until there are several gigabytes of it, and that is what one would measure. */
const HEAP = '--max-old-space-size=1024'
const MESSAGES = [{ role: 'user', content: `/big ${BYTES}` }]
const INPUT = `/big ${BYTES}`

/** How one large answer is asked for. */
const KINDS = /** @type {const} */ ([
  { kind: 'completions', path: '/v1/chat/completions', body: { model: 'demo', messages: MESSAGES } },
  { kind: 'completions, streamed', path: '/v1/chat/completions', body: { model: 'demo', messages: MESSAGES, stream: true } },
  { kind: 'responses, stored', path: '/v1/responses', body: { model: 'demo', input: INPUT } },
  {
    kind: 'events, streamed',
    path: '/events',
    body: [{ type: 'session.create' }, { type: 'input.text', text: INPUT }, { type: 'response.create' }],
  },
])

/**
 * Memory for readers of large answers: many that stand still, so that nothing of what is made for them leaves the process, and a
 * few that read. Each kind has a process of its own.
 *
 * @param {{ still: number, reading: number, seconds: number, tell: (text: string) => void }} options
 */
export async function slowReaders({ still, reading, seconds, tell }) {
  /** @type {Held[]} */
  const results = []
  for (const { kind, path, body } of KINDS) {
    for (const [readers, reads] of /** @type {const} */ ([
      [still, false],
      [reading, true],
    ])) {
      const held = await hold({ path, body, readers, reads, seconds })
      results.push({ kind: `${kind}, ${reads ? 'reading' : 'standing still'}`, readers, ...held })
      tell(`  ${kind}, ${readers} ${reads ? 'that read' : 'that stand still'}: peak ${megabytes(held.peak)}, left ${megabytes(held.left)}`)
    }
  }
  return results
}

/** @param {{ path: string, body: object, readers: number, reads: boolean, seconds: number }} options */
async function hold({ path, body, readers, reads, seconds }) {
  const remote = await start(sqlite.file, { args: sqlite.args, execArgv: [HEAP] })
  const { port } = remote.ready
  const text = JSON.stringify(body)
  const head = `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\naccept: text/event-stream\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: ${text.length}\r\n\r\n`
  const sockets = Array.from({ length: readers }, () => connect(port, '127.0.0.1').on('error', () => undefined))
  try {
    await Promise.all(sockets.map((socket) => once(socket, 'connect')))
    for (const socket of sockets) {
      socket.write(head + text)
      if (reads) socket.resume()
      else socket.pause()
    }
    if (reads) await Promise.all(sockets.map((socket) => once(socket, 'close')))
    else await new Promise((resolve) => setTimeout(resolve, seconds * 1000))
    const { peak } = await remote.call('peak')
    for (const socket of sockets) socket.destroy()
    await new Promise((resolve) => setTimeout(resolve, 500))
    const { rss } = await remote.call('memory')
    return { peak, left: rss }
  } finally {
    for (const socket of sockets) socket.destroy()
    await remote.stop()
  }
}

const megabytes = (/** @type {number} */ bytes) => `${(bytes / 1e6).toFixed(0)} MB`
