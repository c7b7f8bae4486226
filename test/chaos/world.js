// @ts-check
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Host } from '../support/killed/host.js'
import { randomFrom } from '../support/random.js'
import { STAGES } from './talker.js'
import { TALKERS } from './talkers/index.js'
import { Violation } from '../support/violation.js'

/** @typedef {import('../support/killed/host.js').Life} Life */
/** @typedef {import('./talker.js').Talker} Talker */

/**
 * How one life of the server ends.
 *
 * @typedef {{ kind: 'stage', stage: import('./talker.js').Stage, nth: number, delay: number }
 *   | { kind: 'time', delay: number }
 *   | { kind: 'fuse', fuse: import('../support/killed/fuse.js').Fuse }
 *   | { kind: 'start', share: number }} Death
 */

const SERVER = new URL('server.js', import.meta.url)
/** A life in which the chosen moment does not come ends anyway, after as long as its start took and this. */
const LONGEST_MS = 300
/** What a dead server has sent may still be read; then connections that nobody closed are given up. */
const READ_MS = 2000
/** Talkers live so many rounds, so that sessions begin and end all the time. */
const LIVES = [2, 6]

/**
 * One data folder, the server on it, and those who talk to it. Everything that is chosen follows from the seed; what the machine
 * does with it in which millisecond does not, so a fault may need several runs to come again.
 */
export class World {
  /**
   * @param {{ seed: number, names: readonly string[], patienceMs: number }} options
   * @param {Host} host
   */
  constructor({ seed, names, patienceMs }, host) {
    this.seed = seed
    this.host = host
    this.round = 0
    this.kills = 0
    this.#random = randomFrom(seed)
    this.#names = names
    this.#patienceMs = patienceMs
  }

  #random
  #names
  #patienceMs
  #numbers = 0
  #began = Date.now()
  /** How long the last start took. */
  #startMs = 400
  /** @type {Violation[]} */
  #faults = []
  /** @type {{ talker: Talker, until: number }[]} */
  #cast = []
  /** @type {(talker: Talker, stage: string) => void} */
  #onStage = () => undefined

  /** @param {{ seed: number, names: readonly string[], patienceMs: number }} options */
  static async begin(options) {
    const data = mkdtempSync(join(tmpdir(), 'uamp-chaos-'))
    return new World(options, await Host.at(data, randomFrom(options.seed ^ 0x5eed), SERVER))
  }

