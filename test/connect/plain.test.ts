import { expect } from 'vitest'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { mirror, type Mirrored } from '../support/agents.ts'
import { textOf } from '../support/talk.ts'
import { verifies } from '../support/verifies.ts'
import { overWebSocket } from '../support/wire.ts'
import { bareEnd, barePlatform } from './bare.ts'
import { answerOf, CALLER, complete, host, LAPTOP, OTHER, startHost } from './hosts.ts'

const local = defineAgent('local', async function* () {
  yield 'I live here'
})

verifies(['connect.plain', 'connect.interaction'], 'an end that knows only the specification hosts an agent', async () => {
  const server = await startHost([local])
  const end = await bareEnd(server.url)
  const created = await end.offer('counter', LAPTOP)
  expect(created).toMatchObject({ type: 'session.created', uamp_version: '1.0', agent: 'counter', session: { agent: 'counter' } })
  expect(JSON.stringify(created)).not.toContain(LAPTOP)

  const one = complete(server.url, 'counter', { prompt: 'One' })
  const request = await end.request()
  expect(request).toMatchObject({ text: 'One', messages: [{ role: 'user', content: 'One' }], context: {} })
  expect(request['session_id']).not.toBe(created['session_id'])
  end.answer(request, 'first ', 'answer')
  expect(await answerOf(await one)).toBe('first answer')

  const two = complete(server.url, 'counter', { prompt: 'Two' })
  const other = await end.request(1)
  expect(other['session_id']).not.toBe(request['session_id'])
  end.answer(other, 'second answer')
  expect(await answerOf(await two)).toBe('second answer')
})

verifies('connect.plain', 'agent and token may also be where the specification has them, and several share a socket', async () => {
  const server = await startHost([local])
  const end = await bareEnd(server.url)
  for (const agent of ['counter', 'mirror']) {
    end.send({ type: 'session.create', uamp_version: '1.0', agent, token: LAPTOP, session: { modalities: ['text'] } })
    expect(await end.first((event) => event.type === 'session.created' && event['agent'] === agent)).toBeDefined()
  }
  const answers = ['counter', 'mirror'].map(async (agent) => answerOf(await complete(server.url, agent, { prompt: agent })))
  for (const nth of [0, 1]) {
    const request = await end.request(nth)
    end.answer(request, `of ${request['text']}`)
  }
  expect(await Promise.all(answers)).toEqual(['of counter', 'of mirror'])
})

verifies('connect.plain', 'what the end says for itself during an answer is not taken for a piece of it', async () => {
  const server = await startHost([local])
  const end = await bareEnd(server.url)
  await end.offer('counter', LAPTOP)
  const answer = complete(server.url, 'counter', { prompt: 'Hi' })
  const request = await end.request()
  // None of these has a session id, and one request is open.
  await end.settled()
  expect((await end.offer('mirror', LAPTOP)).type).toBe('session.created')
  end.send({ type: 'session.update', token: LAPTOP }, { type: 'pong' })
  await end.first('session.updated')
  end.answer(request, 'still whole')
  expect(await answerOf(await answer)).toBe('still whole')
})

verifies('connect.plain', 'without other requests a piece of an answer may lack its session id', async () => {
  const server = await startHost([local])
  const end = await bareEnd(server.url)
  await end.offer('counter', LAPTOP)
  const answer = complete(server.url, 'counter', { prompt: 'Hi' })
  await end.request()
  end.send({ type: 'response.delta', delta: { type: 'text', text: 'mine' } }, { type: 'response.done' })
  expect(await answerOf(await answer)).toBe('mine')
})

verifies(['connect.plain', 'connect.cancel'], 'it is told of a cancel, and its error reaches the caller', async () => {
  const server = await startHost([local])
  const end = await bareEnd(server.url)
  await end.offer('counter', LAPTOP)
  const wire = await overWebSocket(server.url, { token: CALLER })
  await wire.open({ agent: 'counter' })
  await wire.send({ type: 'input.text', text: 'Go' })
  await wire.send({ type: 'response.create' })
  const { session_id } = await end.request()
  await wire.send({ type: 'response.cancel' })
  await end.first((event) => event.type === 'response.cancel' && event['session_id'] === session_id)
  await wire.next('response.cancelled')
  await wire.send({ type: 'input.text', text: 'Again' })
  await wire.send({ type: 'response.create' })
  const again = await end.request(1)
  end.send({ type: 'response.error', session_id: again['session_id'], error: { code: 'agent_error', message: 'It is broken' } })
  expect((await wire.next('response.error'))['error']).toMatchObject({ code: 'agent_error', message: 'It is broken' })
  wire.close()
})

verifies(['connect.plain', 'connect.questions'], 'it asks for a tool of the client, and gets the result', async () => {
  const server = await startHost([local])
  const end = await bareEnd(server.url)
  await end.offer('counter', LAPTOP)
  const wire = await overWebSocket(server.url, { token: CALLER })
  await wire.open({ agent: 'counter' })
  await wire.send({ type: 'input.text', text: 'Go' })
  await wire.send({ type: 'response.create' })
  const request = await end.request()
  end.send({ type: 'tool.call', session_id: request['session_id'], call_id: 'c1', name: 'weather', arguments: '{}' })
  const call = await wire.next('tool.call')
  await wire.send({ type: 'tool.result', call_id: call['call_id'], result: '"sunny"' })
  const result = await end.first('tool.result')
  expect(result).toMatchObject({ session_id: request['session_id'], call_id: 'c1', result: '"sunny"' })
  end.answer(request, 'sunny')
  await wire.next('response.done')
  expect(textOf(wire.heard)).toBe('sunny')
  wire.close()
})

