// @ts-check
import { measure } from '../lib/measure.js'
import { CALLER, GUEST } from '../servers/secrets.js'

/** @typedef {import('../lib/measure.js').Row} Row */
/** @typedef {import('../servers/index.js').Server} Server */

const SETTINGS = {
  tokens: { caller: CALLER, guest: GUEST },
  grants: { guest: ['host:demo'] },
  allowAnonymous: true,
  defaultAgent: 'demo',
}

/**
 * The same agent in the server itself, and in a process that has connected it (`src/serve/connect`). Its sessions are short: what was
 * said before goes to it with every request, and would be measured in place of the deltas.
 *
 * @param {{ quick: boolean, execArgv: readonly string[], attempt: (name: string, run: () => Promise<void>) => Promise<void> }} options
 * @returns {Promise<Map<string, Row[]>>}
 */
export async function hosted({ quick, execArgv, attempt }) {
  /** @type {Map<string, Row[]>} */
  const results = new Map()
  for (const { transport, clients, ...full } of /** @type {const} */ ([
    { transport: 'ws', clients: 50, responses: 4, rounds: 11, warm: 12, fresh: true },
    { transport: 'completions', clients: 16, responses: 25, rounds: 9, warm: 40 },
  ])) {
    const name = `hosted ${transport} burst ${clients}`
    await attempt(name, async () => {
      const load = { transport, clients, ms: 0, ...full, ...(quick && { responses: 2, rounds: 1, warm: 2 }) }
      const rows = []
      for (const store of ['sqlite', 'memory']) {
        const control = server('uamp, local', 'settings', store)
        rows.push(...(await measure([control, server('uamp', 'host', store)], load, { control, execArgv })))
      }
      results.set(name, rows)
    })
  }
  return results
}

/** @param {string} name @param {string} file @param {string} store @returns {Server} */
function server(name, file, store) {
  return { name, store, file: `servers/${file}.js`, args: [store, JSON.stringify(SETTINGS)], tokens: [CALLER] }
}
