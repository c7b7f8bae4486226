// @ts-check
/** @typedef {import("../../support/killed/rpc.js").Rpc} Rpc */
import { expected, MARKER, must, Talker } from '../talker.js'

/** @typedef {import('../talker.js').Life} Life */
/** @typedef {import('../talker.js').TalkerOptions} TalkerOptions */
/** @typedef {import('../talker.js').Said} Said */

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
