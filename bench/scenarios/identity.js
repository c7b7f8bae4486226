// @ts-check
import { Issuer } from '../lib/issuer.js'
import { measure } from '../lib/measure.js'
import { CALLER } from '../servers/secrets.js'

/** @typedef {import('../lib/measure.js').Row} Row */
/** @typedef {import('../servers/index.js').Server} Server */

/** The server keeps 10,000 verified tokens, the last used ones: of so many, one after the other, it never knows the next. */
const NEW_TOKENS = 12_000

/**
 * What a token costs a request: the same requests without access, with a static token, with a JWT that the server has seen before, and
 * with one that is new to it. The JWTs are an identity provider's, signed with RS256.
 *
 * @param {{ quick: boolean, execArgv: readonly string[], attempt: (name: string, run: () => Promise<void>) => Promise<void> }} options
 * @returns {Promise<Map<string, Row[]>>}
 */
export async function identity({ quick, execArgv, attempt }) {
  /** @type {Map<string, Row[]>} */
  const results = new Map()
  const size = quick ? { responses: 20, rounds: 1, warm: 20 } : { responses: 1000, rounds: 9, warm: 1000 }
  const load = /** @type {const} */ ({ transport: 'completions-once', clients: 16, ms: 0, deltas: 1, ...size })
  const name = `identity once ${load.clients}`
  await attempt(name, async () => {
    const issuer = await Issuer.start()
    try {
      const believing = { access: { issuers: [issuer.settings] } }
      const control = server('uamp, no access', {})
      const measured = [
        control,
        server('uamp, static token', { tokens: { caller: CALLER } }, [CALLER]),
        server('uamp, known JWT', believing, await issuer.tokens(1)),
        server('uamp, new JWT', believing, await issuer.tokens(quick ? 1000 : NEW_TOKENS)),
      ]
      results.set(name, await measure(measured, load, { control, execArgv }))
    } finally {
      issuer.stop()
    }
  })
  return results
}

/** @param {string} name @param {object} options @param {readonly string[]} [tokens] @returns {Server} */
function server(name, options, tokens) {
  return { name, store: 'memory', file: 'servers/settings.js', args: ['memory', JSON.stringify(options)], ...(tokens && { tokens }) }
}
