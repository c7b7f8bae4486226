// @ts-check
import { expected, MARKER } from './agent.js'
import { Gone, must, Violation } from '../support/violation.js'

/** @typedef {import('../support/killed/host.js').Life} Life */

/**
 * What talkers tell of themselves, so that the server can be killed just then. `sent`: a request is on its way; `acked`: it was
 * acknowledged, in whatever way its protocol has; `aside`: something was told that belongs to no response; `resumed`: the talker is
 * back after a kill.
 *
 * @typedef {typeof STAGES[number]} Stage
 */
export const STAGES = /** @type {const} */ (['opened', 'sent', 'acked', 'begun', 'delta', 'asked', 'answered', 'ended', 'aside', 'resumed'])

/** The newest lines of a talker's notes that are shown with a fault. */
const NOTES = 60

/**
 * @typedef {object} TalkerOptions
 * @property {string} name
 * @property {number} number sets its markers apart from those of others
 * @property {import('../support/random.js').Random} random
 * @property {number} patienceMs how long anything may take on a server that lives
 * @property {(talker: Talker, stage: Stage) => void} onStage
 * @property {() => number} now
 */

/** What was said in one conversation. @typedef {{ marker: string, said: string, acked: boolean }} Said */

/**
 * A client of one protocol with a conversation that outlives the server. What it knows for certain is what it was told; `check`
 * compares that with what the server says now.
 */
export class Talker {
  /** @param {TalkerOptions} options */
  constructor({ name, number, random, patienceMs, onStage, now }) {
    this.name = `${name} ${number}`
    this.random = random
    this.patienceMs = patienceMs
    this.now = now
    /** @type {Said[]} */
    this.said = []
    /** @type {string[]} */
    this.notes = []
    this.#onStage = onStage
    this.#number = number
  }

  /** @type {TalkerOptions['onStage']} */
  #onStage
  #number
  #count = 0
  /** @type {Set<() => void>} */
  #waiting = new Set()

  /** Comes back, and goes on until the server is gone: it ends by `Gone`. @param {Life} _life @returns {Promise<void>} */
  async talk(_life) {
    throw new Error('not written')
  }

  /** Comes back, and makes sure of everything that it was told. The server lives. @param {Life} _life @returns {Promise<void>} */
  async check(_life) {
    throw new Error('not written')
  }

  /** @returns {void} */
  close() {}

  /** @param {string} line */
  note(line) {
    this.notes.push(`${(this.now() / 1000).toFixed(3)} ${line.length > 300 ? `${line.slice(0, 300)}…` : line}`)
    if (this.notes.length > NOTES) this.notes.shift()
  }

  /** @param {Stage} stage @param {string} [about] */
  stage(stage, about = '') {
    // Of deltas there are many.
    if (stage !== 'delta') this.note(`${stage} ${about}`.trimEnd())
    this.#onStage(this, stage)
  }

  /** Something new to say. @param {string} [command] @returns {Said} */
  line(command = this.command()) {
    const marker = `m${this.#number}x${++this.#count}`
    const said = { marker, said: `${marker} ${command}`, acked: false }
    this.said.push(said)
    return said
  }

  /** Something to do for the agent: mostly short, sometimes silent first, sometimes much, sometimes a question. */
  command() {
    const { random } = this
    const dice = random.next()
    if (dice < 0.5) return `count ${random.whole(0, 40)} ${random.whole(0, 4)}`
    if (dice < 0.65) return `count ${random.whole(100, 800)} 0`
    if (dice < 0.8) return 'ask'
    if (dice < 0.9) return `late ${random.whole(0, 60)}`
    return `big ${random.whole(1, 60)}`
  }

  /** @param {number} ms */
  pause(ms) {
    return new Promise((resolve) => setTimeout(resolve, ms))
  }

  /** Whoever waits looks again. */
  changed() {
    for (const wake of [...this.#waiting]) wake()
  }

  /**
   * Waits until it holds. Bounded: whatever does not come on a server that lives will never come.
   *
   * @template T
   * @param {string} rule
   * @param {() => T | undefined | false} test
   * @param {() => string} [what]
   * @returns {Promise<T>}
   */
  async until(rule, test, what = () => 'nothing came') {
    const deadline = Date.now() + this.patienceMs
    for (;;) {
      const found = test()
      if (found !== undefined && found !== false) return /** @type {T} */ (found)
      const left = deadline - Date.now()
      must(left > 0, rule, () => `${what()} for ${this.patienceMs} ms`)
      await new Promise((resolve) => {
        const wake = () => {
          clearTimeout(timer)
          this.#waiting.delete(wake)
          resolve(undefined)
        }
        const timer = setTimeout(wake, left)
        this.#waiting.add(wake)
      })
    }
  }

  /** Bounds a request. @template T @param {string} rule @param {Promise<T>} promise @returns {Promise<T>} */
  async within(rule, promise) {
    /** @type {NodeJS.Timeout | undefined} */
    let timer
    const late = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new Violation(rule, `nothing came for ${this.patienceMs} ms`)), this.patienceMs)
    })
    try {
      return await /** @type {Promise<T>} */ (Promise.race([promise, late]))
    } finally {
      clearTimeout(timer)
    }
  }

  /**
   * Every input that was acknowledged is in the conversation once, every other at most once, in the order in which they were said;
   * and an answer that was told as complete is in it as it was told.
   *
   * @param {string} told what the agent says of it
   * @param {readonly Said[]} [all]
   */
  checkConversation(told, all = this.said) {
    /** @type {{ user?: string[], assistant?: string }[]} */
    let messages = []
    try {
      messages = JSON.parse(told)
    } catch {
      throw new Violation('the conversation can be read', `it says ${told.slice(0, 200)}`)
    }
    const found = messages.flatMap(({ user = [] }) => user)
    for (const { marker, acked } of all) {
      const times = found.filter((each) => each === marker).length
      must(times <= 1, 'an input is in the conversation once', () => `${marker} is there ${times} times: ${found.join(' ')}`)
      must(times === 1 || !acked, 'an acknowledged input is not lost', () => `${marker} is not there: ${found.join(' ')}`)
    }
    const order = all.map(({ marker }) => marker).filter((marker) => found.includes(marker))
    must(order.join(' ') === found.join(' '), 'inputs keep their order', () => `${found.join(' ')} was said as ${order.join(' ')}`)
  }

  /** @param {unknown} thrown @returns {Violation} */
  fault(thrown) {
    const violation = thrown instanceof Violation ? thrown : new Violation('nothing unexpected happens', describe(thrown))
    violation.talker ??= this.name
    violation.transcript ||= this.notes.join('\n')
    return violation
  }
}

export { expected, Gone, MARKER, must, Violation }

/** @param {unknown} thrown */
function describe(thrown) {
  if (!(thrown instanceof Error)) return JSON.stringify(thrown)
  const cause = thrown.cause instanceof Error ? ` (${thrown.cause.message}${describeCode(thrown.cause.cause ?? thrown.cause)})` : ''
  return `${thrown.stack?.split('\n').slice(0, 4).join(' ') ?? thrown.message}${cause}`
}

/** @param {unknown} cause */
function describeCode(cause) {
  return cause instanceof Error && 'code' in cause ? ` ${String(cause.code)}` : ''
}
