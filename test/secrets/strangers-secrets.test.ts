import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { inspect } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { text } from '../../src/core/agent-kit/drafts.ts'
import { UampError } from '../../src/protocol/errors.ts'
import { startServer } from '../support/server.ts'
import { post, talk } from './raw.ts'

const [ALICE, BOB] = ['alice-token-0123456789', 'bobby-token-0123456789']
const of = (token: string) => ({ authorization: `Bearer ${token}` })

/** Words of our own errors, and names of their fields: nobody may make them vanish. */
const WORDS = [
  'session',
  'There is no',
  'details',
  'There is no agent',
  'request_id',
  'not_found',
  'supportedInterfaces',
  'A helper for many',
]

/** Says "fail with" what it is told to fail with. */
const bot = defineAgent(
  'bot',
  async function* (turn) {
    const said = turn.messages.at(-1)?.content ?? ''
    if (said.startsWith('fail with ')) throw new UampError('provider_error', said.slice('fail with '.length))
    if (said.startsWith('show ')) {
      const shown = said.slice('show '.length)
      const timeouts = { firstByteMs: 1_000, idleMs: 1_000, totalMs: 1_000 }
      const request = { method: 'GET' as const, headers: { 'x-payment': shown }, signal: turn.signal, maxBytes: 1024, timeouts }
      await turn.http.request({ url: `http://127.0.0.1:9/?token=${encodeURIComponent(shown)}`, ...request }).catch(() => undefined)
      throw new UampError('provider_error', `There is no session, and no ${shown}`, { details: { [shown]: 'details' } })
    }
    yield text('fine')
  },
  { description: 'A helper for many' },
)

async function started() {
  let calls = 0
  const hook = createServer((_, response) => {
    calls++
    response.writeHead(500).end()
  }).listen(0, '127.0.0.1')
  await once(hook, 'listening')
  onTestFinished(() => void hook.close())
  const url = `http://127.0.0.1:${(hook.address() as AddressInfo).port}`
  const options = { tokens: { alice: ALICE, bob: BOB }, outbound: { allow: ['127.0.0.1'] }, a2a: { pushLimits: { attempts: 1 } } }
  const server = await startServer(bot, options)
  /** Alice has a webhook called with this. */
  const call = async (credentials: string): Promise<void> => {
    const before = calls
    const taskPushNotificationConfig = {
      url: `${url}/?key=${encodeURIComponent(credentials)}`,
      token: credentials,
      authentication: { scheme: 'Bearer', credentials },
    }
    const message = { messageId: crypto.randomUUID(), role: 'ROLE_USER', parts: [{ text: 'Hello' }] }
    const params = { message, configuration: { taskPushNotificationConfig } }
    await post(`${server.url}/a2a`, { jsonrpc: '2.0', id: 1, method: 'SendMessage', params }, of(ALICE))
    await expect.poll(() => calls).toBeGreaterThan(before)
  }
  const card = async (): Promise<string> => (await fetch(`${server.url}/.well-known/agent-card.json`)).text()
  const say = (content: string, token: string): Promise<string> =>
    post(`${server.url}/v1/chat/completions`, { messages: [{ role: 'user', content }] }, of(token))
  /** What Bob is told of mistakes of his own. */
  const told = async (): Promise<string> => {
    const missing = await post(`${server.url}/v1/chat/completions`, { model: 'nope', messages: [{ role: 'user', content: 'x' }] }, of(BOB))
    const lost = await post(`${server.url}/events`, { type: 'input.text', text: 'x', session_id: 'sess_nope' }, of(BOB))
    return missing + lost
  }
  return { ...server, call, card, say, told }
}

test('credentials of a webhook change nothing of what anybody else is told', async () => {
  const { call, card, say, told } = await started()
  const before = await card()
  for (const word of WORDS) await call(word)
  expect(await told()).not.toContain('[redacted]')
  expect(await card()).toBe(before)
  expect(await say(`fail with ${WORDS.join(', ')}`, BOB)).toContain(WORDS.join(', '))
})

test('what an agent shows to others in a session is kept out of that session alone', async () => {
  const { card, say, told, logged } = await started()
  const before = await card()
  const key = 'key-in-the-code-of-an-agent'
  const own = await say(`show ${key}`, ALICE)
  expect(own).toContain('There is no session, and no [redacted]')
  expect(own).not.toContain(`no ${key}`)
  for (const word of ['There is no', 'session,', 'details', 'A helper for many']) await say(`show ${word}`, ALICE)
  expect(await say(`fail with ${key}, There is no session, details`, BOB)).toContain(`${key}, There is no session, details`)
  expect(await told()).not.toContain('[redacted]')
  expect(await card()).toBe(before)
  expect(JSON.stringify(logged)).not.toContain(key)
})

test('a secret that nearly repeats itself costs no more than another', async () => {
  const { call, say } = await started()
  await call(`${'a'.repeat(1000)}b${'c'.repeat(1010)}`)
  const answer = await say(`fail with ${'a'.repeat(1_000_000)}`, ALICE)
  expect(answer.split('a').length).toBeGreaterThan(1_000_000)
})

test('the MCP server of a client is kept from telling what it was shown, in the log too, and may not be shown too much', async () => {
  const far = createServer((request, response) => {
    request.resume()
    response.writeHead(400, { 'content-type': 'text/plain' }).end(`There is no session: ${JSON.stringify(request.headers)}`)
  }).listen(0, '127.0.0.1')
  await once(far, 'listening')
  onTestFinished(() => void far.close())
  const { url, logged } = await startServer(bot, { outbound: { allow: ['127.0.0.1'] } })
  const named = (name: string, value: string) => ({
    type: 'http',
    name,
    url: `http://127.0.0.1:${(far.address() as AddressInfo).port}/mcp`,
    headers: [{ name: 'x-team', value }],
  })
  const mcpServers = [named('telling', 'key-of-a-client-0123'), named('words', 'There is no'), named('large', 'a'.repeat(17_000))]
  const params = { cwd: '/', mcpServers }
  const begin = { jsonrpc: '2.0', id: 1, method: 'initialize', params: { protocolVersion: 1 } }
  expect(await talk(`${url}/acp`, [begin, { jsonrpc: '2.0', id: 2, method: 'session/new', params }], /"id":2\b/)).toContain('sessionId')
  const lines = logged.map(({ message, fields }) => `${message} ${inspect(fields)}`).join('\n')
  expect(lines).toContain('Left out an MCP server of a client')
  expect(lines).toContain('may have at most 16384 characters')
  expect(lines).toContain('[redacted]')
  expect(lines).not.toContain('key-of-a-client-0123')
  const lost = await post(`${url}/events`, { type: 'input.text', text: 'x', session_id: 'sess_nope' })
  expect(lost).toContain('There is no session')
})
