/** What is refused has no effect, and says why in words of this protocol. */
import { expect, test } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { startServer } from '../support/server.ts'
import { flags, frame, OmniaClient } from './omnia-client.ts'

const history = async (client: OmniaClient): Promise<unknown> => (await client.say('/history')).at(-1)?.['content']

test('a message of too many parts was sent on with the next one, and the one after that', async () => {
  const { url } = await startServer(demo())
  const client = await OmniaClient.open(url)
  const parts = Array.from({ length: 600 }, (_, index) => ({ type: 'text', text: `p${index}` }))
  const error = await client.fails({ type: 'message', session_id: client.sessionId, parts })
  expect(error).toMatchObject({ code: 'INVALID_MESSAGE', message: 'A message may have 512 parts and 16777216 bytes' })
  expect(await history(client)).toBe('user: /history')
})

test('the beginning of a message that is too large stayed', async () => {
  const { url } = await startServer(demo(), { limits: { pendingBytes: 1000 } })
  const client = await OmniaClient.open(url)
  const parts = ['LEFTOVER', 'x'.repeat(1000)].map((text) => ({ type: 'text', text }))
  const error = await client.fails({ type: 'message', session_id: client.sessionId, parts })
  expect(error).toMatchObject({ code: 'INVALID_MESSAGE', details: { code: 'too_large' } })
  expect(error.message).not.toContain('response.create')
  expect(await history(client)).toBe('user: /history')
})

test('what was said while the agent was away was said when it came back', async () => {
  const server = await startServer(demo())
  const client = await OmniaClient.open(server.url)
  server.agents.remove('demo')
  const error = await client.fails({ type: 'message', session_id: client.sessionId, content: 'ONE' })
  expect(error).toMatchObject({ code: 'AGENT_UNAVAILABLE', details: { code: 'agent_offline' } })
  server.agents.add(demo())
  expect(await history(client)).toBe('user: /history')
})

test('of two connections that speak at once one was refused, and its words turned up in the next message', async () => {
  let go!: () => void
  const gate = new Promise<void>((resolve) => (go = resolve))
  const agent = defineAgent('demo', async function* ({ messages }) {
    yield { type: 'response.delta', delta: { type: 'text', text: messages.map(({ content }) => content).join() } }
    await gate
  })
  const { url } = await startServer(agent)
  const one = await OmniaClient.open(url)
  const two = await OmniaClient.open(url, { path: `/omnia?agent=demo&resume=${one.sessionId}` })
  for (const [client, content] of [
    [one, 'one'],
    [two, 'two'],
  ] as const) {
    client.send({ type: 'message', session_id: one.sessionId, content })
  }
  const refused = await Promise.any([one, two].map(async (client) => ({ client, error: (await client.next('error'))['error'] })))
  expect(refused.error).toMatchObject({ code: 'RATE_LIMITED', message: 'too many in-flight requests' })
  const [loser, winner, said] = refused.client === one ? [one, two, 'two'] : [two, one, 'one']
  // It knows that the other one is answered.
  expect((await loser.fails({ type: 'message', session_id: one.sessionId, content: 'now?' })).code).toBe('RATE_LIMITED')
  go()
  for (const client of [winner, loser]) expect((await client.next('done'))['content']).toBe(said)
  expect((await loser.say('three')).at(-1)?.['content']).toBe(`${said},${said},three`)
  expect(winner.heard.filter(({ type }) => type === 'error')).toEqual([])
})

test('sound and uploads of a session that had expired went to it all the same', async () => {
  const { url } = await startServer(demo(), { limits: { sessionTtlMs: 1_000, sweepMs: 50 } })
  const client = await OmniaClient.open(url)
  const before = client.sessionId
  expect((await client.next('error'))['error'].code).toBe('SESSION_EXPIRED')
  expect((await client.fails(frame({ payload: Buffer.alloc(960), flags: flags.last }))).code).toBe('SESSION_EXPIRED')
  const upload_request = { filename: 'a.txt', mime_type: 'text/plain', size_bytes: 3 }
  const ready = await client.ask({ type: 'upload_request', upload_request }, 'upload_ready')
  expect(client.sessionId).not.toBe(before)
  expect(ready).toMatchObject({ session_id: client.sessionId, upload_ready: { storage_ref: expect.stringContaining(client.sessionId) } })
})

test('tools that are none were found out by the first client', async () => {
  const start = startServer(demo(), { omnia: { clientTools: [{ name: 'x' } as never] } })
  await expect(start).rejects.toThrow('"omnia.clientTools.0.type" must be "function", but is missing')
})
