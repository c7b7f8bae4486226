// @ts-check
/** Asks for `/health` all the time, and a bare server at the same moment. A process of its own, so that only the server's load counts. */
import { Agent, get } from 'node:http'

/** @typedef {{ kind: 'slow', at: number, ms: number, controlMs: number } | { kind: 'wrong', what: string } | { kind: 'asked', times: number, mostMs: number } | { kind: 'ready' }} Told */

/** @type {{ port: number, control: number }} */
const { port, control } = JSON.parse(process.argv[2] ?? '{}')
const EVERY_MS = 20
const SLOW_MS = 250
const NEVER_MS = 20_000

const tell = (/** @type {Told} */ told) => process.send?.(told)
process.on('disconnect', () => process.exit())
const agent = new Agent({ keepAlive: true, maxSockets: 2 })
let times = 0
let mostMs = 0
let isPaused = false
process.on('message', (asked) => {
  if (asked === 'asked') tell({ kind: 'asked', times, mostMs: Math.round(mostMs) })
  isPaused = asked === 'pause' || (isPaused && asked !== 'resume')
})
tell({ kind: 'ready' })

for (;;) {
  await new Promise((resolve) => setTimeout(resolve, EVERY_MS))
  if (isPaused) continue
  const [ms, controlMs] = await Promise.all([time(port, '/health'), time(control, '/')])
  if (isPaused) continue
  times++
  mostMs = Math.max(mostMs, ms)
  if (ms > SLOW_MS) tell({ kind: 'slow', at: Date.now(), ms, controlMs })
}

/** @param {number} to @param {string} path @returns {Promise<number>} */
function time(to, path) {
  const began = performance.now()
  return new Promise((resolve) => {
    const done = () => resolve(performance.now() - began)
    const asked = get({ port: to, host: '127.0.0.1', path, agent, timeout: NEVER_MS }, (response) => {
      if (response.statusCode !== 200) tell({ kind: 'wrong', what: `${path} answered ${response.statusCode}` })
      response.resume().on('end', done)
    })
    asked.on('timeout', () => asked.destroy())
    asked.on('error', (error) => {
      tell({ kind: 'wrong', what: `${path}: ${error.message}` })
      done()
    })
  })
}
