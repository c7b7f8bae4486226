// @ts-check
import { randomUUID } from 'node:crypto'
import { count } from './bare-session.js'

/** One connection of Omnia with nothing behind it. @param {(message: object) => void} emit @returns {(message: any) => void} */
export function speakOmnia(emit) {
  const session_id = `sess_${randomUUID()}`
  const capabilities = { binary_frames: true, max_payload_size: 16 * 1024 * 1024, protocol_version: 1 }
  emit({ type: 'connected', session_id, connected: { capabilities, resumed: false }, timestamp: new Date().toISOString() })
  return ({ content }) => void answer(content)

  /** @param {string} asked */
  async function answer(asked) {
    const [, n = 0, ms = 0] = asked.split(' ').map(Number)
    let whole = ''
    let timestamp = ''
    for await (const content of count(n, ms)) {
      // What one tick makes is of one time: writing it down costs as much as an event.
      if (timestamp === '') {
        timestamp = new Date().toISOString()
        process.nextTick(() => (timestamp = ''))
      }
      whole += content
      emit({ type: 'chunk', session_id, content, timestamp })
    }
    const usage = { total_tokens: n + 2, input_tokens: 2, output_tokens: n }
    const ext = { response_id: `resp_${randomUUID()}`, status: 'completed', usage }
    emit({ type: 'done', session_id, content: whole, ext, timestamp: new Date().toISOString() })
  }
}
