/** Agents that do what they must not: they harm themselves, and nobody else. */
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { expect, test } from 'vitest'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { counter } from '../support/agents.ts'
import { verifies } from '../support/verifies.ts'
import { overWebSocket } from '../support/wire.ts'
import { bareEnd, type Bare } from './bare.ts'
import { answerOf, CALLER, complete, counted, host, LAPTOP, OTHER, startHost } from './hosts.ts'

const local = defineAgent('local', async function* () {
  yield 'I live here'
})

const TOKENS = new RegExp(`${LAPTOP}|${OTHER}|${CALLER}`)

const asks = async (url: string, agent: string, prompt = 'Hi') => answerOf(await complete(url, agent, { prompt }))

/** A host with an honest agent, which must not notice anything, and an end that is not honest. */
async function start(options: Parameters<typeof startHost>[1] = {}) {
  const server = await startHost([local], options)
  await host(server.url, { ...counter, name: 'team.honest' })
  const end = await bareEnd(server.url)
  await end.offer('counter', LAPTOP)
  const isFine = async (): Promise<void> => {
    expect(await asks(server.url, 'team.honest', '30')).toBe(counted(30))
    expect(await asks(server.url, 'local')).toBe('I live here')
    expect(server.logged.filter(({ level }) => level === 'error')).toEqual([])
    expect(JSON.stringify(server.logged)).not.toMatch(TOKENS)
  }
  return { server, end, isFine }
}

/** Asks over Completions, and reads nothing until `read` is called. */
async function slowCaller(url: string, agent: string, token = CALLER): Promise<{ read(): Promise<string> }> {
  const body = JSON.stringify({ model: agent, stream: true, messages: [{ role: 'user', content: 'Hi' }] })
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    httpRequest(`${url}/agents/${agent}/chat/completions`, { method: 'POST', headers }, resolve).on('error', reject).end(body)
  })
  return {
    read: async () => {
      let text = ''
      for await (const chunk of response.setEncoding('utf8')) text += chunk
      return text
    },
  }
}

verifies('connect.forged', 'an answer counts only from the connection that was asked', async () => {
  const { server, end, isFine } = await start()
  const forger = await bareEnd(server.url)
  await forger.offer('mirror', OTHER)
  const [idle, same] = [await bareEnd(server.url), await bareEnd(server.url)]
  // Even of the same principal.
  await same.offer('team.other', LAPTOP)
  const answer = asks(server.url, 'counter')
  const request = await end.request()
  const { session_id } = request
  const forged = [
    { type: 'response.delta', session_id, delta: { type: 'text', text: 'forged' } },
    { type: 'x.connect.deltas', session_id, seq: 1, texts: ['forged'] },
    { type: 'response.error', session_id, error: { code: 'internal', message: 'forged' } },
    { type: 'session.error', session_id, error: { code: 'internal', message: 'forged' } },
    { type: 'tool.call', session_id, call_id: 'c', name: 'forged', arguments: '{}' },
    { type: 'response.cancel', session_id },
    { type: 'session.update', session_id, token: OTHER },
    { type: 'session.end', session_id },
    { type: 'response.done', session_id },
    [{ type: 'response.done', session_id }],
  ]
  for (const other of [forger, same, idle]) {
    other.send(...forged.map((event) => JSON.stringify(event)))
    await (other === idle ? other.closed : other.settled())
    expect(JSON.stringify(other.heard)).not.toContain('I live')
  }
  end.answer(request, 'right')
  expect(await answer).toBe('right')
  const logged = server.logged.filter(({ message }) => message === 'A hosted agent answered under a session id that is not open here')
  expect(logged.map(({ fields }) => fields?.['agents'])).toEqual(['mirror', 'team.other'])
  await isFine()
})

verifies('connect.forged', 'nor after the end, nor from the connection before', async () => {
  const { server, end, isFine } = await start()
  const one = asks(server.url, 'counter')
  const first = await end.request()
  end.answer(first, 'first')
  end.say(first, ' and more')
  end.send({ type: 'response.error', session_id: first['session_id'], error: { code: 'internal', message: 'late' } })
  expect(await one).toBe('first')
  const two = asks(server.url, 'counter')
  const second = await end.request(1)
  end.say(first, 'of the one before')
  const successor = await bareEnd(server.url)
  await successor.offer('counter', LAPTOP)
  successor.answer(second, 'of the one after')
  await successor.settled()
  end.answer(second, 'second')
  expect(await two).toBe('second')
  await isFine()
})

/** Sends pieces until the host wants no more of them. */
async function flood(end: Bare, piece: (sent: number) => object): Promise<void> {
  for (let sent = 0; !end.heard.some(({ type }) => type === 'response.cancel'); sent++) {
    await end.write(piece(sent))
    // So that what came is seen.
    await new Promise((resolve) => setImmediate(resolve))
  }
}

