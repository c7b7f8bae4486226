// @ts-check
import { Numbers, rising } from '../numbers.js'
import { expected, Gone, must, Talker, Violation } from '../talker.js'
import { CREATE } from '../../support/killed/events-wire.js'

/** @typedef {import('../talker.js').Life} Life */
/** @typedef {import('../talker.js').TalkerOptions} TalkerOptions */
/** @typedef {import('../../support/killed/events-wire.js').Binding} Binding */
/** @typedef {import('../../support/killed/events-wire.js').Hears} Hears */
/** @typedef {import('../../support/killed/events-wire.js').Link} Link */

const ENDS = new Set(['response.done', 'response.error', 'response.cancelled'])

/** What became of one `response.create`. @typedef {{ said: string, acked: boolean, response?: string }} Asked */
/** What became of one response. @typedef {{ begun: number, end?: { seq: number, type: string }, text: string }} Answer */

/** A raw client of UAMP events: it keeps its place, and sends again what was not acknowledged. */
export class EventsTalker extends Talker {
  /** @param {TalkerOptions} options @param {Binding} binding */
  constructor(options, binding) {
    super(options)
    this.#binding = binding
  }

  #binding
  #ids = 0
  /** @type {string | undefined} */
  #session
  #cursor = 0
  #numbers = new Numbers()
  /** Not acknowledged, in order. @type {any[]} */
  #outbox = []
  /** By the id of the event that asked. @type {Map<string, Asked>} */
  #asked = new Map()
  /** @type {Map<string, Answer>} */
  #answers = new Map()
  /** Open questions. @type {Map<string, string>} */
  #questions = new Map()
  /** @type {Link | undefined} */
  #link

  /** @override @param {Life} life */
  async talk(life) {
    await this.#back(life)
    for (;;) {
      await this.#settle()
      await this.#act()
    }
  }

  /** @override @param {Life} life */
  async check(life) {
    await this.#back(life)
    await this.#settle()
    const told = await this.#exchange(this.line('told').said)
    this.checkConversation(told.text)
    await this.#replay(life)
    this.#link?.close()
  }

  /** @override */
  close() {
    this.#link?.close()
  }

  /** @param {Life} life */
  async #back({ url }) {
    this.#link = undefined
    /** @type {Link | undefined} */
    let link
    // Now and then as another device would: from the beginning.
    const after = this.random.chance(0.3) ? 0 : this.#cursor
    const rises = rising('a stream that goes on', after)
    /** @type {Hears} */
    const hears = {
      event: (event) => {
        try {
          if (event.seq !== undefined) rises(event.seq)
          this.#hear(event)
        } catch (thrown) {
          this.#fault ??= this.fault(thrown)
          this.changed()
        }
      },
      acked: (ids) => this.#acked(ids),
      refused: (id, error) => this.#refused(id, error),
      closed: () => {
        if (this.#link === link) this.#link = undefined
        this.changed()
      },
    }
    const session = this.#session
    if (session === undefined) {
      this.note('opens a session')
      const opened = await this.within('a session is opened', this.#binding.open(url, { ...CREATE, event_id: this.#id() }, hears))
      this.#session = opened.session
      this.#link = link = opened.link
      this.stage('opened', opened.session)
    } else {
      this.note(`comes back after ${after}`)
      this.#link = link = await this.within('a session is there', this.#binding.follow(url, { session, after }, hears))
      this.stage('resumed')
      if (this.#outbox.length > 0) this.#transmit(this.#outbox)
    }
  }

  #id() {
    return `${this.name.replaceAll(' ', '-')}-${++this.#ids}`
  }

  /** @param {any} event */
  #hear(event) {
    const { type, seq, response_id: id } = event
    if (seq === undefined) return
    if (type !== 'response.delta') this.note(`heard ${seq} ${type} ${id ?? ''} ${event.error?.code ?? ''}`)
    this.#numbers.see(seq, event)
    this.#numbers.see(event.event_id, event)
    if (seq <= this.#cursor) return
    this.#cursor = seq
    this.#follow(event, this.#answers, this.#asked)
    if (type === 'response.created') this.stage('begun')
    else if (type === 'capabilities' || type === 'session.updated') this.stage('aside')
    else if (type === 'response.delta') this.stage('delta')
    else if (ENDS.has(type) && id !== undefined) {
      for (const [question, response] of this.#questions) if (response === id) this.#questions.delete(question)
      this.stage('ended', id)
    } else if (type === 'x.approval.request') {
      this.#questions.set(event.approval_id, id)
      this.stage('asked')
    }
    this.changed()
  }

  /** How responses begin and end, as one reading of the log has it. @param {any} event @param {Map<string, Answer>} answers @param {Map<string, Asked>} asked */
  #follow(event, answers, asked) {
    const { type, seq, response_id: id } = event
    if (id === undefined) return
    const answer = answers.get(id) ?? { begun: 0, text: '' }
    answers.set(id, answer)
    const request = event.extensions?.uamp?.request
    const asking = request === undefined ? undefined : asked.get(request)
    if (asking) {
      must(
        asking.response === undefined || asking.response === id,
        'a request has one response',
        `${request} has ${asking.response}, ${id}`,
      )
      asking.response = id
    }
    if (type === 'response.created') {
      // What a killed process had told and not committed is told again by the next one, far above.
      must(answer.begun === 0 || seq - answer.begun > 10_000, 'a response begins once', `${id} began at ${answer.begun} and at ${seq}`)
      answer.begun = seq
    }
    must(!answer.end, 'nothing follows the end of a response', () => `${id} ended at ${answer.end?.seq}, and ${type} came at ${seq}`)
    if (type === 'response.delta') answer.text += event.delta?.text ?? ''
    if (ENDS.has(type)) answer.end = { seq, type: event.error ? `${type} ${event.error.code}` : type }
  }

  /** @param {readonly string[]} ids */
  #acked(ids) {
    const mine = this.#outbox.filter((event) => ids.includes(event.event_id))
    if (mine.length === 0) return
    for (const { event_id, marker } of mine) {
      const asked = this.#asked.get(event_id)
      if (asked) asked.acked = true
      for (const said of this.said) if (said.marker === marker) said.acked = true
    }
    this.#outbox = this.#outbox.filter(({ event_id }) => !ids.includes(event_id))
    this.stage('acked', ids.join(' '))
    this.changed()
  }

