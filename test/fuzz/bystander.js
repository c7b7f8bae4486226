// @ts-check
import { WebSocket } from 'ws'
import { must, Violation } from '../support/violation.js'

/** A caller who does nothing wrong is served as if nobody else were there. */
const RULE = 'a bystander notices nothing'
const PATIENCE_MS = 10_000
const PAUSE_MS = 30
/** Less than the server keeps a session that nobody uses. */
const FORGOTTEN_MS = 2_500

/** @typedef {{ url: string, token: string | undefined, marker: string }} BystanderOptions */

/** Talks all the time over several protocols, and looks at each answer. */
export class Bystander {
  talks = 0
  /** @type {Violation[]} */
  violations = []
  #isOver = false
  /** @type {BystanderOptions} */
  #options
  /** The last response, which the next one goes on from. @type {string | undefined} */
  #response
  #responded = 0
  /** @type {WebSocket | undefined} */
  #socket
  /** @type {Promise<void>} */
  #running

  /** @param {BystanderOptions} options */
  constructor(options) {
    this.#options = options
    this.#running = this.#run()
  }

  async leave() {
    this.#isOver = true
    await this.#running
    this.#socket?.terminate()
  }

  async #run() {
    /** @type {((said: string) => Promise<unknown>)[]} */
    const ways = [this.#complete, this.#stream, this.#respond, this.#task, this.#converse]
    for (let turn = 0; !this.#isOver; turn++) {
      const said = `${this.#options.marker} ${turn}`
      const way = /** @type {(said: string) => Promise<unknown>} */ (ways[turn % ways.length])
      try {
        const heard = await Promise.race([way.call(this, said), late()])
        must(heard === `You said: ${said}`, RULE, `${way.name}: "${said}" was answered with ${JSON.stringify(heard).slice(0, 300)}`)
        this.talks++
      } catch (thrown) {
        if (this.#isOver) return
        this.violations.push(thrown instanceof Violation ? thrown : new Violation(RULE, `${way.name}: ${String(thrown)}`))
        if (this.violations.length > 5) return
      }
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
    }
  }

  /** @param {string} path @param {object} body @param {Record<string, string>} [headers] */
  async #post(path, body, headers = {}) {
    const { url, token } = this.#options
    const authorization = token === undefined ? undefined : { authorization: `Bearer ${token}` }
    const response = await fetch(`${url}${path}`, {
      method: 'POST',
      body: JSON.stringify(body),
      headers: { 'content-type': 'application/json', ...authorization, ...headers },
    })
    const text = await response.text()
    must(response.ok, RULE, `${path} answered ${response.status} ${text.slice(0, 300)}`)
    return text
  }

  /** @param {string} said */
  async #complete(said) {
    const { choices } = JSON.parse(await this.#post('/v1/chat/completions', { model: 'demo', messages: [{ role: 'user', content: said }] }))
    return choices[0].message.content
  }

  /** @param {string} said */
  async #stream(said) {
    const text = await this.#post('/v1/chat/completions', { model: 'demo', messages: [{ role: 'user', content: said }], stream: true })
    const events = text.split('\n\n').filter((line) => line.startsWith('data: ') && line !== 'data: [DONE]')
    return events.map((line) => JSON.parse(line.slice(6)).choices[0]?.delta.content ?? '').join('')
  }

  /** @param {string} said */
  async #respond(said) {
    // On a busy machine so much time may pass that the server has forgotten it, which is its right.
    if (performance.now() - this.#responded > FORGOTTEN_MS) this.#response = undefined
    const { id, output } = JSON.parse(
      await this.#post('/v1/responses', { model: 'demo', input: said, previous_response_id: this.#response }),
    )
    // A chain for ever would be read again from its beginning with each.
    this.#response = this.talks % 50 === 0 ? undefined : id
    this.#responded = performance.now()
    return output[0].content[0].text
  }

  /** @param {string} said */
  async #task(said) {
    const message = { messageId: said, role: 'ROLE_USER', parts: [{ text: said }] }
    const { task } = JSON.parse(await this.#post('/a2a/rest/message:send', { message }, { 'a2a-version': '1.0' }))
    return task.artifacts[0].parts[0].text
  }

  /** One session on one WebSocket, all the time. @param {string} said @returns {Promise<string>} */
  async #converse(said) {
    const { url, token } = this.#options
    if (this.#socket === undefined) {
      this.#socket = new WebSocket(`${url.replace('http', 'ws')}/uamp`, {
        headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
      })
      const socket = this.#socket
      await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject))
      socket.send(JSON.stringify({ type: 'session.create' }))
    }
    const socket = this.#socket
    return new Promise((resolve, reject) => {
      let text = ''
      const closed = (/** @type {number} */ code) => reject(new Error(`the socket was closed with ${code}`))
      const heard = (/** @type {Buffer} */ data) => {
        const event = JSON.parse(String(data))
        if (event.type === 'response.delta') text += event.delta.text ?? ''
        if (event.type.endsWith('.error')) reject(new Error(JSON.stringify(event.error)))
        if (event.type !== 'response.done') return
        socket.off('message', heard).off('close', closed)
        resolve(text)
      }
      socket.on('message', heard).once('close', closed)
      socket.send(JSON.stringify({ type: 'input.text', text: said }))
      socket.send(JSON.stringify({ type: 'response.create' }))
    })
  }
}

/** @returns {Promise<never>} */
function late() {
  return new Promise((_, reject) => setTimeout(() => reject(new Error(`no answer within ${PATIENCE_MS} ms`)), PATIENCE_MS).unref())
}
