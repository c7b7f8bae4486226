// @ts-check
import { Bystander } from './bystander.js'
import { Case } from './case.js'
import { CORPUS, isThere, PLANTED, uncovered } from './corpus/index.js'
import { Host, PROCESS_RULES } from './host.js'
import { Ids } from './ids.js'
import { prepare } from './prepare.js'
import { TOKENS } from './tokens.js'

/** @typedef {import('./case.js').Ground} Ground */
/** What broke a rule, and the cases that may have done it. @typedef {{ rule: string, what: string, cases: readonly Case[] }} Finding */
/** @typedef {{ seed: number, seconds: number, names: readonly string[], withTokens: boolean, first: number, only?: readonly number[] | undefined, plant?: string | undefined }} TrialOptions */

/** Cases at a time. Most of their time they wait. */
const LANES = 24
/** Cases that had ended so long before a complaint may be what it is about. */
const SUSPECT_MS = 200
/** How often sessions and the like are made anew, which end while they are not used. */
const PREPARE_MS = 2_000
/** The first part of the time, in which caches fill and code is compiled. */
const WARM_UP = 0.25
/** Cases that it takes until all code was run and compiled; on a busy machine they need more than that part of the time. */
const WARM_CASES = 600
/** What is left alone has ended by then. */
const SETTLE_MS = 20_000
/** How much more memory there may be at the end than after the warm-up. */
const MARGIN_BYTES = 6 * 1024 * 1024

/** The server tells of a lag, and of a stall, within this. */
const LAG_TOLD_MS = 40
const STALL_TOLD_MS = 1_700
/** A request that keeps the server busy for so long when nobody else is there is what a stall was about; */
const ALONE_MS = 120
/** so is whatever kept it busy for as long as this. */
const CERTAIN_MS = 1_000

const MEMORY = 'memory is back to where it was'

/** One server from its start to its end, and everything that is done to it. */
export class Trial {
  /** @type {Finding[]} */
  findings = []
  cases = 0
  talks = 0
  /** How often each outcome came. @type {Map<string, number>} */
  outcomes = new Map()
  health = { times: 0, mostMs: 0, excused: 0, unconfirmed: 0 }
  /** @type {{ before: number, after: number } | undefined} */
  memory
  #options
  #next
  #seen = 0
  #bystanderSeen = 0
  /** @type {{ what: string, busyMs: number, suspects: readonly Case[] }[]} */
  #stalls = []
  /** @type {Set<Case>} */
  #recent = new Set()
  /** @type {Host} */
  #host
  /** @type {Ground} */
  #ground
  /** @type {Bystander} */
  #bystander

  /** @param {TrialOptions} options @param {Host} host */
  constructor(options, host) {
    this.#options = options
    this.#next = options.first
    this.#host = host
    const { seed, names, withTokens, plant } = options
    const entries = [
      ...names.flatMap((name) => CORPUS[name] ?? []),
      ...(plant === undefined ? [] : Array.from({ length: 20 }, () => PLANTED).flat()),
    ]
    const marker = `bystander-${seed}`
    // Callers without a token are all the same: there is nothing of anybody else's.
    const hidden = { secrets: Object.values(TOKENS), foreign: withTokens ? marker : undefined }
    this.#ground = { seed, port: host.port, entries, ids: new Ids(), token: withTokens ? TOKENS.alice : undefined, hidden }
    this.#ground.ids.set('webhook', `http://127.0.0.1:${host.control}/hook`)
    this.#bystander = new Bystander({ url: this.#url, token: withTokens ? TOKENS.bob : undefined, marker })
  }

  /** @param {TrialOptions} options */
  static async run(options) {
    const host = await Host.start({ tokens: options.withTokens ? TOKENS : {}, plant: options.plant })
    const trial = new Trial(options, host)
    try {
      await trial.#run()
    } finally {
      trial.#collect()
      trial.talks = trial.#bystander.talks
      trial.health.excused = host.excused
      host.stop()
    }
    return trial
  }