  /** @param {string | undefined} id @param {any} error */
  #refused(id, error) {
    const event = this.#outbox.find(({ event_id }) => event_id === id)
    this.note(`refused ${id} ${event?.type} ${JSON.stringify(error)}`)
    this.#outbox = this.#outbox.filter((each) => each !== event)
    // What was to be stopped or answered may be over.
    const mayBeLate = event?.type === 'response.cancel' || event?.type === 'x.approval.response'
    if (!mayBeLate || error?.code !== 'not_found')
      this.#fault ??= new Violation('nothing is refused', `${event?.type}: ${JSON.stringify(error)}`)
    this.changed()
  }

  /** What was found while nobody waited. @type {Violation | undefined} */
  #fault

  /** @param {any[]} events */
  #transmit(events) {
    this.note(`sends ${events.map(({ type, event_id, marker = '' }) => `${type} ${event_id} ${marker}`).join(', ')}`)
    if (!this.#link) throw new Gone('no connection')
    this.#link.send(events.map(({ marker: _, ...event }) => ({ session_id: this.#session, ...event })))
    this.stage('sent')
  }

  /** Sends, and goes on at once. @param {any[]} events */
  #send(events) {
    const all = events.map((event) => ({ event_id: this.#id(), ...event }))
    this.#outbox.push(...all)
    for (const event of all)
      if (event.type === 'response.create') this.#asked.set(event.event_id, { said: this.said.at(-1)?.said ?? '', acked: false })
    this.#transmit(all)
    return all
  }

  /** @template T @param {string} rule @param {() => T | undefined | false} test @param {() => string} [what] */
  #wait(rule, test, what) {
    return this.until(
      rule,
      () => {
        if (this.#fault) throw this.#fault
        const found = test()
        if (!found && !this.#link) throw new Gone('the connection was lost')
        return found
      },
      what,
    )
  }

  /** Everything that was sent is acknowledged, and every response that was acknowledged has ended. */
  async #settle() {
    await this.#wait(
      'what is sent again is acknowledged',
      () => this.#outbox.length === 0,
      () => this.#outbox.map(({ type }) => type).join(),
    )
    for (const [id, asked] of this.#asked) {
      if (!asked.acked) continue
      await this.#wait(
        'an acknowledged response.create has a response',
        () => asked.response,
        () => `nobody names ${id}`,
      )
      await this.#ended(/** @type {string} */ (asked.response))
    }
    for (const [id] of this.#answers) await this.#ended(id)
  }

  /** @param {string} id @returns {Promise<Answer>} */
  async #ended(id) {
    let answering = false
    return this.#wait(
      'the end of a response is told',
      () => {
        const answer = this.#answers.get(id)
        if (answer?.end) return answer
        const [question] = this.#questions.keys()
        if (question !== undefined && !answering) {
          answering = true
          this.#questions.delete(question)
          this.#send([{ type: 'x.approval.response', approval_id: question, approved: true }])
          this.stage('answered')
        }
        return undefined
      },
      () => `no end of ${id}, after ${this.#cursor}`,
    )
  }

  async #act() {
    const { random } = this
    // What is told outside of a response has a number too.
    if (random.chance(0.15)) return void this.#send([{ type: 'capabilities.query' }])
    if (random.chance(0.1)) return void this.#send([{ type: 'session.update', session: { instructions: `${random.whole(0, 9)}` } }])
    const line = this.line()
    const input = { type: 'input.text', text: line.said, marker: line.marker }
    const create = { type: 'response.create' }
    const dice = random.next()
    if (dice < 0.15) return void this.#send([input])
    if (dice < 0.4) {
      this.#send([input])
      await this.#wait('an input is acknowledged', () => this.#outbox.length === 0)
      this.#send([create])
    } else this.#send([input, create])
    const asked = /** @type {Asked} */ ([...this.#asked.values()].at(-1))
    if (random.chance(0.2)) {
      await this.#wait('a response begins', () => asked.response)
      const more = this.line('count 3 0')
      this.#send([{ type: 'input.text', text: more.said, marker: more.marker }])
    }
    if (random.chance(0.1)) {
      await this.#wait('a response begins', () => asked.response)
      this.#send([{ type: 'response.cancel' }])
    }
    if (random.chance(0.1)) await this.pause(random.whole(1, 20))
  }

  /** @param {string} said */
  async #exchange(said) {
    const marker = said.split(' ', 1)[0]
    const [, create] = this.#send([{ type: 'input.text', text: said, marker }, { type: 'response.create' }])
    const asked = /** @type {Asked} */ (this.#asked.get(create.event_id))
    const id = await this.#wait('a response begins', () => asked.response)
    const answer = await this.#ended(id)
    must(answer.end?.type === 'response.done', 'a server that lives answers', () => `${id} ended with ${answer.end?.type}`)
    return answer
  }

  /** The whole log again: the same events under the same numbers, and each response with one end. @param {Life} life */
  async #replay({ url }) {
    const session = /** @type {string} */ (this.#session)
    const until = this.#cursor
    const rises = rising('the whole log')
    let at = 0
    let lost = false
    /** @type {Map<string, Answer>} */
    const answers = new Map()
    /** @type {Map<string, Asked>} */
    const asked = new Map([...this.#asked].map(([id, { said, acked }]) => [id, { said, acked }]))
    /** @type {Error | undefined} */
    let fault
    const link = await this.#binding.follow(
      url,
      { session, after: 0 },
      {
        event: (event) => {
          if (event.seq === undefined || fault !== undefined) return
          try {
            rises(event.seq)
            this.#numbers.see(event.seq, event)
            this.#follow(event, answers, asked)
          } catch (error) {
            fault = this.fault(error)
          }
          at = event.seq
          if (at >= until || fault) this.changed()
        },
        acked: () => undefined,
        refused: () => undefined,
        closed: () => {
          lost = true
          this.changed()
        },
      },
    )
    await this.until(
      'the log can be read from its beginning',
      () => at >= until || lost || fault !== undefined,
      () => `it stops at ${at} of ${until}`,
    )
    link.close()
    if (fault !== undefined) throw fault
    must(at >= until, 'the log can be read from its beginning', `it was cut at ${at} of ${until}`)
    for (const [id, { end }] of this.#answers) {
      const now = answers.get(id)
      must(
        now?.end?.seq === end?.seq && now?.end?.type === end?.type,
        'what was told as ended is not taken back',
        () => `${id} ${JSON.stringify(end)}, now ${JSON.stringify(now?.end)}`,
      )
    }
    for (const [id, { said, acked, response }] of asked) {
      must(!acked || response !== undefined, 'an acknowledged response.create has a response', `nothing in the log names ${id}`)
      const answer = answers.get(response ?? '')
      const whole = expected(said)
      if (whole === undefined || !answer) continue
      if (answer.end?.type === 'response.done')
        must(answer.text === whole, 'an answer that is done is complete', `${said} has ${answer.text.slice(-80)}`)
      else must(whole.startsWith(answer.text), 'what is left of an answer is its beginning', `${said} has ${answer.text.slice(-80)}`)
    }
  }
}
