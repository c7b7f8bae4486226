// @ts-check
import { randomFrom } from '../support/random.js'
import { Violation } from '../support/violation.js'
import { mutateBytes } from './mutate/bytes.js'
import { mutateHttp } from './mutate/http.js'
import { jsonText, mutateJson } from './mutate/json.js'
import { checkAnswer, checkText, RULES } from './answers.js'
import { Ids } from './ids.js'
import { playSocket } from './socket-case.js'
import { send } from './wire/request.js'
import { must } from '../support/violation.js'

/** @typedef {import('./corpus/entry.js').Entry} Entry */
/** @typedef {import('./corpus/entry.js').Request} Request */
/** @typedef {import('./mutate/http.js').Wire} Wire */
/** @typedef {import('../support/random.js').Random} Random */
/** How a caller shows who they are. `late`: in the first message of a WebSocket. @typedef {'open' | 'none' | 'wrong' | 'right' | 'late'} Mode */

/**
 * What all cases of a trial have in common.
 *
 * @typedef {object} Ground
 * @property {number} seed
 * @property {number} port
 * @property {readonly Entry[]} entries
 * @property {Ids} ids
 * @property {string | undefined} token undefined: the server needs none
 * @property {import('./answers.js').Hidden} hidden
 */

/** One case, while it is played and after. */
export class Case {
  /** @type {readonly Buffer[]} */
  sent = []
  /** Statuses and close codes. @type {string[]} */
  outcomes = []
  /** What broke a rule. @type {Violation | undefined} */
  violation
  beganAt = Date.now()
  endedAt = Infinity

  /** Everything about it follows from the seed and its number. @param {Ground} ground @param {number} number */
  constructor(ground, number) {
    this.ground = ground
    this.number = number
    this.random = randomFrom(Math.imul(ground.seed + 1, 0x9e3779b1) ^ Math.imul(number + 1, 0x85ebca6b))
    // Numbers that follow each other begin alike.
    for (let time = 0; time < 3; time++) this.random.next()
    this.entry = this.random.pick(ground.entries)
    this.mode = this.#mode()
    this.ids = new Ids(ground.ids)
    this.ids.set('any', `${ground.seed}-${number}`)
  }

