// @ts-check
import { measure } from '../lib/measure.js'
import { hasPeer } from '../lib/peers.js'
import { start } from '../lib/process.js'

/** @typedef {import('../lib/measure.js').Row} Row */
/** @typedef {import('../servers/index.js').Server} Server */

const CHUNKS = 100
const LOAD = { clients: 16, ms: 0, rounds: 5 }

/**
 * Between clients and a provider: `split`, each chunk a write of its own, as providers send them; `burst`; and not streamed, an answer
 * of one word (`once`) and one of a hundred (`long once`), and after conversations of 16 KiB and of 100,000 tokens.
 */
export const GATEWAY_LOADS = /** @type {const} */ ([
  { name: 'gateway split 16', upstream: 'split', transport: 'completions', deltas: CHUNKS, ...LOAD, responses: 40, warm: 100 },
  { name: 'gateway burst 16', upstream: 'burst', transport: 'completions', deltas: CHUNKS, ...LOAD, responses: 40, warm: 100 },
  { name: 'gateway once 16', upstream: 'burst', transport: 'completions-once', deltas: 1, ...LOAD, responses: 1200, warm: 1500 },
  {
    name: 'gateway long once 16',
    upstream: 'burst',
    transport: 'completions-once',
    deltas: 1,
    words: CHUNKS,
    ...LOAD,
    responses: 400,
    warm: 500,
  },
  { name: 'gateway 16k 16', upstream: 'burst', transport: 'completions-16k', deltas: 1, ...LOAD, responses: 400, warm: 400 },
  {
    name: 'gateway 100k tokens 8',
    upstream: 'burst',
    transport: 'completions-100k-tokens',
    deltas: 1,
    ...LOAD,
    clients: 8,
    responses: 25,
    warm: 25,
  },
])

/**
 * @param {{ quick: boolean, execArgv: readonly string[], attempt: (name: string, run: () => Promise<void>) => Promise<void> }} options
 * @returns {Promise<Map<string, Row[]>>}
 */
export async function gateway({ quick, execArgv, attempt }) {
  /** @type {Map<string, Row[]>} */
  const results = new Map()
  for (const { name, upstream, ...full } of GATEWAY_LOADS) {
    await attempt(name, async () => {
      const provider = await start('servers/upstream.js', { args: [upstream] })
      try {
        const port = String(provider.ready.port)
        const control = server('pass-through', 'pass', port)
        const servers = [
          control,
          server('uamp', 'gateway', port),
          { ...server('uamp', 'gateway', port), store: 'sqlite', args: [port, 'sqlite'] },
          ...(hasPeer('@portkey-ai/gateway') ? [server('portkey', 'portkey', port)] : []),
        ]
        const load = quick ? { ...full, responses: 5, rounds: 1, warm: 5 } : full
        results.set(name, await measure(servers, load, { control, execArgv }))
      } finally {
        await provider.stop()
      }
    })
  }
  return results
}

/** @param {string} name @param {string} file @param {string} port @returns {Server} */
function server(name, file, port) {
  const headers = file === 'portkey' ? { 'x-portkey-provider': 'openai', 'x-portkey-custom-host': `http://127.0.0.1:${port}/v1` } : {}
  return { name, store: file === 'gateway' ? 'memory' : '–', file: `servers/${file}.js`, args: [port], headers }
}
