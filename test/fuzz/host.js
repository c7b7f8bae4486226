// @ts-check
import { fork } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** @typedef {import('./processes/server.js').Told} ServerTold */
/** @typedef {import('./processes/server.js').Memory} Memory */
/** @typedef {import('./processes/watch.js').Told} WatchTold */
/** Something that a process complained of, and when. @typedef {{ at: number, rule: string, what: string }} Complaint */

export const PROCESS_RULES = /** @type {const} */ ({
  lives: 'the server does not crash',
  quiet: 'the server has nothing to complain of',
  health: '/health answers within 250 ms',
})

/** A stall is the server's if a bare process was answered within this meanwhile, */
const CONTROL_MS = 125
/** and if the server itself was busy for so long without a pause. Less is a machine that has no time for it. */
const BUSY_MS = 150
/** How far apart two processes see the same moment. */
const NEAR_MS = 1_500

/** @param {string} name */
const program = (name) => fileURLToPath(new URL(`processes/${name}.js`, import.meta.url))

/** A server on a folder of its own, a bare one beside it, and who asks both for their health. */
export class Host {
  /** @type {Complaint[]} */
  complaints = []
  /** Stalls that may be the server's. @type {{ at: number, what: string, busyMs: number }[]} */
  stalls = []
  /** Stalls that were the machine's. */
  excused = 0
  port = 0
  control = 0
  isGone = false
  #data = mkdtempSync(join(tmpdir(), 'uamp-fuzz-'))
  /** @type {import('node:child_process').ChildProcess[]} */
  #children = []
  /** @type {{ at: number, ms: number, cpuMs: number }[]} */
  #lags = []
  /** @type {((memory: Memory | undefined) => void) | undefined} */
  #onMemory
  /** @type {((asked: { times: number, mostMs: number }) => void) | undefined} */
  #onAsked
  #isStopping = false

  /** @param {{ tokens: Record<string, string>, plant?: string | undefined }} options */
  static async start({ tokens, plant }) {
    const host = new Host()
    host.control = (await host.#begin('control', {}, [])).port
    const given = { data: host.#data, tokens, webhooks: host.control, ...(plant !== undefined && { plant }) }
    host.port = (await host.#begin('server', given, ['--expose-gc'])).port
    await host.#begin('watch', { port: host.port, control: host.control }, [])
    return host
  }

  get #server() {
    return this.#children[1]
  }

  get #watch() {
    return this.#children[2]
  }

  /** @returns {Promise<Memory | undefined>} after the garbage is collected; undefined: the server is gone */
  memory() {
    return new Promise((resolve) => {
      if (this.isGone) return resolve(undefined)
      this.#onMemory = resolve
      this.#server?.send('memory', () => undefined)
    })
  }

  /** @returns {Promise<{ times: number, mostMs: number }>} */
  asked() {
    return new Promise((resolve) => {
      this.#onAsked = resolve
      this.#watch?.send('asked')
    })
  }

  /** Nobody looks at the health meanwhile. @template T @param {() => Promise<T>} work @returns {Promise<T>} */
  async unwatched(work) {
    this.#watch?.send('pause')
    try {
      return await work()
    } finally {
      this.#watch?.send('resume')
    }
  }

  stop() {
    this.#isStopping = true
    for (const child of this.#children) child.kill('SIGKILL')
    rmSync(this.#data, { recursive: true, force: true })
  }

  /** @param {string} rule @param {string} what */
  #complain(rule, what) {
    if (!this.#isStopping) this.complaints.push({ at: Date.now(), rule, what })
  }

  /** @param {string} name @param {object} given @param {string[]} execArgv @returns {Promise<{ port: number }>} */
  #begin(name, given, execArgv) {
    const child = fork(program(name), [JSON.stringify(given)], { execArgv, stdio: ['ignore', 'ignore', 'pipe', 'ipc'] })
    this.#children.push(child)
    child.stderr?.setEncoding('utf8').on('data', (/** @type {string} */ chunk) => this.#complain(PROCESS_RULES.quiet, `${name}: ${chunk}`))
    return new Promise((resolve, reject) => {
      child.once('exit', (code, signal) => {
        this.#complain(PROCESS_RULES.lives, `${name} ended with ${code ?? signal}`)
        if (name === 'server') this.isGone = true
        this.#onMemory?.(undefined)
        reject(new Error(`${name} did not start`))
      })
      child.on('message', (told) => {
        const heard = /** @type {ServerTold | WatchTold} */ (told)
        if (heard.kind === 'ready') resolve(/** @type {any} */ (heard))
        else this.#hear(heard)
      })
    })
  }

  /** @param {Exclude<ServerTold | WatchTold, { kind: 'ready' }>} told */
  #hear(told) {
    switch (told.kind) {
      case 'log':
        return this.#complain(PROCESS_RULES.quiet, told.message)
      case 'wrong':
        // That of a server which is gone is no other fault.
        return this.isGone ? undefined : this.#complain(PROCESS_RULES.health, told.what)
      case 'lag':
        return void this.#lags.push(told)
      case 'memory':
        return this.#onMemory?.(told)
      case 'asked':
        return this.#onAsked?.(told)
      case 'slow':
        // The server tells of its own lag a moment later.
        setTimeout(() => this.#judge(told), NEAR_MS)
    }
  }

  /** @param {Extract<WatchTold, { kind: 'slow' }>} slow */
  #judge({ at, ms, controlMs }) {
    const lags = this.#lags.filter((lag) => Math.abs(lag.at - at) < NEAR_MS + ms)
    const busiest = lags.toSorted((one, other) => other.cpuMs - one.cpuMs)[0]
    if (controlMs > CONTROL_MS || !busiest || busiest.cpuMs < BUSY_MS) {
      this.excused++
      return
    }
    const busyMs = Math.round(busiest.cpuMs)
    const what = `it took ${Math.round(ms)} ms (a bare server ${Math.round(controlMs)} ms), of which the server was busy for ${busyMs} ms`
    this.stalls.push({ at: busiest.at, what, busyMs })
  }

  /** How long the server was busy without a pause since then. @param {number} at */
  busiestSince(at) {
    return Math.max(0, ...this.#lags.filter((lag) => lag.at >= at).map(({ cpuMs }) => cpuMs))
  }
}
