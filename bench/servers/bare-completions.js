// @ts-check
import { randomUUID } from 'node:crypto'
import { count } from './bare-session.js'

/** @typedef {{ id: string, created: number, model: string }} Head */

/**
 * Chat completions with nothing behind them: the request is parsed, the agent is the same, the bytes are the same.
 *
 * @param {any} request
 * @param {import('node:http').ServerResponse} response
 * @param {'naive' | 'best' | 'template'} kind
 */
export async function complete({ model, messages, stream }, response, kind) {
  const [, n, ms] = messages.at(-1).content.split(' ').map(Number)
  const head = { id: `chatcmpl-${randomUUID()}`, created: Math.floor(Date.now() / 1000), model }
  if (!stream) return once(response, head, { n, ms })
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' })
  let text = ''
  const flush = () => {
    if (text) response.write(text)
    text = ''
  }
  const write = (/** @type {string} */ chunk) => {
    if (kind === 'naive') return response.write(chunk)
    if (text === '') process.nextTick(flush)
    text += chunk
  }
  const send = (/** @type {object} */ delta, /** @type {string | null} */ finish) => write(chunkOf(head, delta, finish))
  send({ role: 'assistant', content: '' }, null)
  if (kind === 'template') {
    const [before, after] = chunkOf(head, { content: '\0' }, null).split('"\\u0000"')
    for await (const content of count(n ?? 0, ms ?? 0)) write(before + JSON.stringify(content) + after)
  } else for await (const content of count(n ?? 0, ms ?? 0)) send({ content }, null)
  send({}, 'stop')
  const rest = text
  text = ''
  response.end(`${rest}data: [DONE]\n\n`)
}

/** Every field is written out: a spread of the head costs more than the rest of a chunk. @param {Head} head @param {object} delta @param {string | null} finish */
function chunkOf({ id, created, model }, delta, finish) {
  const choices = [{ index: 0, delta, finish_reason: finish }]
  return `data: ${JSON.stringify({ id, object: 'chat.completion.chunk', created, model, choices })}\n\n`
}

/** @param {import('node:http').ServerResponse} response @param {Head} head @param {{ n: number, ms: number }} asked */
async function once(response, { id, created, model }, { n, ms }) {
  let content = ''
  for await (const text of count(n, ms || 0)) content += text
  const body = JSON.stringify({
    id,
    object: 'chat.completion',
    created,
    model,
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
