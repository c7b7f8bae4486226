// @ts-check
import { connect } from '../../../dist/client/node.js'
import { Numbers, rising } from '../numbers.js'
import { expected, Gone, must, Talker } from '../talker.js'

/** @typedef {import('../talker.js').Life} Life */
/** @typedef {import('../talker.js').TalkerOptions} TalkerOptions */
/** @typedef {import('../talker.js').Said} Said */
/** @typedef {import('../../../dist/client/index.js').Session} Session */

const RECONNECT = { attempts: 100_000, minMs: 10, maxMs: 80 }
const ENDS = new Set(['response.done', 'response.error', 'response.cancelled'])

/** Our own client: it comes back by itself, and what it was asked for has to end. Now and then another one takes over. */
export class ClientTalker extends Talker {
  /** @param {TalkerOptions} options @param {'websocket' | 'sse'} transport */
  constructor(options, transport) {
    super(options)
    this.#transport = transport
  }

  #transport
  #numbers = new Numbers()
  /** @type {import('../../../dist/client/index.js').Client | undefined} */
  #client
  /** @type {Session | undefined} */
  #session
  /** Where another client goes on. @type {import('../../../dist/client/index.js').Position | undefined} */
  #position
  /** In this life of the server. */
  #tookOver = false
  /** What was asked last, until it has ended. @type {Promise<void> | undefined} */
  #asking
  /** Responses that began, and how they ended. @type {Map<string, string | undefined>} */
  #answers = new Map()
  /** @type {Error | undefined} */
  #fault

  /** @override @param {Life} life */
  async talk(life) {
    const { random } = this
    await this.#back(life, random.chance(0.3))
    while (!life.over) {
      this.#asking ??= this.#ask(this.line())
      await Promise.race([this.#asking, life.gone])
      this.#assertSound()
      if (random.chance(0.1)) await this.pause(random.whole(1, 20))
    }
    throw new Gone('the server is gone')
  }

  /** @override @param {Life} life */
  async check(life) {
    await this.#back(life, false)
    if (this.#asking) await this.within('what our client was asked for ends', this.#asking)
    this.#assertSound()
    await this.until(
      'the end of a response is told',
      () => [...this.#answers.values()].every((end) => end !== undefined),
      () => `${[...this.#answers].flatMap(([id, end]) => (end === undefined ? [id] : [])).join(' ')} did not end`,
    )
    const line = this.line('told')
    const session = /** @type {Session} */ (this.#session)
    this.checkConversation(await this.within('a server that lives answers', session.say(line.said)))
    line.acked = true
    this.#assertSound()
  }

  /** @override */
  close() {
    this.#client?.close()
  }

  #assertSound() {
    if (this.#fault) throw this.#fault
  }

  /** @param {Life} life @param {boolean} takesOver another client goes on, even if this one could */
  async #back({ url }, takesOver) {
    this.#tookOver = false
    if (this.#session && !takesOver) return
    const position = (this.#position = this.#session?.position ?? this.#position)
    this.#session = undefined
    this.#tookOver = position !== undefined
    this.#client?.close()
    await this.#asking?.catch(() => undefined)
    this.note(position ? `another client takes over after ${position.after}` : 'opens a session')
    const client = connect(url, {
      transport: this.#transport,
      reconnect: RECONNECT,
      onStatus: (status) => {
        this.note(`is ${status}`)
        if (status === 'open' && this.#session) this.stage('resumed')
      },
    })
    this.#client = client
    try {
      const onApproval = async () => {
        this.stage('asked')
        return true
      }
      const session = await this.within('a session is there', client.session({ onApproval, ...(position && { resume: position }) }))
      this.#session = session
      void this.#watch(session, position?.after ?? 0)
      this.stage(position ? 'resumed' : 'opened', session.id)
    } catch (thrown) {
      if (/** @type {any} */ (thrown).code === 'unreachable') throw new Gone('unreachable', { cause: thrown })
      throw thrown
    }
  }

  /** Every event that the client gives. @param {Session} session @param {number} after */
  async #watch(session, after) {
    const rises = rising('what our client gives', after)
    try {
      for await (const event of session) {
        if (event.seq === undefined) continue
        rises(event.seq)
        this.#numbers.see(event.seq, event)
        const id = 'response_id' in event ? event.response_id : undefined
        if (event.type !== 'response.delta') this.note(`heard ${event.seq} ${event.type} ${id ?? ''}`)
        if (id === undefined) continue
        const before = this.#answers.get(id)
        must(
          before === undefined,
          'nothing follows the end of a response',
          `${id} ended with ${before}, and ${event.type} came at ${event.seq}`,
        )
        this.#answers.set(id, ENDS.has(event.type) ? event.type : undefined)
        if (event.type === 'response.created') this.stage('begun')
        if (event.type === 'response.delta') this.stage('delta')
        if (ENDS.has(event.type)) this.stage('ended', id)
        this.changed()
      }
    } catch (thrown) {
      if (/** @type {any} */ (thrown).code !== 'closed') this.#fault ??= this.fault(thrown)
    }
    this.changed()
  }

  /** @param {Said} line */
  async #ask(line) {
    const session = /** @type {Session} */ (this.#session)
    const whole = expected(line.said)
    let text = ''
    try {
      this.note(`asks ${line.said}`)
      const asked = session.ask(line.said)
      this.stage('sent')
      for await (const event of asked) {
        line.acked = true
        if (event.type === 'response.delta' && event.delta.type === 'text') text += event.delta.text
      }
      must(whole === undefined || text === whole, 'an answer that is done is complete', `${line.said} has ${text.slice(-80)}`)
    } catch (thrown) {
      const { code } = /** @type {any} */ (thrown)
      this.note(`${line.marker} ends with ${code ?? thrown}`)
      if (code === 'interrupted') line.acked = true
      // Another client takes over, or has: what the one before had sent may only now be answered.
      else if (code !== 'closed' && !(this.#tookOver && code === 'response_in_progress')) this.#fault ??= this.fault(thrown)
    } finally {
      this.#asking = undefined
      this.changed()
    }
  }
}
