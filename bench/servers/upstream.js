// @ts-check
import { createServer } from 'node:http'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { answer } from '../lib/process.js'

/**
 * A provider that speaks Chat Completions and thinks of nothing: `/count n` is answered with n chunks, each a write of its own, or
 * all in one (`burst`).
 */
const burst = process.argv[2] === 'burst'

/** @param {any} body @param {import('node:http').ServerResponse} response */
async function complete({ messages, stream, model }, response) {
  const n = Number(String(messages.at(-1).content).split(' ')[1])
  const head = { id: 'chatcmpl-mock', created: 1_700_000_000, model }
  const usage = { prompt_tokens: 2, completion_tokens: n, total_tokens: n + 2 }
  if (!stream) {
    const content = Array.from({ length: n }, (_, i) => i + 1).join(' ')
    const choices = [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }]
    const text = JSON.stringify({ ...head, object: 'chat.completion', choices, usage })
    return response.writeHead(200, { 'content-type': 'application/json', 'content-length': text.length }).end(text)
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  const chunk = (/** @type {object} */ delta, /** @type {string | null} */ finish) =>
    `data: ${JSON.stringify({ ...head, object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`
  const chunks = [chunk({ role: 'assistant', content: '' }, null)]
  for (let i = 1; i <= n; i++) chunks.push(chunk({ content: i === 1 ? '1' : ` ${i}` }, null))
  chunks.push(chunk({}, 'stop'))
  if (burst) return response.end(`${chunks.join('')}data: [DONE]\n\n`)
  for (const text of chunks) {
    response.write(text)
    await nextTurn()
  }
  response.end('data: [DONE]\n\n')
}

const server = createServer((request, response) => {
  let body = ''
  request.setEncoding('utf8')
  request.on('data', (chunk) => (body += chunk))
  request.on('end', () => void complete(JSON.parse(body), response))
})
server.keepAliveTimeout = 60_000
server.listen({ port: 0, host: '127.0.0.1', backlog: 4096 }, () => {
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  answer({}, { ready: { port } })
})