  get #url() {
    return `http://127.0.0.1:${this.#host.port}`
  }

  async #run() {
    const { seconds, only, plant } = this.#options
    await this.#checkRoutes()
    if (only) {
      await this.#prepare(0)
      for (const number of only) {
        await this.#play(new Case(this.#ground, number))
        await pause(2 * SUSPECT_MS)
        this.#collect()
      }
      await pause(2_000)
    } else {
      await this.#playFor(seconds * WARM_UP, plant === undefined ? WARM_CASES : 0)
      const before = await this.#settled(true)
      await this.#playFor(seconds * (1 - WARM_UP))
      const after = await this.#settled(false)
      if (before !== undefined && after !== undefined) this.#compare(before, after)
    }
    await this.#bystander.leave()
    await this.#confirmStalls()
    if (!this.#host.isGone) Object.assign(this.health, await this.#host.asked())
  }

  async #checkRoutes() {
    const { routes } = /** @type {{ routes: string[] }} */ (await (await fetch(this.#url)).json())
    this.#ground = { ...this.#ground, entries: this.#ground.entries.filter((each) => isThere(each, routes)) }
    const { missing, unknown } = uncovered(routes.filter((line) => !line.endsWith('(planted)')))
    if (missing.length > 0) this.#find('every route is in the corpus', `add requests for ${missing.join(', ')}`)
    if (unknown.length > 0) this.#find('every route is in the corpus', `the server does not have ${unknown.join(', ')}`)
  }

  /** @param {number} seconds @param {number} [least] cases */
  async #playFor(seconds, least = 0) {
    const until = Date.now() + seconds * 1000
    const atLeast = this.#next + least
    let round = 0
    await this.#prepare(round)
    const isOver = () => (Date.now() > until && this.#next >= atLeast) || this.#host.isGone
    const lane = async () => {
      while (!isOver()) await this.#play(new Case(this.#ground, this.#next++))
    }
    const renew = async () => {
      for (let at = Date.now(); !isOver(); await pause(50)) {
        if (Date.now() - at < PREPARE_MS) continue
        at = Date.now()
        await this.#prepare(++round)
      }
    }
    await Promise.all([renew(), ...Array.from({ length: LANES }, lane)])
  }

  /** @param {number} round */
  async #prepare(round) {
    const { ids, token } = this.#ground
    const named = `${this.#next}-${round}`
    try {
      await prepare({ url: this.#url, token, ids }, named)
      if (token === undefined) return
      const others = new Ids()
      await prepare({ url: this.#url, token: TOKENS.bob, ids: others }, named)
      for (const name of ['session', 'response', 'task'])
        ids.set(`foreign${name[0]?.toUpperCase()}${name.slice(1)}`, others.get(name) ?? 'none')
    } catch (error) {
      // The server is gone, and that is found elsewhere; or it refuses what is right.
      if (!this.#host.isGone) this.#find('a bystander notices nothing', String(error))
    }
  }

  /** @param {Case} played */
  async #play(played) {
    this.#recent.add(played)
    await played.play()
    this.cases++
    for (const outcome of played.outcomes) {
      const key = `${played.mode} ${outcome}`
      this.outcomes.set(key, (this.outcomes.get(key) ?? 0) + 1)
    }
    // What a server that is gone does not answer is no other fault.
    if (played.violation && !this.#host.isGone) this.#find(played.violation.rule, played.violation.message, [played])
    this.#collect()
    for (const each of this.#recent) if (Date.now() - each.endedAt > 4_000) this.#recent.delete(each)
  }

  /** @param {number} at @returns {Case[]} those that were under way */
  #suspects(at) {
    return [...this.#recent].filter(({ beganAt, endedAt }) => beganAt <= at && endedAt > at - SUSPECT_MS)
  }

  /** What the processes and the bystander complained of since. */
  #collect() {
    const { complaints } = this.#host
    for (; this.#seen < complaints.length; this.#seen++) {
      const { at, rule, what } = /** @type {import('./host.js').Complaint} */ (complaints[this.#seen])
      this.#find(rule, what, this.#suspects(at))
    }
    const { stalls } = this.#host
    for (; this.#stalls.length < stalls.length;) {
      const { at, ...stall } = /** @type {(typeof stalls)[number]} */ (stalls[this.#stalls.length])
      this.#stalls.push({ ...stall, suspects: this.#suspects(at) })
    }
    const { violations } = this.#bystander
    for (; this.#bystanderSeen < violations.length; this.#bystanderSeen++) {
      const { rule, message } = /** @type {Error & { rule: string }} */ (violations[this.#bystanderSeen])
      if (!this.#host.isGone) this.#find(rule, message, [...this.#recent])
    }
  }

  /** Many requests at once on a machine that is busy look like one that stalls the server. So each that may have is played alone. */
  async #confirmStalls() {
    await pause(STALL_TOLD_MS)
    this.#collect()
    /** @type {Map<number, Case>} */
    const guilty = new Map()
    for (const { what, busyMs, suspects } of this.#stalls) {
      let found = suspects.map(({ number }) => guilty.get(number)).find((known) => known !== undefined)
      for (const { number } of found ? [] : suspects) {
        if (this.#host.isGone) return
        const began = Date.now()
        const again = new Case(this.#ground, number)
        await again.play()
        await pause(LAG_TOLD_MS)
        if (this.#host.busiestSince(began) < ALONE_MS) continue
        guilty.set(number, again)
        found = again
        break
      }
      if (found || busyMs > CERTAIN_MS) this.#find(PROCESS_RULES.health, what, found ? [found] : suspects)
      else this.health.unconfirmed++
    }
  }

  /** @param {string} rule @param {string} what @param {readonly Case[]} [cases] */
  #find(rule, what, cases = []) {
    this.findings.push({ rule, what, cases })
  }

  /** Bytes in use when everything that was begun is over. @param {boolean} goesOn @returns {Promise<number | undefined>} */
  async #settled(goesOn) {
    const { seed, withTokens } = this.#options
    await this.#bystander.leave()
    const bytes = await this.#host.unwatched(async () => {
      const until = Date.now() + SETTLE_MS
      while (!this.#host.isGone) {
        await pause(1_000)
        const memory = await this.#host.memory()
        if (memory === undefined) break
        const { bytes, sessions, responses } = memory
        if (sessions === 0 && responses === 0) {
          await pause(1_500)
          return (await this.#host.memory())?.bytes
        }
        if (Date.now() < until) continue
        this.#find(MEMORY, `${sessions} sessions and ${responses} responses have not ended after ${SETTLE_MS} ms`)
        return bytes
      }
      return undefined
    })
    this.talks += this.#bystander.talks
    this.#collect()
    if (goesOn) {
      this.#bystanderSeen = 0
      this.#bystander = new Bystander({ url: this.#url, token: withTokens ? TOKENS.bob : undefined, marker: `bystander-${seed}` })
    }
    return bytes
  }

  /** @param {number} before @param {number} after */
  #compare(before, after) {
    this.memory = { before, after }
    if (after <= before + MARGIN_BYTES) return
    const megabytes = (/** @type {number} */ bytes) => (bytes / 2 ** 20).toFixed(1)
    this.#find(
      MEMORY,
      `${megabytes(before)} MiB after the warm-up, ${megabytes(after)} MiB at the end: more than ${megabytes(MARGIN_BYTES)} MiB above`,
    )
  }
}

/** @param {number} ms */
function pause(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
