// @ts-check
import { request as requestHttp, Agent } from 'node:http'
import { connect } from 'node:http2'
import { request as requestHttps, Agent as SecureAgent } from 'node:https'

/** @typedef {'http' | 'https' | 'http2'} Version */

/**
 * Answers over one version of HTTP at a time, with the clients of Node, so that rows differ in nothing else. It counts the words in what
 * comes, and parses nothing.
 */
export class VersionClient {
  tally = { deltas: 0, sentAt: 0, firstAt: 0 }
  #options
  #agent
  /** @type {import('node:http2').ClientHttp2Session | undefined} */
  #session

  /** @param {{ port: number, version: Version, transport: string }} options */
  constructor(options) {
    this.#options = options
    this.#agent =
      options.version === 'https' ? new SecureAgent({ keepAlive: true, rejectUnauthorized: false }) : new Agent({ keepAlive: true })
  }

  async open() {
    const { port, version } = this.#options
    if (version !== 'http2') return
    this.#session = connect(`https://127.0.0.1:${port}`, { rejectUnauthorized: false })
    await new Promise((resolve, reject) => this.#session?.once('remoteSettings', resolve).once('error', reject))
  }

  /** @param {string} text */
  async respond(text) {
    const { tally } = this
    const { path, body, mark } = this.#ask(text)
    tally.deltas = 0
    tally.sentAt = performance.now()
    let rest = ''
    for await (const chunk of await this.#send(path, body)) {
      const all = rest + chunk.toString('latin1')
      let at = 0
      for (let found = all.indexOf(mark); found >= 0; found = all.indexOf(mark, at)) {
        if (tally.deltas++ === 0) tally.firstAt = performance.now()
        at = found + mark.length
      }
      rest = all.slice(Math.max(at, all.length - mark.length + 1))
    }
  }

  close() {
    this.#agent.destroy()
    this.#session?.destroy()
  }

  /** @param {string} text */
  #ask(text) {
    if (this.#options.transport !== 'sse') {
      const body = { model: 'demo', stream: true, messages: [{ role: 'user', content: text }] }
      return { path: '/v1/chat/completions', body: JSON.stringify(body), mark: '"delta":{"content":"' }
    }
    const events = [{ type: 'session.create' }, { type: 'input.text', text }, { type: 'response.create' }]
    return { path: '/events', body: JSON.stringify(events), mark: '"type":"response.delta"' }
  }

  /** @param {string} path @param {string} body @returns {Promise<AsyncIterable<Buffer>>} */
  #send(path, body) {
    const { port, version } = this.#options
    const headers = { accept: 'text/event-stream', 'content-type': 'application/json' }
    return new Promise((resolve, reject) => {
      if (this.#session) {
        const stream = this.#session.request({ ...headers, ':method': 'POST', ':path': path })
        return stream
          .once('response', () => resolve(stream))
          .once('error', reject)
          .end(body)
      }
      const request = version === 'https' ? requestHttps : requestHttp
      const options = { port, host: '127.0.0.1', path, method: 'POST', headers, agent: this.#agent, rejectUnauthorized: false }
      return request(options, resolve).once('error', reject).end(body)
    })
  }
}
