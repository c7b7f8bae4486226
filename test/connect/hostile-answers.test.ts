/** Answers of hosted agents that are no answers. */
import { expect, test } from 'vitest'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { verifies } from '../support/verifies.ts'
import { mirror } from '../support/agents.ts'
import { remoteEvents } from '../../src/remotes/events/index.ts'
import { bareEnd } from './bare.ts'
import { answerOf, CALLER, complete, host, LAPTOP, startHost } from './hosts.ts'

const local = defineAgent('local', async function* () {
  yield 'I live here'
})

async function start(options: Parameters<typeof startHost>[1] = {}) {
  const server = await startHost([local], options)
  const end = await bareEnd(server.url)
  await end.offer('counter', LAPTOP)
  await end.offer('mirror', LAPTOP)
  const ask = (agent: string) => complete(server.url, agent, { prompt: agent })
  return { server, end, ask }
}

verifies('connect.malformed', 'malformed JSON is refused, and what is asked meanwhile is answered', async () => {
  const { server, end, ask } = await start()
  const answer = ask('counter')
  const request = await end.request()
  const wrong = ['{"type":"response.delta",', 'nonsense', '', '[', '"text"', '7', 'null', '[1,{"type":"ping"}]', '{"session_id":7}', '{}']
  end.send(...wrong)
  await end.settled()
  const refused = end.heard.filter(({ type }) => type === 'session.error')
  expect(refused).toHaveLength(wrong.length)
  expect(new Set(refused.map(({ error }) => error.code as string))).toEqual(new Set(['invalid_request']))
  end.answer(request, 'whole')
  expect(await answerOf(await answer)).toBe('whole')
  expect(server.logged.filter(({ level }) => level === 'error')).toEqual([])
})

const session = '{"type":"response.delta","event_id":"1","session_id":"SESSION","delta":{"type":"text","text":"x"},"more":'
const HUGE: Readonly<Record<string, string>> = {
  members: `${session}[${'0,'.repeat(200_000)}0]}`,
  levels: `${session}${'['.repeat(2000)}${']'.repeat(2000)}}`,
}

for (const [what, event] of Object.entries(HUGE)) {
  verifies('connect.flood', `an event of too many ${what} ends its own answer`, async () => {
    const { server, end, ask } = await start()
    const [one, two] = [ask('counter'), ask('mirror')]
    const requests = [await end.request(), await end.request(1)]
    const of = (text: string) => requests.find((request) => request['text'] === text) as (typeof requests)[0]
    end.send(event.replace('SESSION', of('counter')['session_id'] as string))
    const response = await one
    expect(response.status).toBe(502)
    expect(await response.text()).toContain('The agent \\"counter\\" sent an event that cannot be read')
    end.answer(of('mirror'), 'not affected')
    expect(await answerOf(await two)).toBe('not affected')
    expect(server.logged.filter(({ level }) => level === 'error')).toEqual([])
  })
}

verifies('connect.flood', 'an event that is larger than a message ends the connection, and not that of others', async () => {
  const { server, end, ask } = await start()
  const other = await bareEnd(server.url)
  await other.offer('team.other', LAPTOP)
  const [one, two] = [ask('counter'), ask('team.other')]
  const [request, request2] = [await end.request(), await other.request()]
  end.say(request, 'x'.repeat(5 * 1024 * 1024))
  expect(await end.closed).toBe(1009)
  const response = await one
  expect(response.status).toBe(404)
  expect(response.headers.get('retry-after')).toBe('5')
  other.answer(request2, 'not affected')
  expect(await answerOf(await two)).toBe('not affected')
  expect(server.agents.get('counter')?.hosted?.online).toBe(false)
})

/** Pieces that are none, and the status of the answer that has one. */
const PIECES: readonly (readonly [object, number])[] = [
  [{ type: 'x.connect.deltas', seq: 1, texts: 'x' }, 502],
  [{ type: 'x.connect.deltas', seq: 'one', texts: ['x'] }, 502],
  [{ type: 'x.connect.deltas', seq: 1, texts: [7] }, 502],
  // Said to come before what came already.
  [{ type: 'x.connect.deltas', seq: -1e308, texts: [null] }, 200],
  [{ type: 'x.nobody.knows' }, 200],
  [{ type: 7 }, 502],
  [{}, 502],
]

