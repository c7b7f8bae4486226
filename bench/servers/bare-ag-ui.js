// @ts-check
import { randomUUID } from 'node:crypto'
import { count } from './bare-session.js'

/**
 * A run of AG-UI with nothing behind it: the request is parsed, the agent is the same, the bytes are the same.
 *
 * @param {any} request
 * @param {import('node:http').ServerResponse} response
 * @param {boolean} joined one write a tick instead of one an event
 */
export async function runAgUi({ threadId, runId, messages }, response, joined) {
  const [, n = 0, ms = 0] = messages.at(-1).content.split(' ').map(Number)
  const uamp = { session_id: `sess_${randomUUID()}`, response_id: `resp_${randomUUID()}` }
  const messageId = `${uamp.response_id}.0`
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' })
  let seq = 2
  let text = ''
  const flush = () => {
    if (text) response.write(text)
    text = ''
  }
  const send = (/** @type {object} */ event) => {
    const frame = `id: ${++seq}\ndata: ${JSON.stringify(event)}\n\n`
    if (!joined) return response.write(frame)
    if (text === '') process.nextTick(flush)
    text += frame
  }
  send({ type: 'RUN_STARTED', threadId, runId, protocolVersion: '1.0', metadata: { uamp } })
  send({ type: 'TEXT_MESSAGE_START', messageId, role: 'assistant' })
  for await (const delta of count(n, ms)) send({ type: 'TEXT_MESSAGE_CONTENT', messageId, delta })
  send({ type: 'TEXT_MESSAGE_END', messageId })
  const usage = [{ inputTokens: 2, outputTokens: n, totalTokens: n + 2 }]
  const end = { type: 'RUN_FINISHED', threadId, runId, outcome: { type: 'success' }, usage }
  const rest = text
  text = ''
  response.end(`${rest}id: ${++seq}\ndata: ${JSON.stringify(end)}\n\n`)
}
