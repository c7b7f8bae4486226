import { expect, test } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { text } from '../../src/core/agent-kit/drafts.ts'
import { remoteA2a } from '../../src/remotes/a2a/index.ts'
import { endless } from '../support/agents.ts'
import { startServer } from '../support/server.ts'
import { say, textOf } from '../support/talk.ts'
import { overWebSocket, type Heard } from '../support/wire.ts'
import { cutting } from './a2a/cutting.ts'
import { begin } from './plain.ts'

/** The demo on one server, and on another one the same demo behind it, over A2A. */
async function pair() {
  const there = await startServer(demo())
  const here = await startServer(remoteA2a({ name: 'far', url: there.url }))
  return { there, here }
}

/** New in every answer, or nothing that A2A has a place for. */
const LEFT_OUT = new Set(['content_id', 'id', 'call_id', 'expires_at', 'alt_text', 'duration_ms', 'size_bytes'])
const bare = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value, (key, field: unknown) => (LEFT_OUT.has(key) ? undefined : field)))
const endOf = (events: readonly Heard[]): unknown => {
  const { type, response, error } = events.at(-1) ?? { type: '' }
  return bare({ type, output: response?.output, usage: response?.usage, error })
}

/** What A2A carries, and what the extension for events does. */
test.each([
  'hello there',
  '/count 5',
  '/think life',
  '/tool add {"a":1,"b":2}',
  '/progress 2',
  '/image',
  '/video',
  '/file',
  '/json',
  '/big 200000',
  '/help',
  '/error rate_limited',
  '/error of_its_own',
])('%s behind a remote is what it is directly', async (command) => {
  const { there, here } = await pair()
  const [direct, remote] = await Promise.all([overWebSocket(there.url), overWebSocket(here.url)])
  await Promise.all([direct.open(), remote.open()])
  const [said, repeated] = [await say(direct, command), await say(remote, command)]
  expect(textOf(repeated)).toBe(textOf(said))
  expect(endOf(repeated)).toEqual(endOf(said))
})

test('tools of the client are declared there, and their calls come back', async () => {
  const double = { type: 'function', function: { name: 'double', parameters: { type: 'object' } } }
  const there = await startServer(
    defineAgent('declared', async function* (turn) {
      const names = (turn.config.tools ?? []).map((tool) => tool.function.name)
      const { result } = await turn.ask('tool.call', { name: names[0] ?? 'none', arguments: '{"n":4}' })
      yield text(`${names.join()} said ${result}`)
    }),
  )
  const here = await startServer(remoteA2a({ name: 'far', url: there.url }))
  const client = await overWebSocket(here.url)
  await client.open({ session: { modalities: ['text'], tools: [double] } })
  const answer = say(client, 'go')
  const { call_id, name } = await client.next('tool.call')
  expect(name).toBe('double')
  await client.send({ type: 'tool.result', call_id, result: 'eight' })
  expect(textOf(await answer)).toBe('double said eight')
})

test('the conversation is known there', async () => {
  const { here } = await pair()
  const client = await overWebSocket(here.url)
  await client.open()
  await say(client, 'one')
  await say(client, 'two')
  expect(textOf(await say(client, '/history'))).toBe(
    'user: one\nassistant: You said: one\nuser: two\nassistant: You said: two\nuser: /history',
  )
})

test('approvals are asked here and answered there', async () => {
  const { here } = await pair()
  const client = await overWebSocket(here.url)
  await client.open()
  const approved = await begin(client, '/approve the plan')
  const request = await client.next('x.approval.request')
  await client.send({ type: 'x.approval.response', approval_id: request['approval_id'], approved: true })
  expect(textOf(await approved.end())).toBe('Approved: the plan')
})

test('lines that break are taken up again where they broke', async () => {
  const there = await startServer(demo())
  const line = await cutting(() => there.url, { after: 20_000, times: 3 })
  const here = await startServer(remoteA2a({ name: 'far', url: line.url }))
  const client = await overWebSocket(here.url)
  await client.open()
  const events = await say(client, '/count 500 2')
  expect(textOf(events)).toBe(Array.from({ length: 500 }, (_, n) => n + 1).join(' '))
  expect(line.cuts()).toBeGreaterThan(0)
})

test('a cancel here stops the agent there', async () => {
  const { agent, stopped } = endless()
  const there = await startServer(agent)
  const here = await startServer(remoteA2a({ name: 'far', url: there.url }))
  const client = await overWebSocket(here.url)
  await client.open()
  await begin(client, 'go')
  await client.next('response.delta')
  await client.send({ type: 'response.cancel' })
  await client.next('response.cancelled')
  await stopped
})

test.each([
  ['a server that is not there', { url: 'http://127.0.0.1:9' }, 'provider_error', /cannot be reached/],
  ['a token that is wrong', { token: 'wrong' }, 'provider_error', /answered 401$/],
  ['an agent that is not there', { path: '/agents/nobody' }, 'not_found', /has no card/],
])('%s is told as an error', async (_, { path = '', ...options }: { url?: string; path?: string; token?: string }, code, message) => {
  const there = await startServer(demo(), { tokens: { alice: 'right-0123456789abcdef' } })
  const here = await startServer(remoteA2a({ name: 'far', url: there.url + path, token: 'right-0123456789abcdef', ...options }))
  const client = await overWebSocket(here.url)
  await client.open()
  expect((await say(client, 'hi')).at(-1)).toMatchObject({
    type: 'response.error',
    error: { code, message: expect.stringMatching(message) },
  })
})
