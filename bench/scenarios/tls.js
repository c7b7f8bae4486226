// @ts-check
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { measure } from '../lib/measure.js'

/** @typedef {import('../lib/measure.js').Row} Row */
/** @typedef {import('../servers/index.js').Server} Server */

/**
 * What TLS and HTTP/2 cost a streamed answer: the same requests by the same client over HTTP/1.1, over HTTP/1.1 with TLS, and over
 * HTTP/2 with TLS.
 *
 * @param {{ quick: boolean, execArgv: readonly string[], attempt: (name: string, run: () => Promise<void>) => Promise<void> }} options
 * @returns {Promise<Map<string, Row[]>>}
 */
export async function tls({ quick, execArgv, attempt }) {
  /** @type {Map<string, Row[]>} */
  const results = new Map()
  const load = quick ? { responses: 1, rounds: 1, warm: 1 } : { responses: 25, rounds: 7, warm: 40 }
  const short = quick ? { responses: 5, rounds: 1, warm: 5, deltas: 1 } : { responses: 400, rounds: 5, warm: 200, deltas: 1 }
  for (const [name, transport, size] of /** @type {const} */ ([
    ['tls events burst 16', 'sse', load],
    ['tls completions burst 16', 'completions', load],
    // Of completions alone: events would leave a session behind with each answer.
    ['tls completions word 16', 'completions', short],
  ])) {
    await attempt(name, async () => {
      const folder = mkdtempSync(join(tmpdir(), 'uamp-bench-'))
      try {
        const [plain, ...others] = serversIn(folder)
        if (!plain) return
        results.set(name, await measure([plain, ...others], { transport, clients: 16, ms: 0, ...size }, { control: plain, execArgv }))
      } finally {
        rmSync(folder, { recursive: true })
      }
    })
  }
  return results
}

/** @param {string} folder @returns {Server[]} */
function serversIn(folder) {
  const pair = { cert: join(folder, 'cert.pem'), key: join(folder, 'key.pem') }
  const args = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '30', '-subj', '/CN=localhost']
  execFileSync('openssl', [...args, '-keyout', pair.key, '-out', pair.cert], { stdio: 'ignore' })
  /** @param {string} name @param {import('../lib/version-client.js').Version} version @param {object} settings @returns {Server} */
  const server = (name, version, settings) => ({
    name,
    store: 'memory',
    file: 'servers/settings.js',
    args: ['memory', JSON.stringify(settings)],
    version,
  })
  return [server('HTTP/1.1', 'http', {}), server('HTTP/1.1, TLS', 'https', { tls: pair }), server('HTTP/2, TLS', 'http2', { tls: pair })]
}
