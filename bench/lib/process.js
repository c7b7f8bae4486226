// @ts-check
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** @typedef {{ call(method: string, params?: object): Promise<any>, stop(): Promise<void>, ready: any }} Remote */

/**
 * Starts a file of this folder as a process of its own and calls it over IPC, so that asking for its CPU time costs no socket.
 *
 * @param {string} file
 * @param {{ args?: string[], execArgv?: string[] }} [options]
 * @returns {Promise<Remote>}
 */
export async function start(file, { args = [], execArgv = [] } = {}) {
  const child = fork(fileURLToPath(new URL(`../${file}`, import.meta.url)), args, {
    execArgv: ['--expose-gc', ...execArgv],
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  /** @type {Map<number, { resolve: (value: any) => void, reject: (reason: Error) => void }>} */
  const waiting = new Map()
  let calls = 0
  const exited = once(child, 'exit').then(([code]) => {
    for (const { reject } of waiting.values()) reject(new Error(`${file} ${args.join(' ')} exited with ${code}`))
  })
  /** @type {Remote['call']} */
  const call = (method, params = {}) =>
    new Promise((resolve, reject) => {
      const id = calls++
      waiting.set(id, { resolve, reject })
      child.send({ id, method, params })
    })
  const ready = await new Promise((resolve, reject) => {
    waiting.set(-1, { resolve, reject })
    child.on('message', (/** @type {any} */ { id, result, error }) => {
      const asked = waiting.get(id)
      waiting.delete(id)
      if (error) asked?.reject(new Error(error))
      else asked?.resolve(result)
    })
  })
  return {
    call,
    ready,
    async stop() {
      const killed = setTimeout(() => child.kill('SIGKILL'), 5000)
      if (child.connected) child.disconnect()
      await exited
      clearTimeout(killed)
    },
  }
}

/**
 * The other end of `start`.
 *
 * @param {Record<string, (params: any) => unknown>} methods
 * @param {{ ready?: object, close?: () => unknown }} [options]
 */
export function answer(methods, { ready = {}, close } = {}) {
  /** @type {Record<string, (params: any) => unknown>} */
  const all = { ...usage, ...methods }
  const send = (/** @type {object} */ message) => process.send?.(message)
  process.on('message', async (/** @type {{ id: number, method: string, params: object }} */ { id, method, params }) => {
    try {
      send({ id, result: await all[method]?.(params) })
    } catch (error) {
      send({ id, error: String(error instanceof Error ? error.stack : error) })
    }
  })
  process.on('disconnect', async () => {
    await close?.()
    process.exit()
  })
  send({ id: -1, result: ready })
}

/** What the scheduler knows of the main thread: the first number is the nanoseconds that it ran. Linux only. */
const SCHEDULED = '/proc/self/schedstat'

/** How often the resident memory of a server under load is looked at. */
const WATCH_MS = 50
/** @type {NodeJS.Timeout | undefined} */
let watch
/** @type {number[]} */
let resident = []

const usage = {
  /** Begins to look at the resident memory, without a collection. */
  watch() {
    resident = []
    watch = setInterval(() => resident.push(process.memoryUsage.rss()), WATCH_MS)
  },
  /** What it was since then, in bytes. */
  watched() {
    clearInterval(watch)
    return resident
  },
  /** The most resident memory that the process has had, in bytes. */
  peak() {
    return { peak: process.resourceUsage().maxRSS * 1024 }
  },
  /** User and system time of all threads, in microseconds. */
  cpu() {
    const { user, system } = process.cpuUsage()
    return user + system
  },
  /** The same of the thread with the event loop alone; NaN where the system does not tell. */
  loop() {
    return existsSync(SCHEDULED) ? Number(readFileSync(SCHEDULED, 'utf8').split(' ')[0]) / 1000 : NaN
  },
  /** Resident memory once what can be freed has been. */
  async memory() {
    for (let i = 0; i < 4; i++) {
      globalThis.gc?.()
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
    const { rss, heapUsed, external } = process.memoryUsage()
    return { rss, heap: heapUsed, external }
  },
}
