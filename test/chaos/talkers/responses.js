// @ts-check
import { Numbers, rising } from '../numbers.js'
import { expected, Gone, must, Talker } from '../talker.js'
import { call, eventsOf, messagesOf, request } from '../../support/killed/wire.js'

/** @typedef {import('../talker.js').Life} Life */
/** @typedef {import('../talker.js').Said} Said */

const RUNNING = new Set(['queued', 'in_progress'])
const ENDS = new Set(['response.completed', 'response.failed', 'response.incomplete'])

/**
 * OpenAI Responses that are stored: whole or streamed, in the foreground or not, each going on from the one before. They are asked for by
 * requests or over a WebSocket, and come back to by requests.
 */
export class ResponsesTalker extends Talker {
  /** @param {import('../talker.js').TalkerOptions} options @param {'http' | 'socket'} [way] */
  constructor(options, way = 'http') {
    super(options)
    this.#isSocket = way === 'socket'
  }

  #isSocket
  #numbers = new Numbers()
  /** What is in the conversation for certain: a response that nobody was told of is not gone on from. @type {Said[]} */
  #chain = []
  /** @type {string | undefined} */
  #last
  /** Told of, and not known to have ended. @type {{ id: string, cursor: number, line: Said | undefined, streamed: boolean } | undefined} */
  #open
  /** @type {{ item: string, response: string } | undefined} */
  #question
  /** How responses ended, as they were told. @type {Map<string, { status: string, text: string }>} */
  #ended = new Map()

  /** @override @param {Life} life */
  async talk({ url }) {
    for (;;) {
      await this.#settle(url)
      await this.#act(url, this.#question ? undefined : this.line())
    }
  }

