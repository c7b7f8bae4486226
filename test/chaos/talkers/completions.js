// @ts-check
import { MARKER } from '../agent.js'
import { expected, Gone, must, Talker } from '../talker.js'
import { Rpc } from '../../support/killed/rpc.js'
import { eventsOf, request } from '../../support/killed/wire.js'

/** @typedef {import('../talker.js').Life} Life */
/** @typedef {import('../talker.js').Said} Said */

/** An agent that nobody else talks to: what is kept of completions is found by listing its sessions. */
const AGENT = 'kept'

/** Chat Completions with `store: true`. They have no way to read them again, so that is done over ACP. */
export class CompletionsTalker extends Talker {
  /** Told as complete. @type {Set<Said>} */
  #done = new Set()

  /** @override @param {Life} life */
  async talk({ url }) {
    for (;;) {
      // Questions cannot be put here.
      const line = this.line(this.random.pick(['count 20 2', 'count 5 0', 'late 10', 'big 3', `count ${this.random.whole(0, 60)} 1`]))
      const stream = this.random.chance(0.6)
      this.note(`posts ${line.said}${stream ? ', streamed' : ''}`)
      const body = { model: AGENT, store: true, stream, messages: [{ role: 'user', content: line.said }] }
      const posted = request(`${url}/v1/chat/completions`, { body })
      this.stage('sent')
      const response = await this.within('a server that lives answers', posted)
      must(response.status === 200, 'nothing is refused', () => `${response.status}`)
      if (stream) await this.#read(response, line)
      else {
        const { choices } = await response.json().catch((/** @type {unknown} */ error) => {
          throw new Gone(String(error))
        })
        line.acked = true
        this.stage('acked')
        this.#end(line, choices[0].message.content, choices[0].finish_reason)
      }
    }
  }

  /** @param {Response} response @param {Said} line */
  async #read(response, line) {
    let text = ''
    let finish
    for await (const { data } of eventsOf(response)) {
      if (data === '[DONE]') return this.#end(line, text, finish)
      const { choices, error } = JSON.parse(data)
      must(error === undefined, 'a server that lives answers', () => JSON.stringify(error))
      const [choice] = choices ?? []
      finish = choice?.finish_reason ?? finish
      if (!choice?.delta?.content) continue
      if (!line.acked) this.stage('begun')
      line.acked = true
      text += choice.delta.content
      this.stage('delta')
    }
    throw new Gone('the stream was cut')
  }

  /** @param {Said} line @param {string} text @param {string | undefined} finish */
  #end(line, text, finish) {
    this.stage('ended', `${finish}`)
    must(
      finish === 'stop' && text === expected(line.said),
      'an answer that is done is complete',
      `${line.said} has ${finish} ${text.slice(-80)}`,
    )
    this.#done.add(line)
  }

  /** @override @param {Life} life */
  async check({ url }) {
    const rpc = await Rpc.overSocket(`${url}/agents/${AGENT}/acp`)
    try {
      await this.within('a server that lives answers', rpc.ask('initialize', { protocolVersion: 1, clientCapabilities: {} }))
      const found = await this.within('sessions are listed', sessionsOf(rpc))
      const loaded = await this.within('a session can be loaded', Promise.all(found.map((id) => load(rpc, id))))
      for (const line of this.said) {
        const mine = loaded.filter(({ markers }) => markers.includes(line.marker))
        must(mine.length <= 1, 'an input is in the conversation once', `${line.marker} is in ${mine.length} sessions`)
        must(mine.length === 1 || !line.acked, 'an acknowledged input is not lost', `${line.marker} is in no session`)
        const text = mine[0]?.text ?? ''
        const whole = expected(line.said) ?? ''
        if (this.#done.has(line)) must(text === whole, 'what was told as ended is not taken back', `${line.said} has ${text.slice(-80)}`)
        must(whole.startsWith(text), 'what is left of an answer is its beginning', `${line.said} has ${text.slice(-80)}`)
      }
    } finally {
      rpc.close()
    }
  }
}

/** @param {Rpc} rpc */
async function sessionsOf(rpc) {
  /** @type {string[]} */
  const found = []
  let cursor
  do {
    const { sessions, nextCursor } = await rpc.ask('session/list', cursor === undefined ? {} : { cursor })
    found.push(...sessions.map((/** @type {any} */ { sessionId }) => sessionId))
    cursor = nextCursor ?? undefined
  } while (cursor !== undefined)
  return found
}

/** @param {Rpc} rpc @param {string} sessionId */
async function load(rpc, sessionId) {
  await rpc.ask('session/load', { sessionId, cwd: '/project', mcpServers: [] })
  const updates = rpc.updates.get(sessionId) ?? []
  await rpc.ask('session/close', { sessionId })
  const text = (/** @type {string} */ kind) =>
    updates.map(({ sessionUpdate, content }) => (sessionUpdate === kind ? (content.text ?? '') : '')).join('')
  return { markers: [...(text('user_message_chunk').match(MARKER) ?? [])], text: text('agent_message_chunk') }
}
