// @ts-check
import { randomUUID } from 'node:crypto'

/** @typedef {{ type: string, seq: number, [field: string]: unknown }} Event */

/** The events of one session as our server sends them, with nothing behind them. */
export class BareSession {
  id = `sess_${randomUUID()}`
  #prefix = this.id.slice(5, 29)
  #seq = 0
  #text = ''

  /** @param {(event: Event) => void} emit */
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
    for await (const text of count(n ?? 0, ms ?? 0)) {
      output += text
      this.emit({
        type: 'response.delta',
        session_id,
        response_id,
        event_id: this.#eventId(),
        seq: ++this.#seq,
        delta: { type: 'text', text },
      })
    }
    const response = { id: response_id, status: 'completed', output: [{ type: 'text', text: output }] }
    this.#send('response.done', { response_id, response })
  }

  /** @param {string} type @param {object} rest */
  #send(type, rest) {
    this.emit({ type, session_id: this.id, event_id: this.#eventId(), seq: ++this.#seq, ...rest })
  }

  /** Shaped like a UUID, from a counter: cheaper than a random one. */
  #eventId() {
    const digits = String(this.#seq)
    return this.#prefix + '000000000000'.slice(digits.length) + digits
  }
}

/** The agent: what the demo does for `/count n ms`. @param {number} n @param {number} ms */
export async function* count(n, ms) {
  for (let i = 1; i <= n; i++) {
    if (ms > 0) await new Promise((resolve) => setTimeout(resolve, ms))
    yield i === 1 ? '1' : ` ${i}`
  }
}