const EMPTY = Array.from({ length: 50_000 }, () => '')
const said = (text: string) => () => ({ type: 'response.delta', delta: { type: 'text', text } })
const FLOODS: Readonly<Record<string, (sent: number) => object>> = {
  'long texts': said('x'.repeat(100_000)),
  thoughts: () => ({ type: 'thinking', content: 'x'.repeat(100_000) }),
  'runs of empty texts': (sent) => ({ type: 'x.connect.deltas', seq: 1 + sent * EMPTY.length, texts: EMPTY }),
}

for (const [what, piece] of Object.entries(FLOODS)) {
  verifies('connect.flood', `an agent that floods its caller with ${what} loses its own answer`, async () => {
    const { server, end, isFine } = await start({ limits: { messagesPerSecond: 100_000, messageBurst: 100_000 } })
    const other = await bareEnd(server.url)
    await other.offer('mirror', LAPTOP)
    // One that was asked before goes on.
    const before = asks(server.url, 'mirror')
    const request = await other.request()
    const caller = await slowCaller(server.url, 'counter')
    const { session_id } = await end.request()
    const during = flood(end, (sent) => ({ session_id, ...piece(sent) }))
    await isFine()
    await during
    other.answer(request, 'not affected')
    expect(await before).toBe('not affected')
    expect((await caller.read()).slice(-500)).toContain('The agent \\"counter\\" answers faster than its caller reads')
    // It is still there, and may do better.
    const again = asks(server.url, 'counter')
    end.answer(await end.request(1), 'better')
    expect(await again).toBe('better')
    await isFine()
  })
}

verifies('connect.flood', 'what waits for several slow callers is counted to whoever sends it', async () => {
  const { server, end, isFine } = await start({
    limits: { heldBytesPerPrincipal: 16 * 1024 * 1024, messagesPerSecond: 100_000, messageBurst: 100_000 },
  })
  const callers = await Promise.all([CALLER, OTHER, LAPTOP].map((token) => slowCaller(server.url, 'counter', token)))
  const requests = await Promise.all([0, 1, 2].map((nth) => end.request(nth)))
  // To all of them in turn: none has so much waiting that it would be too much for one.
  await flood(end, (sent) => ({ session_id: requests[sent % 3]?.['session_id'] as string, ...said('x'.repeat(10_000))() }))
  for (const request of requests) end.answer(request)
  await isFine()
  const heard = await Promise.all(callers.map((caller) => caller.read()))
  expect(heard.some((text) => text.includes('answers faster than its callers read'))).toBe(true)
})

verifies('connect.flood', 'events in great number are read more slowly, and nobody else waits', async () => {
  const { server, end, isFine } = await start({ limits: { messagesPerSecond: 100, messageBurst: 100 } })
  const answer = asks(server.url, 'counter')
  const request = await end.request()
  const texts = Array.from({ length: 150 }, (_, index) => `${index} `)
  end.answer(request, ...texts)
  const told = await end.first('session.error')
  expect(told['error']).toMatchObject({ code: 'rate_limited', details: { slowed: true } })
  await isFine()
  expect(await answer).toBe(texts.join(''))
})

verifies('connect.flood', 'its callers are told of its newest capabilities, and not of each of a thousand', async () => {
  const { server, end, isFine } = await start()
  const wire = await overWebSocket(server.url, { token: CALLER })
  await wire.open({ agent: 'counter' })
  const session = end.heard.find(({ type }) => type === 'session.created')?.['session_id'] as string
  const capabilities = (n: number) => ({ id: 'x', provider: `p${n}`, modalities: ['text'], supports_streaming: true })
  for (let n = 1; n <= 1000; n++) end.send({ type: 'client.capabilities', session_id: session, capabilities: capabilities(n) })
  await wire.next((event) => event.type === 'capabilities' && event['capabilities'].provider === 'p1000')
  expect(wire.heard.filter(({ type }) => type === 'capabilities').length).toBeLessThan(20)
  expect(server.agents.get('counter')?.capabilities).toMatchObject({ id: 'counter', provider: 'p1000' })
  wire.close()
  await isFine()
})

verifies('connect.silence', 'an agent that never answers ends with timeout, and its pings do not count', async () => {
  const { server, end, isFine } = await start({ limits: { hostedSilenceMs: 1_500 } })
  const silent = complete(server.url, 'counter', { prompt: 'Hi' })
  const { session_id } = await end.request()
  const pings = setInterval(() => end.send({ type: 'ping' }), 100)
  const response = await silent.finally(() => clearInterval(pings))
  expect(response.status).toBe(504)
  expect(await response.text()).toContain('The agent \\"counter\\" did not answer within 1500 ms')
  await end.first((event) => event.type === 'response.cancel' && event['session_id'] === session_id)
  await isFine()
})

