// @ts-check
import { randomUUID } from 'node:crypto'
import { said } from './bare-session.js'

/** @typedef {{ id: string, created: number, model: string }} Head */

/**
 * Chat completions with nothing behind them: the request is parsed, the agent is the same, the bytes are the same.
 *
 * @param {any} request
 * @param {import('node:http').ServerResponse} response
 * @param {'naive' | 'best' | 'template'} kind
 */
export async function complete({ model, messages, stream }, response, kind) {
  const prompt = messages.at(-1).content
  const head = { id: `chatcmpl-${randomUUID()}`, created: Math.floor(Date.now() / 1000), model }
  if (!stream) return once(response, head, { prompt, heard: lettersOf(messages) })
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
    for await (const content of said(prompt)) write(before + JSON.stringify(content) + after)
  } else for await (const content of said(prompt)) send({ content }, null)
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

/** @param {import('node:http').ServerResponse} response @param {Head} head @param {{ prompt: string, heard: number }} asked */
async function once(response, { id, created, model }, { prompt, heard }) {
  const input = Math.ceil(heard / 4)
  let content = ''
  let n = 0
  for await (const text of said(prompt)) {
    content += text
    n++
  }
  const body = JSON.stringify({
    id,
    object: 'chat.completion',
    created,
    model,
    choices: [{ index: 0, message: { role: 'assistant', content, refusal: null }, logprobs: null, finish_reason: 'stop' }],
    usage: {
      prompt_tokens: input,
      completion_tokens: n,
      total_tokens: n + input,
      prompt_tokens_details: { cached_tokens: 0, audio_tokens: 0 },
      completion_tokens_details: { reasoning_tokens: 0, audio_tokens: 0 },
    },
  })
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }).end(body)
}

/** One stored answer of Responses, of which only the text is large. @param {any} request @param {import('node:http').ServerResponse} response */
export async function respond({ model, input }, response) {
  let text = ''
  for await (const piece of said(input)) text += piece
  const output = [{ type: 'message', role: 'assistant', status: 'completed', content: [{ type: 'output_text', text, annotations: [] }] }]
  const body = JSON.stringify({ id: `resp_${randomUUID()}`, object: 'response', status: 'completed', model, output })
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }).end(body)
}

/** The demo counts what it heard. @param {{ content: string }[]} messages */
function lettersOf(messages) {
  let letters = 0
  for (const { content } of messages) letters += content.length
  return letters
}
