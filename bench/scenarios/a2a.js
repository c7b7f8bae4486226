// @ts-check
import { measure } from '../lib/measure.js'
import { hasPeer } from '../lib/peers.js'
import { start } from '../lib/process.js'
import { median } from '../lib/stats.js'
import { a2aSdk, inMemory, sqlite } from '../servers/index.js'

/** @typedef {import('../lib/measure.js').Row} Row */

const CLIENTS = 32
const CHUNKS = 100
const PAGE = 50

/** Streamed chunks, chunks as a model makes them, and whole tasks of one word. No longer: the SDK's work grows with the square of the chunks. */
export const A2A_LOADS = /** @type {const} */ ([
  { name: `a2a burst ${CLIENTS}`, transport: 'a2a', clients: CLIENTS, ms: 0, deltas: CHUNKS, responses: 8, rounds: 5, warm: 12 },
  { name: `a2a paced ${CLIENTS}`, transport: 'a2a', clients: CLIENTS, ms: 1, deltas: CHUNKS, responses: 4, rounds: 3, warm: 2 },
  { name: `a2a once ${CLIENTS}`, transport: 'a2a-once', clients: CLIENTS, ms: 0, deltas: 1, responses: 60, rounds: 5, warm: 100 },
])

/**
 * Beside the official SDK's own server, which keeps its tasks in memory.
 *
 * @param {{ quick: boolean, execArgv: readonly string[], attempt: (name: string, run: () => Promise<void>) => Promise<void> }} options
 * @returns {Promise<Map<string, Row[]>>}
 */
export async function a2a({ quick, execArgv, attempt }) {
  /** @type {Map<string, Row[]>} */
  const results = new Map()
  for (const { name, ...full } of A2A_LOADS) {
    await attempt(name, async () => {
      if (!hasPeer('@a2a-js/sdk')) throw new Error('the official SDK could not be installed')
      const load = quick ? { ...full, responses: 2, rounds: 1, warm: 2 } : full
      results.set(name, await measure([a2aSdk, inMemory, sqlite], load, { control: a2aSdk, execArgv }))
    })
  }
  return results
}

/**
 * How long a page of the list of tasks takes among few and among many.
 *
 * @param {{ few: number, many: number, store: 'memory' | 'sqlite' }} options
 */
export async function taskList({ few, many, store }) {
  const server = await start('servers/ours.js', { args: [store] })
  try {
    const url = `http://127.0.0.1:${server.ready.port}/a2a`
    await send(url, few)
    const amongFew = await pageMs(url, few)
    await send(url, many - few)
    return { few: amongFew, many: await pageMs(url, many) }
  } finally {
    await server.stop()
  }
}

/** @param {string} url @param {string} method @param {object} params */
async function call(url, method, params) {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
  const response = await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json', 'a2a-version': '1.0' }, body })
  const { result, error } = await response.json()
  if (error) throw new Error(`${method}: ${error.message}`)
  return result
}

/** @param {string} url @param {number} tasks */
async function send(url, tasks) {
  let left = tasks
  const worker = async () => {
    while (left-- > 0) {
      const message = { messageId: `m-${left}`, role: 'ROLE_USER', parts: [{ text: 'Hello' }] }
      await call(url, 'SendMessage', { message })
    }
  }
  await Promise.all(Array.from({ length: CLIENTS }, worker))
}

/** @param {string} url @param {number} expected */
async function pageMs(url, expected) {
  const times = []
  for (let i = 0; i < 60; i++) {
    const began = performance.now()
    const { tasks, totalSize } = await call(url, 'ListTasks', { pageSize: PAGE })
    times.push(performance.now() - began)
    if (tasks.length !== PAGE || totalSize !== expected)
      throw new Error(`${tasks.length} of ${totalSize} tasks, not ${PAGE} of ${expected}`)
  }
  // The first ones warm it up.
  return median(times.slice(20))
}