const NAMES = ['__proto__', '../x', 'a/b', 'a b', '.hidden', '', 'x'.repeat(200), 'ü', '%2e%2e', 'a\nb']

verifies('connect.names', 'what cannot be a name is refused, also to those who may host it', async () => {
  for (const name of NAMES) await refuses(name)
})

async function refuses(name: string): Promise<void> {
  const server = await startHost([local], { grants: { laptop: [`host:${name}`], other: [] } })
  for (const extensions of [{ uamp: { connect: { version: 1, instance: 'i' } } }, {}]) {
    const end = await bareEnd(server.url)
    const refused = await end.offer(name, LAPTOP, { session: { agent: name, token: LAPTOP, extensions } })
    expect(refused, name).toMatchObject({ type: 'session.error', error: { code: 'invalid_request' } })
    expect(refused['error'].message).toContain(`"${name}" cannot be an agent's name`)
  }
  expect(server.agents.names()).toEqual(['local'])
}

test.each(['constructor', 'toString', 'hasOwnProperty', 'prototype'])('the name %s is like any other', async (name) => {
  const server = await startHost([local], { grants: { laptop: [`host:${name}`], other: [] } })
  await host(server.url, { ...counter, name })
  expect(await asks(server.url, name, '3')).toBe('1 2 3')
})

verifies(['connect.forbidden', 'connect.taken-name'], 'refusals say why, are logged without the token, and not without end', async () => {
  const { server, end, isFine } = await start()
  const other = await bareEnd(server.url)
  const session = (agent: string, token: string) => ({ session: { agent, token, extensions: { uamp: { connect: { version: 1 } } } } })
  const refusals: readonly (readonly [string, string, string, string])[] = [
    ['teams', OTHER, 'forbidden', 'This token may not host teams'],
    ['counter', OTHER, 'conflict', 'The name "counter" is taken: host the agent under another'],
    ['local', LAPTOP, 'conflict', 'The name "local" is taken: host the agent under another'],
  ]
  for (const [agent, token, code, message] of refusals) {
    expect(await other.offer(agent, token, session(agent, token))).toMatchObject({ type: 'session.error', error: { code, message } })
  }
  // Without our additions, a token that may not host wants to talk, and there is nobody.
  expect(await other.offer('nobody', OTHER)).toMatchObject({ error: { code: 'agent_offline' } })
  for (let round = 0; round < 30; round++) await other.offer('teams', OTHER, session('teams', OTHER))
  const logged = server.logged.filter(({ message }) => message === 'An agent was not hosted')
  // Of one principal.
  expect(logged.filter(({ fields }) => fields?.['principal'] === 'other')).toHaveLength(8)
  expect(logged[0]).toMatchObject({ level: 'warn', fields: { agent: 'teams', principal: 'other', code: 'forbidden' } })
  const answer = asks(server.url, 'counter')
  end.answer(await end.request(), 'not affected')
  expect(await answer).toBe('not affected')
  await isFine()
})

test('a session that hosts must name its agent', async () => {
  const { end } = await start()
  end.send({ type: 'session.create', token: LAPTOP, session: { extensions: { uamp: { connect: { version: 1 } } } } })
  expect((await end.first('session.error'))['error']).toMatchObject({
    code: 'invalid_request',
    message: 'Name the agent that this session hosts',
  })
})

verifies('connect.crowd', 'one connection hosts 256 agents, and the next one is refused', async () => {
  const { server, isFine } = await start()
  const crowd = await bareEnd(server.url)
  for (let n = 0; n < 300; n++) crowd.send({ type: 'session.create', session: { agent: `team.a${n}`, token: LAPTOP } })
  await crowd.settled()
  expect(crowd.heard.filter(({ type }) => type === 'session.created')).toHaveLength(256)
  const refused = crowd.heard.filter(({ type }) => type === 'session.error')
  expect(refused).toHaveLength(44)
  expect(refused[0]?.['error']).toMatchObject({
    code: 'rate_limited',
    message: 'One connection hosts at most 256 agents: connect again for others',
    details: { limit: 256 },
  })
  const answer = asks(server.url, 'team.a255')
  crowd.answer(await crowd.request(), 'here')
  expect(await answer).toBe('here')
  await isFine()
  crowd.cut()
  await expect.poll(() => server.agents.get('team.a0')?.hosted?.online).toBe(false)
})

test('a process that offers more agents than one connection hosts is told so, and does not wait for ever', async () => {
  const server = await startHost([local])
  const agents = Array.from({ length: 257 }, (_, index) => ({ ...counter, name: `team.a${index}` }))
  await expect(host(server.url, agents)).rejects.toThrow('One connection hosts at most 256 agents')
  await expect.poll(() => server.agents.get('team.a0')?.hosted?.online).toBe(false)
})
