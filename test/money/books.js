// @ts-check
import { COSTS, FREE } from './agents.js'
import { must } from '../support/violation.js'

/** @typedef {import('./told.js').Told} Told */
/** A payment in the ledger. @typedef {{ id: string, response: string, agent: string, amount: string }} Payment */

const UNIT = 1_000_000_000
/** Whoever has a name has free calls. */
export const CALLERS = { ada: 'ada-has-a-secret', bob: 'bob-has-a-secret' }

/** What clients were told, to compare it with what the ledger says. */
export class Books {
  /** @type {Told[]} */
  #told = []
  /** How often each outcome came over each protocol. @type {Map<string, number>} */
  counts = new Map()

  /** @param {Told} told */
  note(told) {
    this.#told.push(told)
    const key = `${told.by}: ${told.outcome}`
    this.counts.set(key, (this.counts.get(key) ?? 0) + 1)
  }

  /** Every answer that was paid for as far as its client knows. */
  get done() {
    return this.#told.filter(({ outcome, agent }) => outcome === 'done' && agent !== 'fails').length
  }

  /** @param {readonly Payment[]} payments */
  check(payments) {
    const ids = new Set(payments.map(({ id }) => id))
    must(ids.size === payments.length, 'a payment is made once', 'two have the same id')
    /** @type {Map<string, { agent: string, amount: bigint }>} */
    const paid = new Map()
    for (const { response, agent, amount } of payments) {
      paid.set(response, { agent, amount: (paid.get(response)?.amount ?? 0n) + BigInt(amount) })
    }
    for (const [response, { agent, amount }] of paid) {
      const cost = COSTS[agent] ?? 0n
      must(amount <= cost, 'no response is charged twice', () => `${response} of ${agent} costs ${cost}, and ${amount} were paid`)
    }
    let free = 0
    for (const told of this.#told) {
      const { outcome, by, agent, response = '', payments: shown } = told
      const amount = paid.get(response)?.amount ?? 0n
      const what = () => `${by} ${JSON.stringify(told)}: ${amount} were paid`
      if (outcome === 'failed' || outcome === 'unpaid') must(amount === 0n, 'what fails costs nothing', what)
      if (outcome !== 'done') continue
      if (agent === 'free' && amount === 0n) free++
      else must(amount === COSTS[agent], 'an answer that was told as done is paid for, once', what)
      if (shown === undefined) continue
      const said = shown.reduce((sum, one) => sum + BigInt(Math.round(Number(one.amount) * UNIT)), 0n)
      must(said === amount && shown.every((one) => ids.has(one.payment_id)), 'the end of an answer tells its payments', what)
    }
    const most = FREE * Object.keys(CALLERS).length
    must(free <= most, 'no more calls are free than there are', () => `${free} were, of ${most}`)
  }
}