  /** @returns {Mode} */
  #mode() {
    if (this.ground.token === undefined) return 'open'
    return this.random.pick(
      this.entry.socket?.takesToken ? ['right', 'late', 'late', 'none', 'wrong'] : ['right', 'right', 'right', 'none', 'wrong'],
    )
  }

  /** Never rejects. */
  async play() {
    try {
      if (this.entry.socket && !this.random.chance(0.1)) await playSocket(this, this.entry.socket)
      else await this.#playRequests()
    } catch (thrown) {
      this.violation =
        thrown instanceof Violation
          ? thrown
          : new Violation('the fuzzer itself works', String(thrown instanceof Error ? thrown.stack : thrown))
    }
    this.endedAt = Date.now()
  }

  /** @returns {[string, string][]} */
  credentials() {
    if (this.mode === 'right') return [['authorization', `Bearer ${this.ground.token}`]]
    return this.mode === 'wrong' ? [['authorization', 'Bearer not-the-right-one-at-all']] : []
  }

  /** Some requests name the agent in their path. @param {string} target */
  placed(target) {
    const isOwn = this.entry.steps.length < 2 && !/^\/(agents|health|ready|metrics|\?|$)/.test(target)
    return isOwn && this.random.chance(0.15) ? `/agents/${this.random.pick(['demo', 'asker'])}${target}` : target
  }

  async #playRequests() {
    const { random, entry } = this
    const { socket } = entry
    const steps = socket ? [upgrade(socket)] : this.#arranged(entry.steps)
    // Where there are several, most are as they should be, so that the next one has something to follow.
    const share = steps.length > 1 ? 0.35 : 0.92
    const planned = steps.map((step) => this.#plan(step, socket !== undefined || random.chance(share)))
    if (random.chance(steps.length > 1 ? 0.15 : 0.05)) {
      // All at once, and the first one twice.
      const wires = [...planned, ...planned.slice(0, 1)].map((make) => make())
      await Promise.all(wires.map((wire) => this.#send(wire)))
    } else for (const make of planned) await this.#send(make())
  }

  /** @param {readonly Request[]} steps @returns {Request[]} */
  #arranged(steps) {
    const { random } = this
    const arranged = [...steps]
    if (arranged.length < 2) return arranged
    const at = random.whole(0, arranged.length - 1)
    if (random.chance(0.15)) arranged.splice(at, 1)
    if (random.chance(0.15)) arranged.splice(at, 0, random.pick(steps))
    if (random.chance(0.1)) arranged.reverse()
    return arranged
  }

  /** Chooses everything now; ids are filled in when it is sent. @param {Request} step @param {boolean} mutated @returns {() => Wire} */
  #plan({ method, target, headers, body }, mutated) {
    const { random, entry } = this
    const isJson = body !== undefined && !Buffer.isBuffer(body)
    const kinds = mutated ? Array.from({ length: random.pick([1, 1, 1, 2, 2, 4]) }, () => this.#kind(body !== undefined, isJson)) : []
    if (entry.socket) kinds.push('http')
    let value = body
    for (const kind of kinds) if (kind === 'json') value = mutateJson(value, random)
    const text = isJson ? (kinds.includes('json') ? jsonText(value, random) : JSON.stringify(value)) : ''
    /** @type {Wire} */
    const wire = {
      method,
      target: this.placed(target),
      version: 'HTTP/1.1',
      headers: [['host', 'localhost'], ...this.credentials(), ...Object.entries(headers)],
      body: Buffer.isBuffer(body) ? body : Buffer.alloc(0),
      framing: 'length',
      pace: 'whole',
      after: undefined,
      twice: false,
      loose: entry.socket !== undefined,
      broken: entry.socket !== undefined,
    }
    if (isJson && !headers['content-type']) wire.headers.push(['content-type', 'application/json'])
    for (const kind of kinds) if (kind === 'http') mutateHttp(wire, random)
    const shaken = kinds.filter((kind) => kind === 'bytes').length
    const later = random.fork()
    return () => {
      const filled = {
        ...wire,
        target: this.ids.fill(wire.target, encodeURIComponent),
        headers: wire.headers.map(([name, given]) => /** @type {[string, string]} */ ([name, this.ids.fill(given)])),
      }
      if (isJson && wire.body.length === 0) filled.body = Buffer.from(this.ids.fill(text, (id) => JSON.stringify(id).slice(1, -1)))
      for (let time = 0; time < shaken; time++) filled.body = mutateBytes(filled.body, later)
      return filled
    }
  }

  /** @param {boolean} hasBody @param {boolean} isJson */
  #kind(hasBody, isJson) {
    if (!hasBody) return 'http'
    if (!isJson) return this.random.pick(['bytes', 'http'])
    return this.random.pick(['json', 'json', 'json', 'json', 'json', 'bytes', 'http', 'http'])
  }

  /** @param {Wire} wire */
  async #send(wire) {
    const { ground, entry, ids, mode } = this
    const { answers, heard, late, malformed, sent } = await send(ground.port, wire)
    this.sent = [...this.sent, sent]
    this.outcomes.push(answers[0] ? `${answers[0].status}${answers.length > 1 ? ' and more' : ''}` : 'closed')
    must(malformed === undefined, RULES.wellFormed, `${malformed}`)
    must(!late, RULES.answered, `nothing, or not all of it, came of ${heard.length} characters: ${heard.slice(0, 200)}`)
    const [first] = answers
    must(first || wire.broken, RULES.answered, 'the connection was closed without a word')
    checkText(heard, ground.hidden)
    // On a busy machine it is we who are too slow, and that is told before it is known what was asked for.
    const isLate = first?.status === 408
    for (const answer of answers)
      checkAnswer(answer, { form: entry.form, loose: wire.loose || isLate || answer !== first, isHead: wire.method === 'HEAD' })
    if (first && (mode === 'none' || mode === 'wrong') && !entry.isPublic && !wire.loose && !isLate) {
      must(first.status === 401 || first.status === 429, RULES.token, `${first.status} ${first.body.toString('utf8', 0, 300)}`)
    }
    ids.learn(heard)
  }
}

/** @param {NonNullable<Entry['socket']>} socket @returns {Request} an upgrade as a request, to be spoiled */
function upgrade({ target, headers }) {
  const asked = {
    connection: 'upgrade',
    upgrade: 'websocket',
    'sec-websocket-version': '13',
    'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
  }
  return { method: 'GET', target, headers: { ...asked, ...headers }, body: undefined }
}
