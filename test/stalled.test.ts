import { once } from 'node:events'
import { connect } from 'node:net'
import { expect, test } from 'vitest'
import { defineAgent } from '../src/core/agent-kit/define-agent.ts'
import { text } from '../src/core/agent-kit/drafts.ts'
import { startServer } from './support/server.ts'

const LIMITS = { stallMs: 200, outboundBytes: 64 * 1024 }

/** A client that asks, reads nothing until the agent was stopped, and then everything. */
async function standsStill(path: string, body: object): Promise<string> {
  let stopped!: () => void
  const stop = new Promise<void>((resolve) => (stopped = resolve))
  const endless = defineAgent('endless', async function* () {
    try {
      for (;;) yield text('x'.repeat(10_000))
    } finally {
      stopped()
    }
  })
  const { port } = await startServer(endless, { limits: LIMITS })
  const client = connect(port, '127.0.0.1')
  await once(client, 'connect')
  const content = JSON.stringify(body)
  const headers = ['host: localhost', 'accept: text/event-stream', 'content-type: application/json', 'connection: close']
  client.write([`POST ${path} HTTP/1.1`, ...headers, `content-length: ${content.length}`, '', content].join('\r\n'))
  await stop
  let heard = ''
  for await (const chunk of client.setEncoding('utf8')) heard += String(chunk)
  return heard
}

const WHY = 'The stream was cut: it was read too slowly'
const ERROR_EVENT = /event: error\ndata: \{"type":"error","sequence_number":\d+,"code":"timeout"/

const prompt = { messages: [{ role: 'user', content: 'go' }] }
const run = { threadId: 't', runId: 'r', messages: [{ id: 'm', role: 'user', content: 'go' }], tools: [], context: [], state: {} }

test.each([
  [
    'Chat Completions',
    '/v1/chat/completions',
    { model: 'endless', stream: true, ...prompt },
    /data: \{"error":\{"message":.*\n\ndata: \[DONE\]/s,
  ],
  ['Responses', '/v1/responses', { model: 'endless', stream: true, input: 'go' }, ERROR_EVENT],
  ['Responses without a store', '/v1/responses', { model: 'endless', stream: true, input: 'go', store: false }, ERROR_EVENT],
  ['AG-UI', '/ag-ui', run, /data: \{"type":"RUN_ERROR",.*"code":"timeout"/],
  [
    'ACP, one request',
    '/acp',
    { jsonrpc: '2.0', id: 7, method: 'prompt/submit', params: prompt },
    /data: \{"jsonrpc":"2.0","id":7,"error":\{"code":-32004/,
  ],
])('a reader that stands still is told so when it reads again: %s', async (_, path, body, told) => {
  const heard = await standsStill(path, body)
  // The end of the chunked coding: for the client the answer is over, and not the connection broken.
  expect(heard.slice(-5)).toBe('0\r\n\r\n')
  const last = heard.slice(heard.lastIndexOf('xxx'))
  expect(last).toContain(WHY)
  expect(last).toMatch(told)
})
