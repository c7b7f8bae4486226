// @ts-check
import { DELTAS } from '../lib/measure.js'
import { start } from '../lib/process.js'
import { best, sqlite } from '../servers/index.js'

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

/** @param {import('../servers/index.js').Server} server @param {{ sessions: number, session: boolean }} options */
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
