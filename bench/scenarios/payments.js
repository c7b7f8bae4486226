// @ts-check
import { measure } from '../lib/measure.js'

/** @typedef {import('../lib/measure.js').Row} Row */
/** @typedef {import('../servers/index.js').Server} Server */

const UNPAID = server('uamp, unpaid')
const PAID = server('uamp, paid', '0.01')

/**
 * What it costs to be paid: stored answers of one word from an agent without a price, and from one that is paid with a token that the
 * server has seen before.
 *
 * @param {{ quick: boolean, execArgv: readonly string[], attempt: (name: string, run: () => Promise<void>) => Promise<void> }} options
 * @returns {Promise<Map<string, Row[]>>}
 */
export async function payments({ quick, execArgv, attempt }) {
  /** @type {Map<string, Row[]>} */
  const results = new Map()
  const size = quick ? { responses: 20, rounds: 1, warm: 20 } : { responses: 200, rounds: 9, warm: 200 }
  const load = /** @type {const} */ ({ transport: 'responses', clients: 16, ms: 0, deltas: 1, ...size })
  const name = `payments once ${load.clients}`
  await attempt(name, async () => void results.set(name, await measure([UNPAID, PAID], load, { control: UNPAID, execArgv })))
  return results
}

/** @param {string} name @param {string} [price] @returns {Server} */
function server(name, price) {
  return { name, store: 'sqlite', file: 'servers/paid.js', args: price === undefined ? ['sqlite'] : ['sqlite', price] }
}
