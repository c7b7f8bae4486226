// @ts-check
import { Numbers } from '../numbers.js'
import { expected, Gone, must, Talker } from '../talker.js'
import { eventsOf, request } from '../../support/killed/wire.js'

/** @typedef {import('../talker.js').Life} Life */
/** @typedef {import('../talker.js').Said} Said */
/** @typedef {{ id: string, cursor: string | undefined, line: Said | undefined, text: string, acked: boolean }} Run */

const ENDS = new Set(['RUN_FINISHED', 'RUN_ERROR'])

/** AG-UI: runs of one thread that go on without their client, and are read again after a kill. */
export class AgUiTalker extends Talker {
  #numbers = new Numbers()
  #thread = crypto.randomUUID()
  #runs = 0
  /** Told of, and not known to have ended. @type {Run | undefined} */
  #open
  /** The interrupt that the thread waits for, and the message that led to it. @type {{ id: string, message: object | undefined } | undefined} */
  #question
  /** @type {object | undefined} */
  #message
  /** How runs ended. @type {Map<string, { end: string, text: string }>} */
  #ended = new Map()

  /** @override @param {Life} life */
  async talk({ url }) {
    for (;;) {
      await this.#settle(url)
      await this.#act(url)
    }
  }

  /** @override @param {Life} life */
  async check({ url }) {
    await this.#settle(url)
    for (const [id, { end, text }] of [...this.#ended].slice(-5)) {
      const again = await this.within('a run can be read again', this.#reread(url, id))
      must(again.end === end, 'what was told as ended is not taken back', `${id} was ${end}, is ${again.end}`)
      if (end === 'success')
        must(again.text === text, 'a run is told again as it was', `${id} was ${text.slice(-40)}, is ${again.text.slice(-40)}`)
    }
    let told = ''
    // Of a run that nobody was told of there may be a question: it has to be answered first.
    for (let tries = 0; told === ''; tries++) {
      must(tries < 5, 'a server that lives answers', 'no run is taken')
      const line = this.#question ? undefined : this.line('told')
      told = await this.#act(url, line)
      if (!line?.said) told = ''
      if (line && told === '') this.said.pop()
    }
    this.checkConversation(told)
  }

  /** A new run: an answer, if one is waited for. @param {string} url @param {Said} [given] @returns {Promise<string>} what was said; empty where it was not taken */
  async #act(url, given) {
    const question = this.#question
    const line = question ? undefined : (given ?? this.line())
    if (line) this.#message = { id: line.marker, role: 'user', content: line.said }
    const message = question ? question.message : this.#message
    /** @type {Run} */
    const run = { id: `${this.#thread}-${++this.#runs}`, cursor: undefined, line, text: '', acked: false }
    const body = {
      threadId: this.#thread,
      runId: run.id,
      protocolVersion: '1.0',
      messages: message ? [message] : [],
      forwardedProps: { uamp: { detach: true, join: true } },
      ...(question && { resume: [{ interruptId: question.id, status: 'resolved', payload: { approved: true } }] }),
    }
    this.note(`runs ${run.id} ${line?.said ?? 'with an answer'}`)
    const posted = request(`${url}/ag-ui`, { body, headers: { accept: 'text/event-stream' } })
    this.stage('sent')
    const response = await this.within('a server that lives answers', posted)
    if (response.status === 200) {
      await this.#read(response, run)
      return run.text
    }
    const { error } = await response.json().catch((/** @type {unknown} */ thrown) => {
      throw new Gone(String(thrown))
    })
    this.note(`refused: ${response.status} ${JSON.stringify(error)}`)
    const { code, interrupts } = error.details ?? {}
    // A run that was not told of may have begun, and have asked or been answered.
    if (code === 'interrupt_pending') this.#question = { id: interrupts[0], message: undefined }
    else if (code === 'unknown_interrupt' && question) this.#question = undefined
    else must(false, 'nothing is refused', `${response.status} ${JSON.stringify(error)}`)
    return ''
  }

  /** @param {Response} response @param {Run} run @returns {Promise<boolean>} whether its end was told */
  async #read(response, run) {
    for await (const { id, data } of eventsOf(response)) {
      const event = JSON.parse(data)
      if (!run.acked) {
        must(event.type === 'RUN_STARTED', 'a run begins with its beginning', data)
        run.acked = true
        if (run.line) run.line.acked = true
        else this.stage('answered')
        this.#question = undefined
        this.#open = run
        this.stage('acked', run.id)
        this.stage('begun')
      }
      must(id !== undefined && isAfter(id, run.cursor), 'numbers only rise', `${id} came after ${run.cursor} in ${run.id}`)
      this.#see(id, event)
      run.cursor = id
      if (event.type === 'TEXT_MESSAGE_CONTENT') {
        run.text += event.delta
        this.stage('delta')
      } else this.note(`heard ${id} ${event.type}`)
      if (!ENDS.has(event.type)) continue
      this.#end(run, event)
      return true
    }
    return false
  }

