// @ts-check
import { start } from '../lib/process.js'
import { median } from '../lib/stats.js'
import { inMemory, resumable, sqlite } from '../servers/index.js'

/** @typedef {import('../servers/index.js').Server} Server */
/** @typedef {{ server: Server, share: number, twice: number, p50: number, all: number }} Storm share of the deltas that arrived, how many arrived twice, and milliseconds until a client, and all of them, hear again */

/**
 * All clients lose their sockets in the middle of an answer, and come back at once.
 *
 * @param {{ clients: number, rounds: number }} options
 * @returns {Promise<Storm[]>}
 */
export async function reconnectStorm({ clients, rounds }) {
  const servers = [resumable, sqlite, inMemory]
  /** @type {Map<Server, Omit<Storm, 'server'>[]>} */
  const samples = new Map(servers.map((server) => [server, []]))
  for (let round = 0; round < rounds; round++) {
    for (const server of servers) samples.get(server)?.push(await storm(server, clients))
  }
  return servers.map((server) => {
    const of = (/** @type {'share' | 'twice' | 'p50' | 'all'} */ field) => (samples.get(server) ?? []).map((sample) => sample[field])
    return { server, share: Math.min(...of('share')), twice: Math.max(...of('twice')), p50: median(of('p50')), all: median(of('all')) }
  })
}

/** A delta every 100 ms: what is measured is the coming back. @param {Server} server @param {number} clients */
async function storm({ file, args }, clients) {
  const remote = await start(file, { args })
  const client = await start('clients/storm.js')
  try {
    return await client.call('storm', { port: remote.ready.port, clients, deltas: 90, ms: 100 })
  } finally {
    await client.stop()
    await remote.stop()
  }
}
