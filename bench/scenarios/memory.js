// @ts-check
import { DELTAS } from '../lib/measure.js'
import { start } from '../lib/process.js'
import { median } from '../lib/stats.js'
import { best, inMemory, sqlite } from '../servers/index.js'

/** @typedef {import('../servers/index.js').Server} Server */

/**
 * Bytes of resident memory per idle WebSocket: a bare socket without a session, and one of ours whose session has finished a
 * response. Both after the same warm-up and a forced collection, so that code and heap that any load brings are not counted.
 *
 * @param {{ sessions: number }} options
 */
export async function memory({ sessions }) {
  const socket = await perConnection(best, { sessions, session: false })
  const session = await perConnection(sqlite, { sessions, session: true })
  return { socket, session, beyond: { rss: session.rss - socket.rss, heap: session.heap - socket.heap } }
}

/** @param {Server} server @param {{ sessions: number, session: boolean }} options */
async function perConnection(server, { sessions, session }) {
  const remote = await start(server.file, { args: server.args })
  const client = await start('load.js')
  const work = { text: `/count ${DELTAS}`, deltas: DELTAS, responses: 1, parallel: 20 }
  try {
    const { port } = remote.ready
    await client.call('open', { port, transport: 'ws', count: 200 })
    await client.call('run', work)
    await client.call('close')
    const before = await remote.call('memory')
    await client.call('open', { port, transport: 'ws', count: sessions, session })
    if (session) await client.call('run', work)
    const after = await remote.call('memory')
    return { rss: (after.rss - before.rss) / sessions, heap: (after.heap - before.heap) / sessions }
  } finally {
    await client.stop()
    await remote.stop()
  }
}

/** The loads of the table whose resident memory is looked at: as fast as can be, one after the other, and as a model speaks. */
const LOADS = /** @type {const} */ ([
  { name: 'ws burst 50', transport: 'ws', clients: 50, deltas: DELTAS, ms: 0, responses: 60 },
  { name: 'completions once 16', transport: 'completions-once', clients: 16, deltas: 1, ms: 0, responses: 2000 },
  { name: 'ws paced 200', transport: 'ws', clients: 200, deltas: DELTAS, ms: 1, responses: 4 },
])

/**
 * Bytes of resident memory while a load is on, without any forced collection: what whoever gives the process its memory sees. Each
 * load has processes of its own, and puts the same work on each server.
 *
 * @param {{ part: number }} options of each load
 */
export async function underLoad({ part }) {
  const results = []
  for (const { name, responses, ...load } of LOADS) {
    for (const server of [best, sqlite, inMemory]) {
      results.push({ name, server, ...(await loaded(server, { ...load, responses: Math.ceil(responses * part) })) })
    }
  }
  return results
}

/** @param {Server} server @param {{ transport: string, clients: number, deltas: number, ms: number, responses: number }} load */
async function loaded({ file, args }, { transport, clients, deltas, ms, responses }) {
  const remote = await start(file, { args })
  const client = await start('load.js')
  const text = `/count ${deltas}${ms ? ` ${ms}` : ''}`
  try {
    await client.call('open', { port: remote.ready.port, transport, count: clients })
    await client.call('check', { text, deltas, words: deltas })
    await client.call('run', { text, deltas, responses: 1 })
    await remote.call('watch')
    await client.call('run', { text, deltas, responses })
    /** @type {number[]} */
    const resident = await remote.call('watched')
    return { usual: median(resident), peak: Math.max(...resident) }
  } finally {
    await client.stop()
    await remote.stop()
  }
}