  /** @param {Run} run @param {any} event */
  #end(run, event) {
    this.#open = undefined
    const end = endOf(event)
    this.#ended.set(run.id, { end, text: run.text })
    this.stage('ended', `${run.id} ${end}`)
    if (event.outcome?.type === 'interrupt') {
      this.#question = { id: event.outcome.interrupts[0].id, message: this.#message }
      this.stage('asked')
      return
    }
    const whole = run.line && expected(run.line.said)
    if (whole === undefined) return
    if (end === 'success') must(run.text === whole, 'an answer that is done is complete', `${run.line?.said} has ${run.text.slice(-80)}`)
    else must(whole.startsWith(run.text), 'what is left of an answer is its beginning', `${run.line?.said} has ${run.text.slice(-80)}`)
  }

  /** A run that was told of ends, and whoever comes back for it is told how. @param {string} url */
  async #settle(url) {
    const run = this.#open
    if (!run) return
    this.note(`comes back for ${run.id} after ${run.cursor}`)
    const headers = run.cursor === undefined ? {} : { 'last-event-id': run.cursor }
    const response = await this.within('a run that was told of is there', request(`${url}/ag-ui/runs/${run.id}`, { headers }))
    must(response.status === 200, 'a run that was told of is there', () => `${response.status} of ${run.id}`)
    this.stage('resumed')
    const isEnded = await this.within('the end of a run is told', this.#read(response, run))
    must(isEnded, 'the end of a run is told', `${run.id} after ${run.cursor} has none`)
  }

  /** The time of an event is told live alone. @param {string} number @param {{ timestamp?: number }} event */
  #see(number, { timestamp: _, ...event }) {
    this.#numbers.see(number, event)
  }

  /** @param {string} url @param {string} id */
  async #reread(url, id) {
    const response = await request(`${url}/ag-ui/runs/${id}`)
    must(response.status === 200, 'a run that was told of is there', () => `${response.status} of ${id}`)
    let [text, end] = ['', '']
    for await (const { id: number, data } of eventsOf(response)) {
      const event = JSON.parse(data)
      this.#see(number ?? '', event)
      if (event.type === 'TEXT_MESSAGE_CONTENT') text += event.delta
      if (ENDS.has(event.type)) end = endOf(event)
    }
    return { text, end }
  }
}

/** @param {any} event */
function endOf({ type, code, outcome }) {
  return type === 'RUN_ERROR' ? `error ${code}` : outcome.type
}

/** Of the events that one event of the log becomes, only the last has the bare number. @param {string} id @param {string | undefined} before */
function isAfter(id, before = '0') {
  const [number = 0, part = Infinity] = placeIn(id)
  const [beforeNumber = 0, beforePart = Infinity] = placeIn(before)
  return number > beforeNumber || (number === beforeNumber && part > beforePart)
}

/** Without the mark of its run, which stands last. @param {string} id */
function placeIn(id) {
  return id.replace(/-.*$/, '').split('.').map(Number)
}
