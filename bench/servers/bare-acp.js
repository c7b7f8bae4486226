// @ts-check
import { randomUUID } from 'node:crypto'
import { count } from './bare-session.js'

/** One connection of ACP with nothing behind it. @param {(message: object) => void} emit @returns {(message: any) => void} */
export function speakAcp(emit) {
  const answer = (/** @type {number} */ id, /** @type {object} */ result) => emit({ jsonrpc: '2.0', id, result })
  return ({ id, method, params }) => {
    if (method === 'initialize') return answer(id, { protocolVersion: 1, agentCapabilities: {}, authMethods: [] })
    if (method === 'session/new') return answer(id, { sessionId: `sess_${randomUUID()}` })
    if (method === 'session/prompt') void prompt(id, params)
  }

  /** @param {number} id @param {any} params */
  async function prompt(id, { sessionId, prompt: blocks }) {
    const [, n = 0, ms = 0] = blocks[0].text.split(' ').map(Number)
    const responseId = `resp_${randomUUID()}`
    const messageId = `${responseId}.1`
    for await (const text of count(n, ms)) {
      const update = { sessionUpdate: 'agent_message_chunk', messageId, content: { type: 'text', text } }
      emit({ jsonrpc: '2.0', method: 'session/update', params: { sessionId, update } })
    }
    const usage = { total_tokens: n + 2, input_tokens: 2, output_tokens: n }
    answer(id, { stopReason: 'end_turn', _meta: { uamp: { responseId, usage } } })
  }
}
