// @ts-check
import { randomUUID } from 'node:crypto'

/** @typedef {{ type: string, seq: number, [field: string]: unknown }} Event */

/** The events of one session as our server sends them, with nothing behind them. */
export class BareSession {
  id = `sess_${randomUUID()}`
  #prefix = this.id.slice(5, 29)
  #seq = 0
  #text = ''
  /** Deltas are emitted as texts, made from a template. */
  templated = false

  /** @param {(event: Event | string, seq: number) => void} emit */
  constructor(emit) {
    this.emit = emit
  }

  /** @param {{ type: string, text?: string, session?: object }} event */
  receive(event) {
    switch (event.type) {
      case 'session.create': {
        const session = { id: this.id, created_at: Math.floor(Date.now() / 1000), config: event.session, status: 'active' }
        this.#send('session.created', { uamp_version: '1.0', session })
        return this.#send('capabilities', {
          capabilities: { id: 'bare', provider: 'bare', modalities: ['text'], supports_streaming: true },
        })
      }
      case 'input.text':
        this.#text = event.text ?? ''
        return
      case 'response.create':
        void this.#respond()
    }
  }

  async #respond() {
    const session_id = this.id
    const response_id = `resp_${randomUUID()}`
    const [, n, ms] = this.#text.split(' ').map(Number)
    let output = ''
    this.#send('response.created', { response_id })
    // Ours look at the clock for each commit; once for a whole answer is the cheaper way.
    const timestamp = Date.now()
    const ids = `"session_id":"${session_id}","response_id":"${response_id}","timestamp":${timestamp}`
    if (this.templated) {
      for await (const text of count(n ?? 0, ms ?? 0)) {
        output += text
        const event_id = this.#eventId()
        const seq = ++this.#seq
        const start = `{"type":"response.delta",${ids},"event_id":"${event_id}","seq":${seq}`
        this.emit(start + ',"delta":{"type":"text","text":' + JSON.stringify(text) + '}}', seq)
      }
    } else
      for await (const text of count(n ?? 0, ms ?? 0)) {
        output += text
        const event_id = this.#eventId()
        const seq = ++this.#seq
        this.emit({ type: 'response.delta', session_id, response_id, timestamp, event_id, seq, delta: { type: 'text', text } }, seq)
      }
    const response = { id: response_id, status: 'completed', output: [{ type: 'text', text: output }] }
    this.#send('response.done', { response_id, response })
  }

  /** @param {string} type @param {object} rest */
  #send(type, rest) {
    const event_id = this.#eventId()
    const seq = ++this.#seq
    this.emit({ type, session_id: this.id, timestamp: Date.now(), event_id, seq, ...rest }, seq)
  }

  /** Shaped like a UUID, from a counter: cheaper than a random one. */
  #eventId() {
    const digits = String(this.#seq)
    return this.#prefix + '000000000000'.slice(digits.length) + digits
  }
}

/** The agent: what the demo does for `/count n ms` and `/big bytes`. @param {string} prompt */
export function said(prompt) {
  const [command, first, second] = prompt.split(' ')
  return command === '/big' ? big(Number(first)) : count(Number(first ?? 0), Number(second ?? 0))
}

/** @param {number} n @param {number} ms */
export async function* count(n, ms) {
  for (let i = 1; i <= n; i++) {
    if (ms > 0 && i > 1) await new Promise((resolve) => setTimeout(resolve, ms))
    yield i === 1 ? '1' : ` ${i}`
  }
}

const PIECE = 64 * 1024

/** @param {number} bytes */
async function* big(bytes) {
  for (let left = bytes; left > 0; left -= PIECE) yield 'x'.repeat(Math.min(left, PIECE))
}
