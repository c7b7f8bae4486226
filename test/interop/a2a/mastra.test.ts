import { MastraClient } from '@mastra/client-js'
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { demo } from '../../../src/agents/demo/index.ts'
import { serve, type RunningServer } from '../../../src/serve/index.ts'
import { startServer } from '../../support/server.ts'

type Wire = any // eslint-disable-line

let server: RunningServer
beforeAll(async () => void (server = await serve(demo(), { port: 0, data: 'memory', log: () => undefined })))
afterAll(() => server.close({ graceMs: 0 }))

/** Mastra's client asks at `{baseUrl}{apiPrefix}/a2a/{agent}`. Our agents have one endpoint each, so the last name is empty. */
function agent({ url = server.url, headers = {} }: { readonly url?: string; readonly headers?: Record<string, string> } = {}) {
  return new MastraClient({ baseUrl: url, apiPrefix: '/agents/demo', headers, retries: 0 }).getA2A('')
}

const say = (text: string): Wire => ({
  message: { kind: 'message', messageId: randomUUID(), role: 'user', parts: [{ kind: 'text', text }] },
})

test('a message is answered, and its task can be got', async () => {
  const { result }: Wire = await agent().sendMessage(say('Hello'))
  expect(result).toMatchObject({ kind: 'task', status: { state: 'completed' }, artifacts: [{ parts: [{ text: 'You said: Hello' }] }] })
  expect(await agent().getTask({ id: result.id })).toMatchObject({ result: { id: result.id, status: { state: 'completed' } } })
})

test('a stream comes in pieces', async () => {
  const events: Wire[] = []
  for await (const event of agent().sendMessageStream(say('/count 5'))) events.push(event)
  const pieces = events.flatMap(({ kind, artifact }) => (kind === 'artifact-update' ? artifact.parts.map(({ text }: Wire) => text) : []))
  expect(pieces.length).toBeGreaterThan(1)
  expect(pieces.join('')).toBe('1 2 3 4 5')
  expect(events.at(-1)).toMatchObject({ kind: 'status-update', status: { state: 'completed' }, final: true })
})

test('a task is cancelled, and its stream says so', async () => {
  const states: string[] = []
  let cancelled: Promise<unknown> | undefined
  for await (const event of agent().sendMessageStream(say('/count 1000000 1')) as AsyncIterable<Wire>) {
    if (event.kind === 'artifact-update') cancelled ??= agent().cancelTask({ id: event.taskId })
    if (event.kind === 'status-update') states.push(event.status.state)
  }
  expect(states.at(-1)).toBe('canceled')
  expect(await cancelled).toMatchObject({ result: { status: { state: 'canceled' } } })
})

test('errors are told: of an agent, and of the protocol', async () => {
  const { result }: Wire = await agent().sendMessage(say('/error rate_limited'))
  expect(result.status).toMatchObject({ state: 'failed', message: { metadata: { code: 'rate_limited' } } })
  expect(await agent().getTask({ id: 'nowhere' })).toMatchObject({ error: { code: -32001 } })
})

test('a server that wants a token refuses whoever has none, and answers whoever shows it', async () => {
  const { url } = await startServer(demo(), { tokens: { alice: 'wonderland-7b1f9c04' } })
  await expect(agent({ url }).sendMessage(say('Hello'))).rejects.toMatchObject({ status: 401 })
  const { result }: Wire = await agent({ url, headers: { authorization: 'Bearer wonderland-7b1f9c04' } }).sendMessage(say('Hello'))
  expect(result.status.state).toBe('completed')
})
