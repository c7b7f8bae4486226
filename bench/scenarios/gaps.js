// @ts-check
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { start } from '../lib/process.js'
import { median, sleep } from '../lib/stats.js'
import { best, sqlite } from '../servers/index.js'
import { fill } from './fill.js'

/** @typedef {import('../lib/process.js').Remote} Remote */
/** @typedef {'alone' | 'beside four 16 MB answers' | 'beside lists'} Beside */
/** @typedef {{ beside: Beside, ours: number, bare: number, most: number, note: string }} Gap milliseconds: the p99.9 of both, and our longest */

const MS = 5
/** Between two times four large answers. */
const PAUSE_MS = 1000

/**
 * How evenly deltas arrive that are made every 5 ms: alone, beside large answers, and beside lists from a large database. Our server
 * and the bare one take turns; the bare one has no database, and answers a list with the same bytes.
 *
 * @param {{ sessions: number, seconds: number, rounds: number, bytes: number, tell: (text: string) => void }} options
 * @returns {Promise<Gap[]>}
 */
export async function gaps({ sessions, seconds, rounds, bytes, tell }) {
  const folder = await mkdtemp(join(tmpdir(), 'uamp-bench-'))
  try {
    const filled = await fill({ folder, bytes, tell })
    const results = []
    for (const beside of /** @type {Beside[]} */ (['alone', 'beside four 16 MB answers', 'beside lists'])) {
      const data = beside === 'beside lists' ? [folder] : []
      const ours = await pair({ ...sqlite, args: [...sqlite.args, ...data] }, sessions)
      const bare = await pair(best, sessions).catch(async (error) => (await ours.stop(), Promise.reject(error)))
      const samples = []
      try {
        if (beside === 'beside lists') await bare.remote.call('page', { value: filled.page })
        for (let round = 0; round < rounds; round++) {
          samples.push({ bare: await sample(bare, { beside, seconds }), ours: await sample(ours, { beside, seconds }) })
        }
      } finally {
        await ours.stop()
        await bare.stop()
      }
      const [last] = samples.slice(-1)
      results.push({
        beside,
        ours: median(samples.map((each) => each.ours.p999)),
        bare: median(samples.map((each) => each.bare.p999)),
        most: Math.max(...samples.map((each) => each.ours.most)),
        note: last ? `${last.ours.beside}, bare: ${last.bare.beside}` : '',
      })
    }
    return results
  } finally {
    await rm(folder, { recursive: true, force: true, maxRetries: 5 })
  }
}

/** @param {import('../servers/index.js').Server} server @param {number} sessions */
async function pair({ file, args }, sessions) {
  const remote = await start(file, { args })
  const client = await start('clients/gaps.js')
  const other = await start('clients/beside.js')
  const stop = async () => {
    await client.stop()
    await other.stop()
    await remote.stop()
  }
  try {
    await client.call('open', { port: remote.ready.port, count: sessions })
    await client.call('run', { deltas: 200, ms: MS })
    return { remote, client, other, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

/**
 * @param {{ remote: Remote, client: Remote, other: Remote }} pair
 * @param {{ beside: Beside, seconds: number }} options
 * @returns {Promise<{ p999: number, most: number, beside: string }>}
 */
async function sample({ remote, client, other }, { beside, seconds }) {
  const { port } = remote.ready
  const ms = seconds * 1000
  const measured = client.call('run', { deltas: ms / MS, ms: MS })
  let did = 'nothing'
  if (beside === 'beside lists') {
    const { pages, bytes } = await other.call('list', { port, ms })
    did = `${pages} pages of ${bytes} bytes`
  }
  if (beside === 'beside four 16 MB answers') {
    const until = performance.now() + ms
    let times = 0
    for (; performance.now() < until; times++) {
      await other.call('answers', { port })
      await sleep(PAUSE_MS)
    }
    did = `${times} times four answers`
  }
  return { ...(await measured), beside: did }
}