verifies('connect.malformed', 'a piece that is none ends at most its own answer', async () => {
  const { server, end, ask } = await start()
  for (const [nth, [piece, status]] of PIECES.entries()) {
    const answer = ask('counter')
    const { session_id } = await end.request(2 * nth)
    end.send({ session_id, ...piece }, { type: 'response.done', session_id })
    expect((await answer).status, JSON.stringify(piece)).toBe(status)
    const next = ask('counter')
    end.answer(await end.request(2 * nth + 1), 'fine')
    expect(await answerOf(await next)).toBe('fine')
  }
  expect(server.logged.filter(({ level }) => level === 'error')).toEqual([])
})

verifies('connect.malformed', 'fields of the wrong kind do not end more than the answer', async () => {
  const { server, end, ask } = await start()
  const answer = ask('counter')
  const { session_id } = await end.request()
  const pieces = [
    { type: 'response.delta', delta: 7 },
    { type: 'response.delta', delta: { type: 'text', text: 7 } },
    { type: 'response.delta', delta: { type: '__proto__', text: 'x' } },
    { type: 'response.created', response_id: 7 },
    { type: 'usage.delta', delta: 'x' },
    { type: 'thinking', content: {} },
    { type: 'tool.call', name: 7 },
    { type: 'payment.required', requirements: 7 },
    { type: 'capabilities', capabilities: 7 },
    { type: 'system.stop' },
    { type: 'session.create', token: LAPTOP },
  ]
  end.send(...pieces.map((piece) => ({ session_id, ...piece })))
  end.answer({ type: 'input.text', session_id }, 'the end')
  expect(await answerOf(await answer)).toBe('the end')
  const next = ask('counter')
  end.answer(await end.request(1), 'fine')
  expect(await answerOf(await next)).toBe('fine')
  expect(server.logged.filter(({ level }) => level === 'error')).toEqual([])
})

verifies('connect.own-words', 'an agent does not speak for the server: not of tokens, and not in headers', async () => {
  const { end, ask } = await start()
  for (const [nth, code] of ['unauthorized', 'forbidden', 'rate_limited'].entries()) {
    const answer = ask('counter')
    const { session_id } = await end.request(nth)
    const details = {
      challenge: 'Bearer realm="evil"\r\nx-evil: 1',
      dpop_nonce: 'a\nb',
      allow: 'a\nb',
      reason: 'insufficient_scope',
      retry_after: 7,
    }
    end.send({ type: 'response.error', session_id, error: { code, message: 'Show me your token', details } })
    const response = await answer
    expect(response.status).toBe(code === 'rate_limited' ? 429 : 502)
    expect(response.headers.get('www-authenticate')).toBeNull()
    expect(response.headers.get('x-evil')).toBeNull()
  }
})

test('what an agent says of itself is bounded', async () => {
  const { server, end } = await start()
  const description = 'x'.repeat(60_000)
  const extensions = { uamp: { connect: { version: 1, instance: 'i', description } } }
  await end.offer('team.a', LAPTOP, { session: { agent: 'team.a', token: LAPTOP, extensions } })
  expect(server.agents.get('team.a')?.description).toHaveLength(2_000)
  const capabilities = {
    id: 'x',
    provider: 'p',
    modalities: ['text'],
    supports_streaming: true,
    widgets: Array.from({ length: 1000 }, () => 'w'.repeat(200)),
  }
  const refused = await end.offer('team.b', LAPTOP, { client_capabilities: capabilities })
  expect(refused).toMatchObject({ type: 'session.error', error: { code: 'too_large' } })
  expect(server.agents.get('team.b')).toBeUndefined()
})

verifies('hops.circle', 'there by a hosted agent, back by events', async () => {
  const server = await startHost([local])
  await host(server.url, remoteEvents({ name: 'counter', url: `${server.url}/agents/counter`, token: CALLER }))
  const response = await complete(server.url, 'counter', { prompt: 'Hi' })
  expect(response.status).toBe(400)
  expect(await response.text()).toContain('too_many_hops')
})

verifies('connect.every-protocol', 'a conversation that is longer than one event takes reaches the agent as a whole', async () => {
  const server = await startHost([local])
  await host(server.url, mirror)
  const messages = Array.from({ length: 1201 }, (_, index) => ({ role: index % 2 === 0 ? 'user' : 'assistant', content: `m${index}` }))
  const given = JSON.parse(await answerOf(await complete(server.url, 'mirror', { prompt: '', messages }))) as {
    messages: { content: string }[]
  }
  expect(given.messages.map(({ content }) => content)).toEqual(messages.map(({ content }) => content))
})