  /** @override @param {Life} life */
  async check({ url }) {
    await this.#settle(url)
    while (this.#question) {
      await this.#act(url, undefined)
      await this.#settle(url)
    }
    for (const [id, { status, text }] of [...this.#ended].slice(-6)) {
      const now = await this.#get(url, id)
      must(
        now.status === status && textOf(now) === text,
        'what was told as ended is not taken back',
        () => `${id} was ${status} ${text.slice(-40)}, is ${now.status} ${textOf(now).slice(-40)}`,
      )
    }
    const line = this.line('told')
    const asked = { model: 'chaos', input: line.said, store: false, ...(this.#last !== undefined && { previous_response_id: this.#last }) }
    const { status, body } = await this.within('a server that lives answers', call(`${url}/v1/responses`, { body: asked }))
    must(status === 200, 'a server that lives answers', () => `${status} ${JSON.stringify(body)}`)
    this.checkConversation(textOf(body), [...this.#chain, line])
  }

  /** @param {string} url @param {Said | undefined} line without one, the question is answered */
  async #act(url, line) {
    const { random } = this
    const [stream, background] = [random.chance(0.6), random.chance(0.6)]
    const question = line ? undefined : this.#question
    const previous = question?.response ?? this.#last
    const body = {
      model: 'chaos',
      input: question ? [{ type: 'mcp_approval_response', approval_request_id: question.item, approve: true }] : line?.said,
      stream,
      background,
      ...(previous !== undefined && { previous_response_id: previous }),
    }
    this.note(`posts ${JSON.stringify(body)}`)
    if (this.#isSocket) {
      const { stream: _, background: __, ...asked } = body
      const messages = messagesOf(`${url}/v1/responses`, { type: 'response.create', ...asked }, () => this.stage('sent'))
      const isEnded = await this.within('an answer ends', this.#read(messages, { line, cursor: -1 }))
      if (!isEnded) throw new Gone('the socket was lost')
      return
    }
    const posted = request(`${url}/v1/responses`, { body })
    this.stage('sent')
    const response = await this.within('a server that lives answers', posted)
    if (stream && response.status === 200) return this.#read(eventsOf(response), { line, cursor: -1 })
    const answer = await response.json().catch((/** @type {unknown} */ error) => {
      throw new Gone(String(error))
    })
    must(response.status === 200, 'nothing is refused', () => `${response.status} ${JSON.stringify(answer)}`)
    this.#told(answer.id, line, false)
    if (!RUNNING.has(answer.status)) this.#end(answer)
  }

  /** @param {string} id @param {Said | undefined} line @param {boolean} streamed */
  #told(id, line, streamed) {
    if (line) {
      line.acked = true
      this.#chain.push(line)
    } else this.stage('answered')
    this.#question = undefined
    this.#last = id
    this.#open = { id, cursor: -1, line, streamed }
    this.stage('acked', id)
  }

  /** @param {AsyncIterable<{ data: string }>} events @param {{ line?: Said | undefined, cursor: number }} from @returns {Promise<boolean>} whether its end was told */
  async #read(events, { line, cursor }) {
    const rises = rising('a stream of Responses', cursor)
    for await (const { data } of events) {
      const event = JSON.parse(data)
      const { type, sequence_number: number } = event
      if (type !== 'response.output_text.delta') this.note(`heard ${number} ${type} ${event.response?.id ?? ''}`)
      if (type === 'response.created' && this.#open?.id !== event.response.id) {
        this.#told(event.response.id, line, true)
        this.stage('begun')
      }
      must(type !== 'error', 'nothing is refused', data)
      const open = this.#open
      must(open, 'a stream begins with its response', () => `it begins with ${type}`)
      rises(number)
      // What it holds of the whole response grows.
      const { response: _, ...rest } = event
      this.#numbers.see(`${open.id} ${number}`, ENDS.has(type) ? { ...rest, status: event.response.status } : rest)
      open.cursor = number
      if (type === 'response.output_text.delta') this.stage('delta')
      if (!ENDS.has(type)) continue
      this.#end(event.response)
      return true
    }
    return false
  }

  /** @param {any} response */
  #end(response) {
    const { id, status } = response
    const line = this.#open?.line
    this.#open = undefined
    const text = textOf(response)
    this.#ended.set(id, { status, text })
    this.stage('ended', `${id} ${status}`)
    const question = response.output.find((/** @type {any} */ { type }) => type === 'mcp_approval_request')
    if (question) {
      this.#question = { item: question.id, response: id }
      this.stage('asked')
    }
    const whole = line && !question ? expected(line.said) : undefined
    if (whole === undefined) return
    if (status === 'completed') must(text === whole, 'an answer that is done is complete', `${line?.said} has ${text.slice(-80)}`)
    else must(whole.startsWith(text), 'what is left of an answer is its beginning', `${line?.said} has ${text.slice(-80)}`)
  }

  /** What was told of ends, and whoever followed it is told how. @param {string} url */
  async #settle(url) {
    const open = this.#open
    if (!open) return
    this.note(`comes back for ${open.id} after ${open.cursor}`)
    if (open.streamed) {
      const path = `${url}/v1/responses/${open.id}?stream=true${open.cursor < 0 ? '' : `&starting_after=${open.cursor}`}`
      const response = await this.within('a response that was told of is there', request(path))
      must(response.status === 200, 'a response that was told of is there', () => `${response.status} of ${open.id}`)
      this.stage('resumed')
      const isEnded = await this.within('the end of a response is told', this.#read(eventsOf(response), open))
      must(isEnded, 'the end of a response is told', `the stream of ${open.id} after ${open.cursor} has none`)
      return
    }
    this.stage('resumed')
    const deadline = Date.now() + this.patienceMs
    for (;;) {
      const response = await this.#get(url, open.id)
      if (!RUNNING.has(response.status)) return this.#end(response)
      must(Date.now() < deadline, 'the end of a response is told', `${open.id} is ${response.status} for ever`)
      await this.pause(5)
    }
  }

  /** @param {string} url @param {string} id */
  async #get(url, id) {
    const { status, body } = await this.within('a response that was told of can be read', call(`${url}/v1/responses/${id}`))
    must(status === 200, 'a response that was told of is there', () => `${id}: ${status} ${JSON.stringify(body)}`)
    return body
  }
}

/** @param {any} response @returns {string} */
function textOf({ output = [] }) {
  return output
    .flatMap((/** @type {any} */ { content = [] }) => content)
    .map((/** @type {any} */ { text = '' }) => text)
    .join('')
}
