// @ts-check
import { Numbers } from '../numbers.js'
import { expected, Gone, must, Talker } from '../talker.js'
import { call, eventsOf, request } from '../../support/killed/wire.js'

/** @typedef {import('../talker.js').Life} Life */
/** @typedef {import('../talker.js').Said} Said */

const HEADERS = { 'a2a-version': '1.0' }
const OVER = new Set(['TASK_STATE_COMPLETED', 'TASK_STATE_FAILED', 'TASK_STATE_CANCELED', 'TASK_STATE_REJECTED'])
const ASKS = 'TASK_STATE_INPUT_REQUIRED'

/** A2A 1.0 over REST: tasks of one context, sent, streamed, subscribed to and looked at. */
export class A2aTalker extends Talker {
  #numbers = new Numbers()
  /** @type {string | undefined} */
  #context
  #messages = 0
  /** Told of, and not known to be over. @type {{ id: string, cursor: string | undefined, line: Said } | undefined} */
  #open
  /** @type {Map<string, { state: string, line: Said }>} */
  #over = new Map()
  /** The newest task waits for an answer. */
  #asks = false

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
    while (this.#open) {
      await this.#act(url)
      await this.#settle(url)
    }
    for (const [id, { state, line }] of [...this.#over].slice(-6)) this.#checkTask(await this.#get(url, id), state, line)
    const line = this.line('told')
    const { status, body } = await this.within(
      'a server that lives answers',
      call(`${url}/a2a/rest/message:send`, { headers: HEADERS, body: this.#request(line.said) }),
    )
    must(
      status === 200 && body.task?.status.state === 'TASK_STATE_COMPLETED',
      'a server that lives answers',
      () => `${status} ${JSON.stringify(body)}`,
    )
    line.acked = true
    this.#context ??= body.task.contextId
    this.checkConversation(textOf(body.task), this.#inContext())
  }

  /** What was said before a context was told of is in another one. */
  #inContext() {
    return this.said.slice(this.said.findIndex(({ acked }) => acked))
  }

  /** @param {string} text @param {string} [taskId] */
  #request(text, taskId) {
    const message = {
      messageId: `${this.name}-${++this.#messages}`,
      role: 'ROLE_USER',
      parts: [{ text }],
      contextId: this.#context,
      taskId,
    }
    return { message, configuration: { returnImmediately: this.random.chance(0.5) && !text.endsWith('told') } }
  }

  /** @param {string} url */
  async #act(url) {
    const asking = this.#asks ? this.#open : undefined
    const line = asking?.line ?? this.line()
    const body = this.#request(asking ? 'yes' : line.said, asking?.id)
    const stream = this.random.chance(0.6)
    this.note(`posts ${JSON.stringify(body)}${stream ? ', streamed' : ''}`)
    const posted = request(`${url}/a2a/rest/message:${stream ? 'stream' : 'send'}`, { headers: HEADERS, body })
    this.stage('sent')
    const response = await this.within('a server that lives answers', posted)
    if (stream && response.status === 200) return this.#read(response, line)
    const answer = await response.json().catch((/** @type {unknown} */ error) => {
      throw new Gone(String(error))
    })
    must(response.status === 200, 'nothing is refused', () => `${response.status} ${JSON.stringify(answer)}`)
    this.#told(answer.task, line)
    this.#see(answer.task.status.state)
  }

  /** @param {any} task @param {Said} line */
  #told({ id, contextId }, line) {
    must(this.#context === undefined || this.#context === contextId, 'a context goes on', `${contextId}, not ${this.#context}`)
    this.#context = contextId
    line.acked = true
    if (this.#open?.id === id) return
    this.#open = { id, cursor: undefined, line }
    this.#asks = false
    this.stage('acked', id)
  }

  /** @param {string} state */
  #see(state) {
    const open = this.#open
    if (!open) return
    const before = this.#asks
    this.#asks = state === ASKS
    if (before && !this.#asks) this.stage('answered')
    if (this.#asks) this.stage('asked')
    if (!OVER.has(state)) return
    this.#over.set(open.id, { state, line: open.line })
    this.#open = undefined
    this.stage('ended', `${open.id} ${state}`)
  }

  /** @param {Response} response @param {Said} line */
  async #read(response, line) {
    /** @type {string | undefined} */
    let state
    for await (const { id, data } of eventsOf(response)) {
      const event = JSON.parse(data)
      const { task, statusUpdate, artifactUpdate } = event
      if (task) this.#told(task, line)
      const open = this.#open
      must(open, 'nothing follows the end of a task', data)
      if (id !== undefined) {
        // The task itself is told as it is then.
        if (!task) this.#numbers.see(`${open.id} ${id}`, event)
        must(isAfter(id, open.cursor) || task, 'numbers only rise', `${id} came after ${open.cursor}`)
        open.cursor = id
      }
      state = task?.status.state ?? statusUpdate?.status.state ?? state
      if (!artifactUpdate) this.note(`heard ${id} ${state}`)
      else this.stage('delta')
      if (state === 'TASK_STATE_WORKING' && statusUpdate) this.stage('begun')
      if (state !== undefined && (OVER.has(state) || state === ASKS)) {
        this.#see(state)
        return
      }
    }
    throw new Gone('the stream ended')
  }

  /** A task that was told of is over, or asks; and whoever follows it is told so. @param {string} url */
  async #settle(url) {
    const open = this.#open
    if (!open) return
    // An answer that was not acknowledged may have been taken.
    if (this.#asks) return this.#see((await this.#get(url, open.id)).status.state)
    this.note(`comes back for ${open.id} after ${open.cursor}`)
    if (open.cursor !== undefined && this.random.chance(0.7)) {
      const headers = { ...HEADERS, 'last-event-id': open.cursor }
      const response = await this.within(
        'a task that was told of is there',
        request(`${url}/a2a/rest/tasks/${open.id}:subscribe`, { headers }),
      )
      must(response.status === 200, 'a task that was told of is there', () => `${response.status} of ${open.id}`)
      this.stage('resumed')
      const read = this.#read(response, open.line).catch((/** @type {unknown} */ thrown) => {
        if (thrown instanceof Gone && thrown.message === 'the stream ended') return undefined
        throw thrown
      })
      await this.within('the end of a task is told', read)
      must(this.#open !== open || this.#asks, 'the end of a task is told', `the stream of ${open.id} after ${open.cursor} has none`)
      return
    }
    this.stage('resumed')
    const deadline = Date.now() + this.patienceMs
    for (;;) {
      const { state } = (await this.#get(url, open.id)).status
      if (OVER.has(state) || state === ASKS) return this.#see(state)
      must(Date.now() < deadline, 'the end of a task is told', `${open.id} is ${state} for ever`)
      await this.pause(5)
    }
  }

  /** @param {any} task @param {string} state @param {Said} line */
  #checkTask(task, state, line) {
    const text = textOf(task)
    must(task.status.state === state, 'what was told as ended is not taken back', `${task.id} was ${state}, is ${task.status.state}`)
    const said = (task.history ?? []).filter((/** @type {any} */ { parts }) =>
      parts.some((/** @type {any} */ part) => part.text === line.said),
    )
    must(said.length === 1, 'an input is in its task once', `${line.said} is there ${said.length} times`)
    const whole = expected(line.said) ?? ''
    if (state === 'TASK_STATE_COMPLETED') must(text === whole, 'an answer that is done is complete', `${line.said} has ${text.slice(-80)}`)
    else must(whole.startsWith(text), 'what is left of an answer is its beginning', `${line.said} has ${text.slice(-80)}`)
  }

  /** @param {string} url @param {string} id */
  async #get(url, id) {
    const { status, body } = await this.within(
      'a task that was told of can be read',
      call(`${url}/a2a/rest/tasks/${id}`, { headers: HEADERS }),
    )
    must(status === 200, 'a task that was told of is there', () => `${id}: ${status} ${JSON.stringify(body)}`)
    return body
  }
}

/** @param {string} id @param {string | undefined} before both `response.number` */
function isAfter(id, before = '0.0') {
  const [index = 0, number = 0] = id.split('.').map(Number)
  const [beforeIndex = 0, beforeNumber = 0] = before.split('.').map(Number)
  return index > beforeIndex || (index === beforeIndex && number >= beforeNumber)
}

/** @param {any} task @returns {string} */
function textOf({ artifacts = [] }) {
  return artifacts
    .flatMap((/** @type {any} */ { parts }) => parts)
    .map((/** @type {any} */ { text = '' }) => text)
    .join('')
}
