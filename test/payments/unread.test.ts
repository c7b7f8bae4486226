/** Who pays for an answer that its reader takes too slowly. */
import { once } from 'node:events'
import { connect } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { startPaid } from '../support/paying.ts'

const LIMITS = { turnTimeoutMs: 2_000, stallMs: 60_000, outboundBytes: 64 * 1024 }

test.each([
  ['Completions', '/v1/chat/completions', { stream: true, messages: [{ role: 'user', content: 'go' }] }],
  ['Responses', '/v1/responses', { stream: true, input: 'go' }],
  ['Responses without a store', '/v1/responses', { stream: true, store: false, input: 'go' }],
])('an answer whose time is over because it is not read is charged: %s', async (_, path, asked) => {
  const book = defineAgent(
    'book',
    async function* () {
      for (let page = 0; page < 2_000; page++) yield 'x'.repeat(10_000)
    },
    { price: { call: '0.01' } },
  )
  const { port, token, earned } = await startPaid(book, 'memory', { limits: LIMITS })
  const { text, locked } = await token('1')
  const client = connect(port, '127.0.0.1')
  onTestFinished(() => void client.destroy())
  await once(client, 'connect')
  const content = JSON.stringify({ model: 'book', ...asked })
  const headers = ['host: localhost', 'content-type: application/json', `x-payment: ${text}`, `content-length: ${content.length}`]
  client.write([`POST ${path} HTTP/1.1`, ...headers, '', content].join('\r\n'))
  await expect.poll(locked, { timeout: 5_000 }).toBe(10_000_000n)
  await expect.poll(locked, { timeout: 10_000 }).toBe(0n)
  expect(await earned('book')).toBe(10_000_000n)
})
