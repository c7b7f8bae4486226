// @ts-check
import { expected, Gone, must, Talker } from '../talker.js'
import { openSocket } from '../../support/killed/wire.js'

/** @typedef {import('../talker.js').Life} Life */
/** @typedef {import('../talker.js').Said} Said */
/** @typedef {{ send(message: object): void, close(): void }} Socket */

/** Omnia: one session, taken up again with `?resume` after each kill. It has no numbers; ends are known by their response. */
export class OmniaTalker extends Talker {
  /** @type {string | undefined} */
  #session
  /** @type {Socket | undefined} */
  #socket
  /** What was said last, until its end was told. @type {Said | undefined} */
  #open
  /** What was said before a kill, and nothing heard of since: it may have been answered or not. @type {Said | undefined} */
  #doubtful
  /** The answer to it, as it was told with its end. */
  #answer = ''
  /** Calls that were put. @type {Set<string>} */
  #calls = new Set()
  /** How responses ended. @type {Map<string, string>} */
  #ends = new Map()
  /** @type {Error | undefined} */
  #fault
  #isConnected = false
  /** What was said last was refused, as something is still being told: it had no effect, and is said again. */
  #isBusy = false

  /** @override @param {Life} life */
  async talk(life) {
    await this.#back(life)
    for (;;) await this.#say(this.line())
  }

  /** @override @param {Life} life */
  async check(life) {
    await this.#back(life)
    this.checkConversation(await this.#say(this.line('told')))
    this.#socket?.close()
  }

  /** @override */
  close() {
    this.#socket?.close()
  }

  /** @param {Life} life */
  async #back({ url }) {
    this.#isConnected = false
    const resume = this.#session === undefined ? '' : `&resume=${this.#session}`
    this.note(resume === '' ? 'opens a session' : 'comes back')
    /** @type {Socket | undefined} */
    let socket
    socket = await openSocket(`${url}/omnia?agent=chaos${resume}`, {
      message: (message) => {
        try {
          this.#hear(message)
        } catch (thrown) {
          this.#fault ??= this.fault(thrown)
        }
        this.changed()
      },
      closed: () => {
        if (this.#socket === socket) this.#socket = undefined
        this.changed()
      },
    })
    this.#socket = socket
    await this.#wait('a session is there', () => this.#isConnected)
    this.stage(resume === '' ? 'opened' : 'resumed', this.#session)
    const open = this.#open
    this.#doubtful = undefined
    if (open && !open.acked) {
      this.#doubtful = open
      this.#open = undefined
    }
    // Whoever heard something of an answer is told how it ended; of what was not heard of, perhaps.
    if (open?.acked)
      await this.#wait(
        'the end of a response is told',
        () => this.#open !== open,
        () => `no end of ${open.said}`,
      )
  }

  /** @param {any} message */
  #hear(message) {
    const { type, session_id: id, content = '', error, ext } = message
    if (type !== 'chunk') this.note(`heard ${type} ${JSON.stringify(error ?? ext?.status ?? '')} ${content.slice(0, 40)}`)
    if (type === 'connected') {
      must(
        this.#session === undefined || (id === this.#session && message.connected.resumed),
        'a session is there',
        `${id} came for ${this.#session}`,
      )
      this.#session = id
      this.#isConnected = true
    } else if (type === 'chunk') {
      this.#acked(content)
      this.stage('delta')
    } else if (type === 'tool_call') {
      const { id: call } = message.tool_call
      // One of an answer that is told again says nothing of the newest.
      if (this.#open && !this.#calls.has(call)) this.#open.acked = true
      this.#calls.add(call)
      this.stage('asked')
      this.#socket?.send({ type: 'tool_result', tool_result: { call_id: message.tool_call.id, result: true } })
      this.stage('answered')
    } else if (type === 'done') this.#done(content, ext)
    else if (error?.code === 'RATE_LIMITED') this.#isBusy = true
    else if (type === 'error') must(isExpected(error), 'nothing is refused', JSON.stringify(error))
  }

  /** @param {string} text */
  #acked(text) {
    const open = this.#open
    if (!open || open.acked || !isAbout(text, open)) return
    open.acked = true
    this.stage('acked')
    this.stage('begun')
  }

  /** @param {string} content @param {any} ext */
  #done(content, { response_id: id, status }) {
    const before = this.#ends.get(id)
    must(before === undefined || before === status, 'what was told as ended is not taken back', `${id} was ${before}, is ${status}`)
    this.#ends.set(id, status)
    // Of what was told before it may be told again how it ended.
    if (before !== undefined) return
    const line = [this.#open, this.#doubtful].find((each) => each && isAbout(content, each))
    if (content === '' && status !== 'completed') return this.#cutShort(id)
    if (!line) return
    const whole = expected(line.said) ?? content
    if (status === 'completed') must(content === whole, 'an answer that is done is complete', `${line.said} has ${content.slice(-80)}`)
    else must(whole.startsWith(content), 'what is left of an answer is its beginning', `${line.said} has ${content.slice(-80)}`)
    line.acked = true
    if (line === this.#doubtful) this.#doubtful = undefined
    else this.#open = undefined
    this.#answer = status === 'completed' ? content : ''
    this.stage('ended', `${id} ${status}`)
  }

  /** An answer died before its first word was kept, and does not say which it was: one from before the kill. @param {string} id */
  #cutShort(id) {
    if (this.#open?.acked) this.#open = undefined
    this.#doubtful = undefined
    this.stage('ended', `${id} cut short`)
  }

  /** @param {Said} line @returns {Promise<string>} */
  async #say(line) {
    this.#open = line
    do {
      this.#isBusy = false
      this.note(`says ${line.said}`)
      if (!this.#socket) throw new Gone('the connection was lost')
      this.#socket.send({ type: 'message', session_id: this.#session, content: line.said })
      this.stage('sent')
      await this.#wait(
        'an answer ends',
        () => this.#open !== line || this.#isBusy,
        () => `no end of ${line.said}`,
      )
      if (this.#isBusy) await this.pause(20)
    } while (this.#isBusy)
    return this.#answer
  }

  /** @param {string} rule @param {() => boolean} test @param {() => string} [what] */
  #wait(rule, test, what) {
    return this.until(
      rule,
      () => {
        if (this.#fault) throw this.#fault
        if (test()) return true
        if (!this.#socket) throw new Gone('the connection was lost')
        return undefined
      },
      what,
    )
  }
}

/** @param {string} content @param {Said} line */
function isAbout(content, { marker, said }) {
  return content.startsWith(`${marker} `) || content === marker || (content.startsWith('[{') && said.endsWith('told'))
}

/** @param {any} error */
function isExpected({ code, details, message }) {
  if (details?.code === 'interrupted') return true
  // A call that is put again may have been answered before.
  return code === 'INVALID_MESSAGE' && message === 'no pending tool call'
}