verifies(['connect.plain', 'connect.offline'], 'its answers end with its socket, because it cannot resume them', async () => {
  const server = await startHost([local])
  const end = await bareEnd(server.url)
  await end.offer('counter', LAPTOP)
  const answer = complete(server.url, 'counter', { prompt: 'Hi' })
  await end.request()
  end.cut()
  const response = await answer
  expect(response.status).toBe(404)
  expect(response.headers.get('retry-after')).toBe('5')
})

verifies('connect.taken-name', 'the token of a taken name is told so, and does not become a caller', async () => {
  const server = await startHost([local])
  const [end, other] = [await bareEnd(server.url), await bareEnd(server.url)]
  await end.offer('counter', LAPTOP)
  expect(await other.offer('counter', OTHER)).toMatchObject({
    type: 'session.error',
    error: { code: 'conflict', details: { agent: 'counter' } },
  })
  expect(await other.offer('local', LAPTOP)).toMatchObject({ type: 'session.error', error: { code: 'conflict' } })
  const answer = complete(server.url, 'counter', { prompt: 'Hi' })
  end.answer(await end.request(), 'mine')
  expect(await answerOf(await answer)).toBe('mine')
})

verifies('connect.settings', 'no token of a caller reaches the agent', async () => {
  const server = await startHost([local])
  const end = await bareEnd(server.url)
  await end.offer('counter', LAPTOP)
  const caller = await bareEnd(server.url)
  await caller.offer('counter', CALLER)
  caller.send({ type: 'session.update', token: CALLER, payment_token: 'a-token-that-pays' })
  caller.send({ type: 'input.text', text: 'Hi', payment_token: 'another-that-pays' }, { type: 'response.create' })
  const request = await end.request()
  expect(request['text']).toBe('Hi')
  expect(JSON.stringify(request)).not.toMatch(new RegExp(`${CALLER}|-pays`))
})

verifies('connect.once', 'an input.text starts one response, whatever the host sends after it', async () => {
  const platform = await barePlatform()
  const asked: string[] = []
  const agent = defineAgent('counter', async function* ({ messages }) {
    asked.push(String(messages.at(-1)?.content))
    yield `${messages.length} of ${asked.length}`
  })
  await host(platform.url, agent)
  const socket = await platform.socket()
  const messages = [
    { role: 'user', content: 'Before' },
    { role: 'assistant', content: 'Yes' },
    { role: 'user', content: 'One' },
  ]
  const one = { type: 'input.text', event_id: 'e1', session_id: 'never seen before', text: 'One', messages, context: {} }
  const create = { type: 'response.create', session_id: one.session_id }
  // At once, so that the second comes while the first is being opened.
  socket.send(one, create, one, create)
  const done = (event: { type: string }): boolean => event.type === 'response.done'
  await socket.first(done)
  socket.send(one, create)
  const two = { ...one, event_id: 'e2', text: 'Two', messages: [{ role: 'user', content: 'Two' }] }
  socket.send(two, create)
  await socket.first(done, 1)
  expect(asked).toEqual(['One', 'Two'])
  const answers = socket.heard.filter(({ type }) => type.startsWith('response.'))
  expect(answers.filter(({ type }) => type === 'response.created')).toHaveLength(2)
  expect(new Set(answers.map(({ session_id }) => session_id as string))).toEqual(new Set([one.session_id]))
  expect(textOf(answers)).toBe('3 of 11 of 2')
})

verifies('connect.once', 'what follows an input at once is about its response', async () => {
  const platform = await barePlatform()
  let stop: () => void = () => undefined
  const stopped = new Promise<void>((resolve) => (stop = resolve))
  const agent = defineAgent('counter', async function* ({ signal }) {
    yield 'a'
    await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
    stop()
  })
  await host(platform.url, agent)
  const socket = await platform.socket()
  socket.send({ type: 'input.text', session_id: 'i', text: 'Go' }, { type: 'response.cancel', session_id: 'i' })
  await socket.first('response.cancelled')
  socket.send({ type: 'input.text', session_id: 'j', text: 'Go' })
  await socket.first((event) => event.type === 'response.delta' && event['session_id'] === 'j')
  socket.send({ type: 'session.end', session_id: 'j' })
  await stopped
})

verifies('connect.once', 'what a host sends beside an input changes nothing but the settings', async () => {
  const platform = await barePlatform({ version: 1 })
  await host(platform.url, mirror)
  const socket = await platform.socket()
  const settings = {
    asked: { type: 'session.end', event_id: 7, metadata: { run: 7 }, extensions: 'none' },
    config: { modalities: ['text'], instructions: 'Be brief' },
    caller: { tenant: { a: 1 }, id: ['x'], labels: 'none', scopes: ['admin'] },
    client: 7,
    chat: 7,
    hops: 'many',
  }
  const input = (session_id: string, connect: object) => ({ type: 'input.text', session_id, text: 'Hi', extensions: { uamp: { connect } } })
  socket.send(input('i', settings))
  await socket.first('response.done')
  const { texts } = await socket.first('x.connect.deltas')
  const given = JSON.parse((texts as string[]).join('')) as Mirrored
  expect(given).toMatchObject({ config: { instructions: 'Be brief' }, asked: { metadata: { run: 7 } } })
  expect(given.principal.scopes).toEqual([])
  for (const [id, wrong] of Object.entries({ a: { config: 7 }, b: { before: 7 }, c: { before: [{ role: 'nobody' }] } })) {
    socket.send(input(id, wrong))
    const { error } = await socket.first(({ type, session_id }) => type === 'response.error' && session_id === id)
    expect(error).toMatchObject({ code: 'invalid_request' })
  }
})
