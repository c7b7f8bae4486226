// @ts-check
import { expected, Gone, MARKER, must, Talker } from '../talker.js'
import { eventsOf, openSocket, request } from '../wire.js'

/** @typedef {import('../talker.js').Life} Life */
/** @typedef {import('../talker.js').TalkerOptions} TalkerOptions */
/** @typedef {import('../talker.js').Said} Said */
/** @typedef {{ message: (message: any) => void, closed: () => void }} Hears */
/** @typedef {{ send(message: any): void | Promise<void>, close(): void }} Carrier */

/** One connection of ACP, over whatever carries it. */
export class Rpc {
  /** By session, in order. @type {Map<string, any[]>} */
  updates = new Map()
  /** Called with each request of the agent's, and with each update. */
  onMessage = (/** @type {any} */ _message) => undefined
  #last = 0
  /** @type {Map<number, { resolve: (result: any) => void, reject: (error: unknown) => void, method: string }>} */
  #waiting = new Map()
  /** @type {Carrier | undefined} */
  #carrier
  isGone = false

  /** @param {string} url */
  static overSocket(url) {
    return Rpc.#over((hears) => openSocket(url, hears))
  }

  /** @param {string} url */
  static overHttp(url) {
    return Rpc.#over((hears) => openHttp(url, hears))
  }

  /** @param {(hears: Hears) => Promise<Carrier>} connect */
  static async #over(connect) {
    const rpc = new Rpc()
    rpc.#carrier = await connect({ message: (message) => rpc.#take(message), closed: () => rpc.#end() })
    return rpc
  }

  /** @param {string} method @param {object} params @returns {Promise<any>} */
  ask(method, params) {
    const id = ++this.#last
    return new Promise((resolve, reject) => {
      if (this.isGone) return reject(new Gone('the connection was lost'))
      this.#waiting.set(id, { resolve, reject, method })
      this.send({ id, method, params }).catch(reject)
    })
  }

  /** @param {object} message */
  async send(message) {
    await this.#carrier?.send({ jsonrpc: '2.0', ...message })
  }

  close() {
    this.#carrier?.close()
  }

  /** @param {any} message */
  #take(message) {
    const { id, method, params, result, error } = message
    if (method === 'session/update') {
      const of = this.updates.get(params.sessionId) ?? []
      this.updates.set(params.sessionId, of)
      of.push(params.update)
    }
    if (method !== undefined) return this.#tell(message)
    const waiting = this.#waiting.get(id)
    this.#waiting.delete(id)
    if (error) waiting?.reject(Object.assign(new Error(`${waiting.method}: ${JSON.stringify(error)}`), { rpc: error }))
    else waiting?.resolve(result)
  }

  /** @param {any} message */
  #tell(message) {
    try {
      this.onMessage(message)
    } catch (thrown) {
      this.#end(thrown)
    }
  }

  /** @param {unknown} [reason] */
  #end(reason = new Gone('the connection was lost')) {
    this.isGone = true
    for (const { reject } of this.#waiting.values()) reject(reason)
    this.#waiting.clear()
  }
}

/** A stream of the connection, and one of each session before anything is said about it. @param {string} url @param {Hears} hears @returns {Promise<Carrier>} */
async function openHttp(url, hears) {
  const leave = new AbortController()
  /** @type {Map<string, Promise<void>>} */
  const streams = new Map()
  /** @type {string | undefined} */
  let connection
  const close = () => {
    leave.abort()
    hears.closed()
  }
  /** @param {string} session */
  const listen = (session) => {
    const known = streams.get(session)
    if (known) return known
    const headers = {
      accept: 'text/event-stream',
      'acp-connection-id': `${connection}`,
      ...(session !== '' && { 'acp-session-id': session }),
    }
    const opened = request(url, { headers, signal: leave.signal }).then((response) => {
      void read(response)
        .catch(() => undefined)
        .finally(close)
    })
    streams.set(session, opened)
    return opened
  }
  /** @param {Response} response */
  const read = async (response) => {
    for await (const { data } of eventsOf(response)) {
      const message = JSON.parse(data)
      if (message.result?.sessionId !== undefined) await listen(message.result.sessionId)
      hears.message(message)
    }
  }
  /** @param {any} message */
  const post = async (message) => {
    const session = message.params?.sessionId ?? [...streams.keys()].at(-1) ?? ''
    if (connection !== undefined && session !== '') await listen(session)
    const headers = {
      ...(connection !== undefined && { 'acp-connection-id': connection }),
      ...(session !== '' && { 'acp-session-id': session }),
    }
    const response = await request(url, { body: message, headers, signal: leave.signal })
    const text = await response.text().catch(() => {
      throw new Gone('the answer was cut')
    })
    if (connection !== undefined) return must(response.status < 400, 'nothing is refused', `${response.status} ${text}`)
    connection = response.headers.get('acp-connection-id') ?? undefined
    if (connection !== undefined) await listen('')
    hears.message(JSON.parse(text))
  }
  let last = Promise.resolve()
  return { send: (message) => (last = last.then(() => post(message))), close }
}

