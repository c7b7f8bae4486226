import { once } from 'node:events'
import { connect } from 'node:net'
import { expect, test } from 'vitest'
import { defineAgent } from '../../src/core/define-agent.ts'
import { text } from '../../src/core/drafts.ts'
import { startServer } from '../support/server.ts'

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
  const content = JSON.stringify({ model: 'endless', stream: true, ...body })
  client.write(`POST ${path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: ${content.length}\r\nconnection: close\r\n\r\n${content}`)
  await stop
  let heard = ''
  for await (const chunk of client.setEncoding('utf8')) heard += String(chunk)
  return heard
}

const WHY = 'The stream was cut: it was read too slowly'

test.each([
  ['Chat Completions', '/v1/chat/completions', { messages: [{ role: 'user', content: 'go' }] }],
  ['Responses', '/v1/responses', { input: 'go' }],
  ['Responses without a store', '/v1/responses', { input: 'go', store: false }],
])('a reader that stands still is told so when it reads again: %s', async (_, path, body) => {
  const heard = await standsStill(path, body)
  // The end of the chunked coding: for the client the answer is over, and not the connection broken.
  expect(heard.slice(-5)).toBe('0\r\n\r\n')
  const last = heard.slice(heard.lastIndexOf('xxx'))
  expect(last).toContain(WHY)
  if (path.endsWith('responses')) expect(last).toMatch(/event: error\ndata: \{"type":"error","sequence_number":\d+,"code":"timeout"/)
  else expect(last).toMatch(/data: \{"error":\{"message":.*\n\ndata: \[DONE\]/s)
})
