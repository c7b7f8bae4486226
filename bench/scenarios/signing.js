// @ts-check
import { DELTAS, measure } from '../lib/measure.js'
import { median } from '../lib/stats.js'

/** @typedef {import('../lib/measure.js').Row} Row */
/** @typedef {import('../servers/index.js').Server} Server */

const UNSIGNED = server('uamp, unsigned', 'never')
const SIGNED = server('uamp', 'always')
const SIGNATURES = 200

/**
 * What a signature costs an answer, and its deltas: answers of 500 deltas (`burst`), of one (`short`) and of 10,000 (`long`), signed and
 * unsigned, and beside them an RS256 signature alone.
 *
 * @param {{ quick: boolean, execArgv: readonly string[], attempt: (name: string, run: () => Promise<void>) => Promise<void> }} options
 * @returns {Promise<Map<string, Row[]>>}
 */
export async function signing({ quick, execArgv, attempt }) {
  /** @type {Map<string, Row[]>} */
  const results = new Map()
  await attempt('signing signature', async () => void results.set('signing signature', [await signatureAlone()]))
  for (const { transport, clients } of /** @type {const} */ ([
    { transport: 'ws', clients: 50 },
    { transport: 'completions', clients: 16 },
  ])) {
    for (const [kind, deltas, responses] of /** @type {const} */ ([
      ['burst', DELTAS, 400],
      ['short', 1, 1600],
      ['long', 20 * DELTAS, 32],
    ])) {
      const name = `signing ${transport} ${kind} ${clients}`
      const each = Math.ceil(responses / clients)
      const size = quick ? { responses: 1, rounds: 1, warm: 1 } : { responses: each, rounds: 9, warm: 2 * each }
      await attempt(name, async () => {
        const load = { transport, clients, deltas, ms: 0, ...size }
        results.set(name, await measure([UNSIGNED, SIGNED], load, { control: UNSIGNED, execArgv }))
      })
    }
  }
  return results
}

/** @param {string} name @param {'always' | 'never'} sign @returns {Server} */
function server(name, sign) {
  return { name, store: 'memory', file: 'servers/settings.js', args: ['memory', JSON.stringify({ sign })], signed: sign === 'always' }
}

/** An RS256 signature outside of the event loop, with nothing around it. @returns {Promise<Row>} */
async function signatureAlone() {
  const algorithm = { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256', modulusLength: 2048, publicExponent: new Uint8Array([1, 0, 1]) }
  const { privateKey } = await crypto.subtle.generateKey(algorithm, false, ['sign', 'verify'])
  const bytes = crypto.getRandomValues(new Uint8Array(512))
  const samples = []
  for (let round = 0; round < 5; round++) {
    const from = process.cpuUsage()
    const began = performance.now()
    for (let i = 0; i < SIGNATURES; i++) await crypto.subtle.sign(algorithm.name, privateKey, bytes)
    const { user, system } = process.cpuUsage(from)
    samples.push({ cpu: (user + system) / SIGNATURES, rate: (SIGNATURES / (performance.now() - began)) * 1000 })
  }
  return {
    server: { name: 'WebCrypto', store: '–', file: '', args: [] },
    rate: median(samples.map(({ rate }) => rate)),
    cpu: median(samples.map(({ cpu }) => cpu)),
    clientCpu: NaN,
    p50: NaN,
    p99: NaN,
    rateRatio: NaN,
    cpuRatio: NaN,
    cpuBeyond: NaN,
    loopBeyond: NaN,
    loopRatio: NaN,
  }
}
