// @ts-check
import { Agent, request } from 'node:http'
import { answer } from '../lib/process.js'

const LARGE = 16 * 1024 * 1024
const MESSAGES = [{ role: 'user', content: `/big ${LARGE}` }]

/** Four at a time, two of them streamed. */
const ANSWERS = [
  { path: '/v1/chat/completions', body: { model: 'demo', messages: MESSAGES } },
  { path: '/v1/responses', body: { model: 'demo', input: `/big ${LARGE}` } },
  { path: '/v1/chat/completions', body: { model: 'demo', messages: MESSAGES, stream: true } },
  { path: '/v1/chat/completions', body: { model: 'demo', messages: MESSAGES, stream: true } },
]
const LIST = { path: '/a2a', body: { jsonrpc: '2.0', id: 1, method: 'ListTasks', params: { pageSize: 50 } } }
const agent = new Agent({ keepAlive: true })

answer({ answers, list })

/** Asks for all four at once, and gives their bytes. @param {{ port: number }} options */
async function answers({ port }) {
  const sizes = await Promise.all(ANSWERS.map((each) => post(port, each)))
  if (sizes.some((size) => size < LARGE)) throw new Error(`an answer is too short: ${sizes.join(', ')}`)
  return sizes.reduce((sum, size) => sum + size, 0)
}

/** Lists for so long, one page after the other. @param {{ port: number, ms: number }} options */
async function list({ port, ms }) {
  const until = performance.now() + ms
  let pages = 0
  let bytes = 0
  for (; performance.now() < until; pages++) bytes = await post(port, LIST)
  return { pages, bytes }
}

/** @param {number} port @param {{ path: string, body: object }} asked @returns {Promise<number>} */
function post(port, { path, body }) {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json', 'a2a-version': '1.0' }
    const sent = request({ port, host: '127.0.0.1', path, method: 'POST', headers, agent }, (response) => {
      let size = 0
      response.on('data', (/** @type {Buffer} */ chunk) => (size += chunk.length))
      response.on('error', reject)
      response.on('end', () => (response.statusCode === 200 ? resolve(size) : reject(new Error(`${path}: ${response.statusCode}`))))
    })
    sent.on('error', reject)
    sent.end(JSON.stringify(body))
  })
}
