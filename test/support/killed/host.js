// @ts-check
import { spawn } from 'node:child_process'
import { createServer } from 'node:net'
import { fileURLToPath } from 'node:url'
import { Gone } from '../violation.js'

/** A server that is not ready by then hangs. */
const READY_MS = 20_000

/**
 * One life of the server.
 *
 * @typedef {object} Life
 * @property {string} url
 * @property {Promise<boolean>} ready false: it was killed before
 * @property {Promise<void>} gone
 * @property {boolean} over
 * @property {() => void} kill with SIGKILL
 * @property {(asked: object) => Promise<any>} ask what the program says to a message; throws `Gone` if it is killed before
 * @property {() => void} leave it is about to end by itself
 */

/** Where a server lives again and again: one program, one port, one folder. */
export class Host {
  /** @param {string} data @param {number} port @param {string} program */
  constructor(data, port, program) {
    this.data = data
    this.port = port
    this.program = program
    this.url = `http://127.0.0.1:${port}`
    /** What the server complained of, over all its lives. @type {string[]} */
    this.complaints = []
  }

  /** @param {string} data @param {import('../random.js').Random} random @param {URL} program */
  static async at(data, random, program) {
    for (;;) {
      // Below the ports that clients get: while the server is dead, one of theirs must not take its place.
      const port = random.whole(20_000, 29_999)
      if (await isFree(port)) return new Host(data, port, fileURLToPath(program))
    }
  }

  /** @param {import('./fuse.js').Fuse} [fuse] @returns {Life} */
  start(fuse) {
    const child = spawn(process.execPath, [this.program, JSON.stringify({ port: this.port, data: this.data, fuse })], {
      stdio: ['pipe', 'pipe', 'pipe', 'ipc'],
    })
    let complaint = ''
    let mayEnd = false
    let asked = 0
    child.stderr?.setEncoding('utf8').on('data', (chunk) => (complaint += chunk))
    /** @type {Life} */
    const life = {
      url: this.url,
      over: false,
      kill: () => child.kill('SIGKILL'),
      leave: () => (mayEnd = true),
      ask: (message) =>
        new Promise((resolve, reject) => {
          const id = ++asked
          const hear = (/** @type {any} */ told) => {
            if (told.id !== id) return
            child.off('message', hear)
            if ('error' in told) reject(new Error(told.error))
            else resolve(told.answer)
          }
          child.on('message', hear)
          void life.gone.then(() => reject(new Gone('the server was killed')))
          child.send({ id, ...message }, (error) => error && reject(new Gone(String(error))))
        }),
      gone: new Promise((resolve) =>
        child.once('close', (code, signal) => {
          life.over = true
          if (signal !== 'SIGKILL' && !mayEnd) complaint += `it ended by itself with ${code ?? signal}\n`
          if (complaint !== '') this.complaints.push(complaint)
          resolve()
        }),
      ),
      ready: new Promise((resolve) => {
        const late = setTimeout(() => {
          complaint += `it was not ready after ${READY_MS} ms\n`
          child.kill('SIGKILL')
        }, READY_MS)
        child.stdout?.once('data', () => (clearTimeout(late), resolve(true)))
        child.once('exit', () => (clearTimeout(late), resolve(false)))
      }),
    }
    return life
  }
}

/** @param {number} port @returns {Promise<boolean>} */
function isFree(port) {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
}
