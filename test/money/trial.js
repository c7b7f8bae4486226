// @ts-check
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { COSTS } from './agents.js'
import { Books, CALLERS } from './books.js'
import { HTTP } from './spenders/http.js'
import { SOCKETS } from './spenders/sockets.js'
import { Host } from '../support/killed/host.js'
import { paymentSecretsUnder } from '../support/payment-secrets.js'
import { randomFrom } from '../support/random.js'
import { Gone, must, Violation } from '../support/violation.js'

/** @typedef {import('../support/killed/host.js').Life} Life */
/** How one life of the server ends. @typedef {{ kind: 'kill' | 'stop', afterMs: number } | { kind: 'fuse', fuse: import('../support/killed/fuse.js').Fuse } | { kind: 'start', share: number }} Death */

const SERVER = new URL('server.js', import.meta.url)
const SPENDERS = { ...HTTP, ...SOCKETS }
const ISSUED = 1_000_000_000_000n
/** Clients at a time. */
const CLIENTS = 64
/** A life of the server is good for about so many answers, and in a trial that is as long as that, */
const PER_LIFE = 260
const LONG_FROM = 5000
/** for so many times more: a start takes as much as hundreds of answers. */
const LONGER = 3
/** A life in which the chosen moment does not come ends by then. */
const LONGEST_MS = 6_000
/** What a dead server has sent may still be read. */
const READ_MS = 3_000
/** Every movement is compared with what clients were told so often. */
const COMPARED = 8
/** More than one client does at a time, in the phase in which the money runs out. */
const CROWD = 90

/** One folder, the server on it, and everybody who spends from one token. */
export class Trial {
  kills = 0
  stops = 0
  lives = 0
  books = new Books()
  #host
  #random
  #names
  /** @type {{ id: string, text: string }} */
  #token = { id: '', text: '' }
  #startMs = 500

  /** @param {Host} host @param {{ seed: number, names: readonly string[] }} options */
  constructor(host, { seed, names }) {
    this.#host = host
    this.#random = randomFrom(seed)
    this.#names = names
  }

  /** @param {{ seed: number, spends: number, names?: readonly string[] }} options */
  static async run({ seed, spends, names = Object.keys(SPENDERS) }) {
    const data = mkdtempSync(join(tmpdir(), 'uamp-money-'))
    const trial = new Trial(await Host.at(data, randomFrom(seed ^ 0x5eed), SERVER), { seed, names })
    try {
      await trial.#open()
      while (trial.books.done < spends) await trial.#live(spends)
      await trial.#close()
      const left = paymentSecretsUnder(data)
      must(left.length === 0, 'no token is left in the data folder', left.join(', '))
      return trial
    } finally {
      rmSync(data, { recursive: true, force: true })
    }
  }

