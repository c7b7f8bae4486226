// @ts-check
import { start } from '../lib/process.js'
import { percentile } from '../lib/stats.js'
import { sqlite } from '../servers/index.js'

/**
 * Milliseconds from sending `response.cancel` at the 20th delta of an endless answer to `response.cancelled`.
 *
 * @param {{ runs: number }} options
 */
export async function cancel({ runs }) {
  const remote = await start(sqlite.file, { args: sqlite.args })
  const client = await start('load.js')
  try {
    await client.call('open', { port: remote.ready.port, transport: 'ws', count: 1 })
    const times = await client.call('cancel', { runs })
    return { p50: percentile(times, 0.5), p99: percentile(times, 0.99) }
  } finally {
    await client.stop()
    await remote.stop()
  }
}
