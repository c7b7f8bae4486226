// @ts-check
import { setTimeout as sleep } from 'node:timers/promises'
import { FIN, NAMED } from './agents.js'
import { Gone, Violation } from '../support/violation.js'

/**
 * How an answer ended, as its client was told.
 *
 * @typedef {object} Told
 * @property {'done' | 'failed' | 'cancelled' | 'unpaid'} outcome
 * @property {string} by the protocol
 * @property {string} agent
 * @property {string | undefined} response as far as the client knows it
 * @property {readonly { payment_id: string, amount: string }[] | undefined} payments what the end said of them, where a protocol can
 * @property {string} error
 */

/**
 * What one client is to do.
 *
 * @typedef {object} Plan
 * @property {string} url
 * @property {string} agent
 * @property {string} token
 * @property {string | undefined} secret of a caller with a name
 * @property {boolean} isAsked pays only when it is asked to
 * @property {'cancel' | 'vanish' | undefined} stop what it does as soon as the answer begins
 * @property {import('../support/random.js').Random} random
 */

/** @typedef {(plan: Plan) => Promise<Told | undefined>} Spend undefined: the client left before it was told */

/** How long anything may take on a server that lives. */
const PATIENCE_MS = 20_000

/** @param {string} by @param {Plan} plan @param {{ text: string, outcome: Told['outcome'], payments?: Told['payments'], error?: string }} told @returns {Told} */
export function told(by, { agent }, { text, outcome, payments, error = '' }) {
  const response = [...text.matchAll(NAMED)].at(-1)?.[1]
  if (outcome === 'done' && !(text.endsWith(FIN) && response !== undefined)) {
    throw new Violation('an answer that is done is complete', `${by} ${agent}: ${JSON.stringify(text)}`)
  }
  return { outcome, by, agent, response, payments, error }
}

/** What comes over a socket, for somebody who waits for it. */
export class Inbox {
  /** @type {any[]} */
  #heard = []
  #isOver = false
  #wake = () => {}

  /** @param {any} message */
  put(message) {
    this.#heard.push(message)
    this.#wake()
  }

  end() {
    this.#isOver = true
    this.#wake()
  }

  /** @returns {Promise<any>} */
  async next() {
    const late = new AbortController()
    const patience = sleep(PATIENCE_MS, 'late', { signal: late.signal }).catch(() => 'over')
    try {
      for (;;) {
        const message = this.#heard.shift()
        if (message !== undefined) return message
        if (this.#isOver) throw new Gone('the connection was lost')
        const woken = new Promise((resolve) => (this.#wake = () => resolve('woken')))
        if ((await Promise.race([woken, patience])) === 'late') throw new Violation('what is sent is answered', 'nothing came')
      }
    } finally {
      late.abort()
    }
  }
}