  async #open() {
    await this.#peace(async (life) => {
      this.#token = await life.ask({ command: 'issue', amount: `${ISSUED}` })
    })
  }

  /** Everybody spends until the server is gone. @param {number} spends */
  async #live(spends) {
    const random = this.#random.fork()
    const scale = spends >= LONG_FROM ? LONGER : 1
    const death = chooseDeath(random, scale)
    const began = Date.now()
    const life = this.#host.start(death.kind === 'fuse' ? death.fuse : undefined)
    this.lives++
    if (death.kind === 'start') void sleep(death.share * this.#startMs).then(life.kill)
    /** @type {unknown[]} */
    const faults = []
    if (await life.ready) {
      this.#startMs = Date.now() - began
      await this.#checkSums(life).catch((thrown) => !(thrown instanceof Gone) && faults.push(thrown))
      const most = this.books.done + PER_LIFE * scale
      const isOver = () => life.over || this.books.done >= Math.min(most, spends)
      const clients = Array.from({ length: CLIENTS }, () => this.#client(life, { random: random.fork(), isOver, token: this.#token.text }))
      const longest = setTimeout(life.kill, death.kind === 'kill' || death.kind === 'stop' ? death.afterMs + 10_000 : LONGEST_MS * scale)
      void life.gone.then(() => clearTimeout(longest))
      if (death.kind === 'kill') void sleep(death.afterMs).then(life.kill)
      if (death.kind === 'stop') void sleep(death.afterMs).then(() => this.#stop(life))
      const all = Promise.all(clients.map((each) => each.catch((thrown) => void faults.push(thrown))))
      await Promise.race([all, life.gone.then(() => sleep(READ_MS, undefined, { ref: false }))])
    }
    life.kill()
    await life.gone
    this.kills++
    await sleep(0)
    this.#complain(faults)
    if (this.lives % COMPARED === 0) await this.#compare()
  }

  /** @param {Life} life @param {{ random: import('../support/random.js').Random, isOver: () => boolean, token: string }} how */
  async #client(life, { random, isOver, token }) {
    while (!isOver()) {
      const by = random.pick(this.#names)
      const isHttp = by in HTTP
      // A token that a run of AG-UI brings pays for what is asked first.
      const agents = Object.keys(COSTS).filter((name) => (name !== 'free' || isHttp) && (name !== 'tool' || by !== 'ag-ui'))
      const agent = random.chance(0.5) ? 'call' : random.pick(agents)
      const plan = {
        url: life.url,
        agent,
        token,
        secret: agent === 'free' ? random.pick(Object.values(CALLERS)) : undefined,
        isAsked: random.chance(0.3),
        stop: random.chance(0.08) ? random.pick(/** @type {const} */ (['cancel', 'vanish'])) : undefined,
        random,
      }
      const spend = /** @type {import('./told.js').Spend} */ (SPENDERS[/** @type {keyof typeof SPENDERS} */ (by)])
      try {
        const told = await spend(plan)
        if (told) this.books.note(told)
        if (told?.outcome === 'unpaid') throw new Violation('a token with money pays', JSON.stringify(told))
      } catch (thrown) {
        if (thrown instanceof Violation) throw thrown
        if (!(thrown instanceof Gone))
          throw new Violation('nothing unexpected happens', `${by} ${agent}: ${String(/** @type {any} */ (thrown)?.stack)}`)
        // The server may be about to go: whoever is cut before it has gone waits a little.
        await Promise.race([life.gone, sleep(20)])
      }
    }
  }

  /** @param {Life} life */
  async #stop(life) {
    life.leave()
    this.stops++
    await life.ask({ command: 'stop', graceMs: this.#random.pick([0, 20, 200]) }).catch(() => undefined)
  }

  /** @param {unknown[]} faults */
  #complain(faults) {
    const complaints = this.#host.complaints.splice(0)
    if (faults.length > 0) throw faults[0]
    must(complaints.length === 0, 'the server has nothing to complain of', complaints.join('\n'))
  }

  /** Nobody is killed meanwhile. @param {(life: Life) => Promise<void>} work */
  async #peace(work) {
    const life = this.#host.start()
    try {
      must(await life.ready, 'the server starts', () => this.#host.complaints.join('\n'))
      await work(life)
    } finally {
      life.kill()
      await life.gone
    }
    this.#complain([])
  }

  /** The sums of the ledger, whether or not somebody spends. @param {Life} life */
  async #checkSums(life) {
    const { report, accounts } = await life.ask({ command: 'check', accounts: [`token:${this.#token.id}`, ...sellers] })
    must(report.problems.length === 0, 'the ledger adds up', report.problems.join('\n'))
    must(report.openLocks === 0, 'every lock is closed', `${report.openLocks} are open`)
    for (const [currency, sum] of Object.entries(report.sums)) must(Number(sum) === 0, 'sums are zero', `${sum} ${currency}`)
    return accounts.map((/** @type {any} */ each) => ({ ...each, locked: BigInt(each.locked), balance: BigInt(each.balance) }))
  }

  /** The same when nothing runs, with every account. @param {Life} life @param {{ id: string, issued: bigint }} token @param {bigint} earned by others than this token's payers */
  async #checkQuiet(life, token, earned) {
    const asked = [`token:${token.id}`, ...sellers]
    await life.ask({ command: 'quiet', accounts: asked })
    const { report, accounts } = await life.ask({ command: 'check', accounts: asked })
    must(report.problems.length === 0, 'the ledger adds up', report.problems.join('\n'))
    for (const { id, locked } of accounts) must(locked === '0', 'nothing is locked when nothing runs', `${locked} of ${id}`)
    const [{ balance }, ...earners] = accounts
    const income = earners.reduce((/** @type {bigint} */ sum, /** @type {any} */ each) => sum + BigInt(each.balance), 0n)
    const spent = token.issued - BigInt(balance)
    must(BigInt(balance) >= 0n, 'a token is never overspent', `${balance} are left`)
    must(spent === income - earned, 'what leaves a token is what agents earn', `${spent} left it, and ${income - earned} were earned`)
    return income
  }

  /** Everything that was told is as the ledger has it. */
  async #compare() {
    await this.#peace(async (life) => {
      await this.#checkQuiet(life, { id: this.#token.id, issued: ISSUED }, 0n)
      this.books.check(await life.ask({ command: 'payments', token: this.#token.id }))
    })
  }

  /** The end, and then a token that runs out while everybody spends from it. */
  async #close() {
    await this.#compare()
    const cost = /** @type {bigint} */ (COSTS['call'])
    const most = this.#random.whole(20, 50)
    const issued = BigInt(most) * cost + cost / 2n
    await this.#peace(async (life) => {
      const earned = await this.#checkQuiet(life, { id: this.#token.id, issued: ISSUED }, 0n)
      const token = await life.ask({ command: 'issue', amount: `${issued}` })
      const books = new Books()
      const told = await Promise.all(Array.from({ length: CROWD }, (_, number) => this.#last(life, { number, token: token.text })))
      for (const each of told) books.note(each)
      const done = told.filter(({ outcome }) => outcome === 'done').length
      must(done === most, 'a token pays for as much as it has', `${done} of ${most} were answered`)
      for (const { by, outcome, error } of told) {
        if (outcome === 'done') continue
        const isTold = outcome === 'unpaid' && error.includes('insufficient_balance')
        must(isTold, 'whoever has too little is told so', `${by}: ${outcome} ${error}`)
      }
      await this.#checkQuiet(life, { id: token.id, issued }, earned)
      books.check(await life.ask({ command: 'payments', token: token.id }))
    })
  }

  /** @param {Life} life @param {{ number: number, token: string }} how */
  async #last({ url }, { number, token }) {
    const by = /** @type {keyof typeof SPENDERS} */ (this.#names[number % this.#names.length])
    const plan = { url, agent: 'call', token, secret: undefined, isAsked: number % 3 === 0, stop: undefined, random: this.#random.fork() }
    const told = await /** @type {import('./told.js').Spend} */ (SPENDERS[by])(plan)
    return /** @type {import('./told.js').Told} */ (told)
  }
}

const sellers = Object.keys(COSTS).map((name) => `agent:USD:${name}`)

/** @param {import('../support/random.js').Random} random @param {number} scale @returns {Death} */
function chooseDeath(random, scale) {
  const dice = random.next()
  if (dice < 0.3) return { kind: 'kill', afterMs: random.whole(0, 2500 * scale) }
  if (dice < 0.7) {
    const at = random.pick(/** @type {const} */ (['commit', 'committed', 'write']))
    return { kind: 'fuse', fuse: { at, count: random.whole(1, (at === 'write' ? 1500 : 150) * scale), from: 'ready' } }
  }
  if (dice < 0.75) {
    const at = random.pick(/** @type {const} */ (['commit', 'committed']))
    return { kind: 'fuse', fuse: { at, count: random.whole(1, 6), from: 'start' } }
  }
  if (dice < 0.82) return { kind: 'start', share: random.next() * 1.2 }
  return { kind: 'stop', afterMs: random.whole(100, 2500 * scale) }
}
