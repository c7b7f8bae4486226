// @ts-check
import { start } from '../lib/process.js'

/** @typedef {import('../lib/measure.js').Transport} Transport */
/** @typedef {{ responses: number, rss: number, heap: number, external: number }} Point after a forced collection, in bytes */
/** @typedef {{ kind: string, points: Point[], heap: number, rss: number }} Endured bytes that each response adds, by the slope */

const CLIENTS = 16
const STEPS = 10
/** The first points are of a process that still compiles, and fills its caches. */
const WARM = 2

const KINDS = /** @type {const} */ ([
  { kind: 'not streamed', transport: 'completions-once', deltas: 1 },
  { kind: 'streamed', transport: 'completions', deltas: 20 },
])

/**
 * Memory of a gateway while it answers, again and again: what is left after a collection must not depend on how many answers
 * there were. Each kind has a process of its own.
 *
 * @param {{ responses: number, tell: (text: string) => void }} options of each kind
 * @returns {Promise<Endured[]>}
 */
export async function endurance({ responses, tell }) {
  /** @type {Endured[]} */
  const results = []
  for (const { kind, transport, deltas } of KINDS) {
    const points = await endure({ transport, deltas, responses, tell: (text) => tell(`  ${kind}, ${text}`) })
    const settled = points.slice(WARM)
    results.push({ kind, points, heap: slope(settled, 'heap'), rss: slope(settled, 'rss') })
  }
  return results
}

/** @param {{ transport: Transport, deltas: number, responses: number, tell: (text: string) => void }} options */
async function endure({ transport, deltas, responses, tell }) {
  const provider = await start('servers/upstream.js', { args: ['burst'] })
  const remote = await start('servers/gateway.js', { args: [String(provider.ready.port)] })
  const client = await start('load.js')
  const text = `/count ${deltas}`
  const each = Math.ceil(responses / STEPS / CLIENTS)
  /** @type {Point[]} */
  const points = []
  try {
    await client.call('open', { port: remote.ready.port, transport, count: CLIENTS })
    await client.call('check', { text, deltas, words: deltas })
    for (let step = 1; step <= STEPS; step++) {
      await client.call('run', { text, deltas, responses: each })
      const { rss, heap, external } = await remote.call('memory')
      points.push({ responses: step * each * CLIENTS, rss, heap, external })
      tell(`${step * each * CLIENTS}: heap ${megabytes(heap)}, resident ${megabytes(rss)}, external ${megabytes(external)}`)
    }
    return points
  } finally {
    await client.stop()
    await remote.stop()
    await provider.stop()
  }
}

/** Least squares. @param {readonly Point[]} points @param {'heap' | 'rss'} field */
function slope(points, field) {
  const mean = (/** @type {(point: Point) => number} */ of) => points.reduce((sum, point) => sum + of(point), 0) / points.length
  const x = mean((point) => point.responses)
  const y = mean((point) => point[field])
  return mean((point) => (point.responses - x) * (point[field] - y)) / mean((point) => (point.responses - x) ** 2)
}

const megabytes = (/** @type {number} */ bytes) => `${(bytes / 1e6).toFixed(1)} MB`
