// @ts-check
import { randomUUID } from 'node:crypto'
import { count } from './bare-session.js'

/**
 * Chat completions with nothing behind them: the request is parsed, the agent is the same, the bytes are the same.
 *
 * @param {any} request
 * @param {import('node:http').ServerResponse} response
 * @param {boolean} joined one write a tick instead of one a chunk
 */
export async function complete({ model, messages, stream }, response, joined) {
  const [, n, ms] = messages.at(-1).content.split(' ').map(Number)
  const head = { id: `chatcmpl-${randomUUID()}`, object: 'chat.completion.chunk', created: Math.floor(Date.now() / 1000), model }
  if (!stream) return once(response, head, { n, ms })
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' })
  let text = ''
  const flush = () => {
    if (text) response.write(text)
    text = ''
  }
  const send = (/** @type {object} */ delta, /** @type {string | null} */ finish) => {
    const chunk = `data: ${JSON.stringify({ ...head, choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`
    if (!joined) return response.write(chunk)
    if (text === '') process.nextTick(flush)
    text += chunk
  }
  send({ role: 'assistant', content: '' }, null)
  for await (const content of count(n ?? 0, ms ?? 0)) send({ content }, null)
  send({}, 'stop')
  const rest = text
  text = ''
  response.end(`${rest}data: [DONE]\n\n`)
}

/** @param {import('node:http').ServerResponse} response @param {object} head @param {{ n: number, ms: number }} asked */
async function once(response, head, { n, ms }) {
  let content = ''
  for await (const text of count(n, ms || 0)) content += text
  const body = JSON.stringify({
    ...head,
    object: 'chat.completion',
    choices: [{ index: 0, message: { role: 'assistant', content, refusal: null }, logprobs: null, finish_reason: 'stop' }],
    usage: {
      prompt_tokens: 2,
      completion_tokens: n,
      total_tokens: n + 2,
      prompt_tokens_details: { cached_tokens: 0, audio_tokens: 0 },
      completion_tokens_details: { reasoning_tokens: 0, audio_tokens: 0 },
    },
  })
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }).end(body)
}
