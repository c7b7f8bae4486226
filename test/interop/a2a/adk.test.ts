import { ClientFactory, createAuthenticatingFetchWithRetry, JsonRpcTransportFactory } from 'a2a03/client'
import { InMemoryRunner, RemoteA2AAgent, type Event } from '@google/adk'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { demo } from '../../../src/agents/demo/index.ts'
import { serve, type RunningServer } from '../../../src/serve/index.ts'
import { startServer } from '../../support/server.ts'

let server: RunningServer
beforeAll(async () => void (server = await serve(demo(), { port: 0, data: 'memory', log: () => undefined })))
afterAll(() => server.close({ graceMs: 0 }))

type Options = Partial<ConstructorParameters<typeof RemoteA2AAgent>[0]>

/** A runner of Google's Agent Development Kit whose agent is ours, by its card. */
function runner(agentCard: string, options: Options = {}) {
  return new InMemoryRunner({ agent: new RemoteA2AAgent({ name: 'far', agentCard, ...options }) })
}

const card = (name: string, url = server.url) => `${url}/agents/${name}/`
const words = (events: readonly Event[]): string =>
  events
    .filter(({ partial }) => !partial)
    .flatMap(({ content }) => content?.parts ?? [])
    .map((part) => part.text ?? '')
    .join('')

async function say(agent: InMemoryRunner, said: string): Promise<Event[]> {
  const events: Event[] = []
  for await (const event of agent.runEphemeral({ userId: 'u', newMessage: { role: 'user', parts: [{ text: said }] } })) events.push(event)
  return events
}

test('a message is answered', async () => {
  const events = await say(runner(card('demo')), 'Hello')
  expect(words(events)).toBe('You said: Hello')
  expect(events.every(({ errorMessage }) => errorMessage === undefined)).toBe(true)
})

test('a stream comes in pieces, and whole at its end', async () => {
  const events = await say(runner(card('demo')), '/count 5')
  const pieces = events.filter(({ partial }) => partial).flatMap(({ content }) => content?.parts?.map((part) => part.text ?? '') ?? [])
  expect(pieces.length).toBeGreaterThan(1)
  expect(pieces.join('')).toBe('1 2 3 4 5')
  expect(words(events)).toBe('1 2 3 4 5')
})

test('a conversation goes on', async () => {
  const agent = runner(card('demo'))
  const session = await agent.sessionService.createSession({ appName: agent.appName, userId: 'u' })
  const tell = async (said: string): Promise<Event[]> => {
    const events: Event[] = []
    const newMessage = { role: 'user', parts: [{ text: said }] }
    for await (const event of agent.runAsync({ userId: 'u', sessionId: session.id, newMessage })) events.push(event)
    return events
  }
  await tell('one')
  expect(words(await tell('/history'))).toContain('user: one\nassistant: You said: one')
})

test('an agent that fails is told as an error', async () => {
  const [last] = (await say(runner(card('demo')), '/error rate_limited')).slice(-1)
  expect(last).toMatchObject({ errorMessage: 'You asked me to fail with "rate_limited"', turnComplete: true })
})

test('a server that wants a token refuses whoever has none, and answers whoever shows it', async () => {
  const locked = await startServer(demo(), { tokens: { alice: 'wonderland-7b1f9c04' } })
  const [refused] = (await say(runner(card('demo', locked.url)), 'Hello')).slice(-1)
  expect(refused?.errorMessage).toMatch(/401/)
  const authorized = createAuthenticatingFetchWithRetry(fetch, {
    headers: async () => ({ authorization: 'Bearer wonderland-7b1f9c04' }),
    shouldRetryWithHeaders: async () => undefined,
  })
  const clientFactory = new ClientFactory({ transports: [new JsonRpcTransportFactory({ fetchImpl: authorized })] })
  expect(words(await say(runner(card('demo', locked.url), { clientFactory }), 'Hello'))).toBe('You said: Hello')
})