/** ACP: sessions that are loaded or resumed after each kill, and prompts that end with it. */
export class AcpTalker extends Talker {
  /** @param {TalkerOptions} options @param {(url: string) => Promise<Rpc>} connect */
  constructor(options, connect) {
    super(options)
    this.#connect = connect
  }

  #connect
  /** @type {string | undefined} */
  #session
  /** Told as complete. @type {Set<Said>} */
  #done = new Set()
  /** @type {Rpc | undefined} */
  #rpc

  /** @override @param {Life} life */
  async talk({ url }) {
    const rpc = await this.#back(url, this.random.pick(['session/load', 'session/resume']))
    for (;;) await this.#prompt(rpc, this.line())
  }

  /** @override @param {Life} life */
  async check({ url }) {
    const rpc = await this.#back(url, 'session/load')
    this.#checkLoaded(rpc.updates.get(/** @type {string} */ (this.#session)) ?? [])
    this.checkConversation(await this.#prompt(rpc, this.line('told')))
    rpc.close()
  }

  /** @override */
  close() {
    this.#rpc?.close()
  }

  /** @param {string} url @param {string} how */
  async #back(url, how) {
    const rpc = await this.#connect(`${url}/acp`)
    this.#rpc = rpc
    await this.within('a server that lives answers', rpc.ask('initialize', { protocolVersion: 1, clientCapabilities: {} }))
    const folder = { cwd: '/project', mcpServers: [] }
    if (this.#session === undefined) {
      this.note('opens a session')
      this.#session = (await this.within('a session is opened', rpc.ask('session/new', folder))).sessionId
      this.stage('opened', this.#session)
    } else {
      this.note(`comes back by ${how}`)
      await this.within('a session is there', rpc.ask(how, { sessionId: this.#session, ...folder }))
      this.stage('resumed')
    }
    return rpc
  }

  /** @param {Rpc} rpc @param {Said} line @returns {Promise<string>} what was said */
  async #prompt(rpc, line) {
    let text = ''
    rpc.onMessage = ({ id, method, params }) => {
      const { sessionUpdate, content } = params?.update ?? {}
      if (sessionUpdate === 'agent_message_chunk') {
        // Of another prompt nothing can come any more.
        must(
          text !== '' || !MARKER_FIRST.test(content.text) || content.text.startsWith(line.marker),
          'nothing comes after its end',
          content.text,
        )
        if (!line.acked) this.stage('begun')
        line.acked = true
        text += content.text
        this.stage('delta')
      }
      if (method !== 'session/request_permission') return
      line.acked = true
      this.stage('asked')
      void rpc.send({ id, result: { outcome: { outcome: 'selected', optionId: params.options[0].optionId } } }).catch(() => undefined)
      this.stage('answered')
    }
    this.note(`prompts ${line.said}`)
    const asked = rpc.ask('session/prompt', { sessionId: this.#session, prompt: [{ type: 'text', text: line.said }] })
    this.stage('sent')
    const { stopReason } = await this.within('a prompt is answered', asked)
    line.acked = true
    this.stage('ended', stopReason)
    must(stopReason === 'end_turn', 'a server that lives answers', `${line.said} ended with ${stopReason}`)
    const whole = expected(line.said)
    must(whole === undefined || text === whole, 'an answer that is done is complete', `${line.said} has ${text.slice(-80)}`)
    this.#done.add(line)
    return text
  }

  /** The conversation as it is told to who loads it. @param {readonly any[]} updates */
  #checkLoaded(updates) {
    /** @type {{ markers: string[], text: string }[]} */
    const turns = []
    for (const { sessionUpdate, content } of updates) {
      if (sessionUpdate === 'user_message_chunk') turns.push({ markers: content.text.match(MARKER) ?? [], text: '' })
      const turn = turns.at(-1)
      if (sessionUpdate === 'agent_message_chunk' && turn) turn.text += content.text
    }
    const found = turns.flatMap(({ markers }) => markers)
    for (const line of this.said) {
      const times = found.filter((marker) => marker === line.marker).length
      must(times <= 1, 'an input is in the conversation once', `${line.marker} is loaded ${times} times: ${found.join(' ')}`)
      must(times === 1 || !line.acked, 'an acknowledged input is not lost', `${line.marker} is not loaded: ${found.join(' ')}`)
      const whole = expected(line.said)
      const text = turns.find(({ markers }) => markers.includes(line.marker))?.text ?? ''
      if (whole === undefined) continue
      if (this.#done.has(line)) must(text === whole, 'what was told as ended is not taken back', `${line.said} has ${text.slice(-80)}`)
      else must(whole.startsWith(text), 'what is left of an answer is its beginning', `${line.said} has ${text.slice(-80)}`)
    }
  }
}

const MARKER_FIRST = /^m\d+x\d+/
