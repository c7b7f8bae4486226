// @ts-check
/** The server that is fuzzed: a program of its own, on a real folder. Its one argument is JSON. Run with --expose-gc. */
import { getHeapCodeStatistics } from 'node:v8'
import { demo } from '../../../dist/agents/demo/index.js'
import { serve } from '../../../dist/serve/index.js'
import { asker } from './agent.js'
import { planted } from './planted.js'

/** @typedef {{ data: string, tokens: Record<string, string>, webhooks: number, plant?: string }} Given */
/** @typedef {{ kind: 'memory', bytes: number, sessions: number, responses: number }} Memory */
/** @typedef {{ kind: 'ready', port: number } | { kind: 'log', message: string } | { kind: 'lag', at: number, ms: number, cpuMs: number } | Memory} Told */

/** @type {Given} */
const { data, tokens, webhooks, plant } = JSON.parse(process.argv[2] ?? '{}')
const tell = (/** @type {Told} */ told) => process.send?.(told)
// Whoever started it may be killed.
process.on('disconnect', () => process.exit())

/** Short, so that what is left alone ends while somebody looks. */
const server = await serve([demo(), asker], {
  port: 0,
  data,
  defaultAgent: 'demo',
  tokens,
  outbound: { allow: [`127.0.0.1:${webhooks}`] },
  ...(plant !== undefined && { transports: [planted(plant)] }),
  limits: {
    turnTimeoutMs: 3_000,
    outputBytes: 512 * 1024,
    resumeWindowMs: 500,
    parkMs: 1_000,
    unloadMs: 500,
    sweepMs: 500,
    sessionTtlMs: 5_000,
    headersTimeoutMs: 2_000,
    requestTimeoutMs: 3_000,
    stallMs: 3_000,
    authenticateMs: 2_000,
    pingIntervalMs: 2_000,
    pongTimeoutMs: 2_000,
  },
  omnia: { limits: { pingIntervalMs: 2_000, pongTimeoutMs: 2_000, toolAckMs: 500, toolResultMs: 500, uploadMs: 5_000, mediaMs: 5_000 } },
  log: (level, message, fields) => {
    if (level !== 'error') return
    const error = fields?.['error']
    tell({ kind: 'log', message: `${message} ${error instanceof Error ? error.stack : JSON.stringify(fields)}` })
  },
})

process.on('message', (asked) => {
  if (asked === 'memory') void tellMemory()
})

async function tellMemory() {
  // What was freed by one may let go of more: timers, weak references.
  for (let time = 0; time < 3; time++) {
    global.gc?.()
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  const { heapUsed, external } = process.memoryUsage()
  // Code is compiled whenever it has run often enough, and that is no leak.
  const { code_and_metadata_size: compiled, bytecode_and_metadata_size: bytecode } = getHeapCodeStatistics()
  tell({
    kind: 'memory',
    bytes: heapUsed + external - compiled - bytecode,
    sessions: server.gateway.openSessions,
    responses: server.gateway.openResponses,
  })
}

// How late this process itself is, and whether it was busy then: a machine that is busy with others is not its fault.
const TICK_MS = 10
const LATE_MS = 100
let before = performance.now()
let cpuBefore = process.cpuUsage()
setInterval(() => {
  const now = performance.now()
  const cpu = process.cpuUsage()
  const ms = now - before - TICK_MS
  if (ms > LATE_MS) tell({ kind: 'lag', at: Date.now(), ms, cpuMs: (cpu.user + cpu.system - cpuBefore.user - cpuBefore.system) / 1000 })
  before = now
  cpuBefore = cpu
}, TICK_MS)

tell({ kind: 'ready', port: server.port })
