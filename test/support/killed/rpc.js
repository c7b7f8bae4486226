// @ts-check
import { Gone, must } from '../violation.js'
import { eventsOf, openSocket, request } from './wire.js'

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