  /**
   * Some kills in a row, then peace, in which everybody makes sure of everything. Whoever found a fault does not go on.
   *
   * @returns {Promise<readonly Violation[]>}
   */
  async play() {
    this.round++
    this.#fill()
    const random = this.#random.fork()
    const deaths = Array.from({ length: random.pick([1, 1, 2, 2, 3]) }, () => chooseDeath(random))
    for (const death of deaths) await this.#live(death)
    await this.#peace()
    this.#cast = this.#cast.filter(({ talker, until }) => {
      if (until > this.round) return true
      talker.close()
      return false
    })
    return this.#faults.splice(0)
  }

  end() {
    for (const { talker } of this.#cast) talker.close()
    rmSync(this.host.data, { recursive: true, force: true })
  }

  #fill() {
    for (const name of this.#names) {
      if (this.#cast.some(({ talker }) => talker.name.startsWith(`${name} `))) continue
      const make = /** @type {(options: import('./talker.js').TalkerOptions) => Talker} */ (TALKERS[name])
      const [low, high] = /** @type {[number, number]} */ (LIVES)
      const talker = make({
        name,
        number: ++this.#numbers,
        random: this.#random.fork(),
        patienceMs: this.#patienceMs,
        onStage: (...told) => this.#onStage(...told),
        now: () => Date.now() - this.#began,
      })
      this.#cast.push({ talker, until: this.round - 1 + this.#random.whole(low, high) })
    }
  }

  /** @param {string} line */
  #note(line) {
    for (const { talker } of this.#cast) talker.note(`  ${line}`)
  }

  /** One life, up to its death. @param {Death} death */
  async #live(death) {
    this.#note(`started, to die by ${JSON.stringify(death)}`)
    const began = Date.now()
    const life = this.host.start(death.kind === 'fuse' ? death.fuse : undefined)
    if (death.kind === 'start') void sleep(death.share * this.#startMs).then(life.kill)
    const dead = life.gone.then(() => this.#note('killed'))
    if (await life.ready) {
      this.#startMs = Date.now() - began
      this.#note('ready')
      this.#arm(death, life)
      await this.#all((talker) => this.#talk(talker, life))
    }
    this.#onStage = () => undefined
    life.kill()
    await dead
    this.kills++
    this.#hearComplaints()
  }

  /** @param {Death} death @param {Life} life */
  #arm(death, life) {
    const longest = setTimeout(life.kill, death.kind === 'time' ? death.delay : this.#startMs + LONGEST_MS)
    void life.gone.then(() => clearTimeout(longest))
    if (death.kind !== 'stage') return
    let left = death.nth
    this.#onStage = (_, stage) => {
      if (stage !== death.stage || --left !== 0) return
      if (death.delay === 0) life.kill()
      else setTimeout(life.kill, death.delay)
    }
  }

  /** @param {Talker} talker @param {Life} life */
  async #talk(talker, life) {
    const talked = talker.talk(life).catch(async (/** @type {unknown} */ thrown) => {
      if (thrown instanceof Violation) throw thrown
      // Whatever fails just before the server dies fails because it dies.
      const isDead = await Promise.race([life.gone.then(() => true), sleep(this.#startMs + LONGEST_MS + READ_MS, false)])
      if (!isDead) throw thrown
    })
    const end = life.gone.then(() => sleep(READ_MS, undefined, { ref: false }))
    await Promise.race([talked, end])
    await life.gone
  }

  /** No kill until everybody has what is theirs. */
  async #peace() {
    this.#note('started, to live')
    const life = this.host.start()
    try {
      if (await life.ready) await this.#all((talker) => talker.check(life))
    } finally {
      life.kill()
      await life.gone
      this.#note('killed in peace')
    }
    this.kills++
    this.#hearComplaints()
  }

  /** @param {(talker: Talker) => Promise<void>} each */
  async #all(each) {
    await Promise.all(
      this.#cast.map(({ talker }) =>
        each(talker).catch((/** @type {unknown} */ thrown) => {
          this.#faults.push(talker.fault(thrown))
          talker.close()
          this.#cast = this.#cast.filter((one) => one.talker !== talker)
        }),
      ),
    )
  }

  #hearComplaints() {
    for (const complaint of this.host.complaints.splice(0))
      this.#faults.push(new Violation('the server has nothing to complain of', complaint))
  }
}

/** @param {import('../support/random.js').Random} random @returns {Death} */
function chooseDeath(random) {
  const dice = random.next()
  if (dice < 0.4) {
    const delay = random.chance(0.6) ? 0 : random.whole(1, 6)
    return { kind: 'stage', stage: random.pick(STAGES), nth: random.pick([1, 1, 2, 4, 8, 16]), delay }
  }
  if (dice < 0.65) {
    const at = random.pick(/** @type {const} */ (['commit', 'committed', 'write']))
    return { kind: 'fuse', fuse: { at, count: random.pick([1, 2, 3, 5, 8, 13, 21, 34, 55]), from: 'ready' } }
  }
  if (dice < 0.75) {
    const at = random.pick(/** @type {const} */ (['commit', 'committed']))
    return { kind: 'fuse', fuse: { at, count: random.whole(1, 6), from: 'start' } }
  }
  if (dice < 0.88) return { kind: 'start', share: random.next() * 1.2 }
  return { kind: 'time', delay: random.whole(0, 200) }
}
