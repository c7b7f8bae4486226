/** Several processes for one agent, and processes that leave. */
import { expect } from 'vitest'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { textOf } from '../support/talk.ts'
import { verifies } from '../support/verifies.ts'
import { overWebSocket } from '../support/wire.ts'
import { bareEnd, barePlatform } from './bare.ts'
import { answerOf, CALLER, complete, host, LAPTOP, network, OTHER, startHost } from './hosts.ts'

const local = defineAgent('local', async function* () {
  yield 'I live here'
})

/** An agent of one process: says the process's name, waits until it may go on if it is asked to, and says more. */
function processOf(name: string) {
  let [go, begin] = [() => {}, () => {}]
  const may = new Promise<void>((resolve) => (go = resolve))
  const begun = new Promise<void>((resolve) => (begin = resolve))
  const agent = defineAgent('counter', async function* ({ messages }) {
    yield `${name} begins`
    begin()
    if (messages.at(-1)?.content === 'Wait') await may
    yield `, ${name} ends`
  })
  return { agent, begun, go: () => go(), whole: `${name} begins, ${name} ends` }
}

const ask = async (url: string, prompt = 'Now') => answerOf(await complete(url, 'counter', { prompt }))

async function isOnline(url: string): Promise<boolean | undefined> {
  const { agents } = (await (await fetch(`${url}/agents`)).json()) as { agents: { name: string; online?: boolean }[] }
  return agents.find(({ name }) => name === 'counter')?.online
}

verifies('connect.takeover', 'the process that was first is told, finishes its answers, and does not come back', async () => {
  const server = await startHost([local])
  const [first, second] = [processOf('first'), processOf('second')]
  const connected = await host(server.url, first.agent)
  const running = ask(server.url, 'Wait')
  await first.begun
  const later = await host(server.url, second.agent)
  expect(await ask(server.url)).toBe(second.whole)
  first.go()
  expect(await running).toBe(first.whole)
  await connected.closed
  expect(connected.logged).toContain('Another process hosts this agent from now on')
  expect(connected.statuses).toEqual(['online'])
  expect(await ask(server.url)).toBe(second.whole)
  expect(later.statuses).toEqual(['online'])
})

verifies('connect.takeover', 'the first gets session.end with daemon_takeover', async () => {
  const server = await startHost([local])
  const [first, second] = [await bareEnd(server.url), await bareEnd(server.url)]
  const { session_id } = await first.offer('counter', LAPTOP)
  const running = ask(server.url, 'One')
  const one = await first.request()
  await second.offer('counter', LAPTOP)
  expect(await first.first('session.end')).toMatchObject({ session_id, reason: 'daemon_takeover' })
  const next = ask(server.url, 'Two')
  second.answer(await second.request(), 'of the second')
  expect(await next).toBe('of the second')
  first.answer(one, 'of the first')
  expect(await running).toBe('of the first')
  await first.settled()
  expect(first.heard.filter(({ type }) => type === 'input.text')).toHaveLength(1)
})

verifies('connect.takeover', 'an end that offers an agent again and again hosts it once', async () => {
  const server = await startHost([local])
  const end = await bareEnd(server.url)
  for (let round = 0; round < 300; round++) expect((await end.offer('counter', LAPTOP)).type).toBe('session.created')
  expect(end.heard.filter(({ type }) => type === 'session.end')).toHaveLength(299)
  // There is still room for others.
  expect((await end.offer('mirror', LAPTOP)).type).toBe('session.created')
  const answer = ask(server.url)
  end.answer(await end.request(), 'here')
  expect(await answer).toBe('here')
})

verifies(['connect.takeover', 'connect.resume'], 'a cut while the first finishes loses nothing, and does not take over again', async () => {
  const server = await startHost([local])
  const net = await network(server.url)
  const [first, second] = [processOf('first'), processOf('second')]
  const connected = await host(net.url, first.agent)
  const running = ask(server.url, 'Wait')
  await first.begun
  const later = await host(server.url, second.agent)
  net.cut()
  await expect.poll(() => connected.statuses).toContain('offline')
  first.go()
  expect(await running).toBe(first.whole)
  await connected.closed
  expect(await ask(server.url)).toBe(second.whole)
  expect(later.statuses).toEqual(['online'])
})

verifies('connect.share', 'several processes answer for a name, the least busy first', async () => {
  const server = await startHost([local], { hosting: 'share' })
  const [first, second] = [processOf('first'), processOf('second')]
  const one = await host(server.url, first.agent)
  await host(server.url, second.agent)
  const running = ask(server.url, 'Wait')
  await Promise.race([first.begun, second.begun])
  // While one is busy, the other is asked every time.
  const others = [await ask(server.url), await ask(server.url), await ask(server.url)]
  first.go()
  second.go()
  const all = [await running, ...others]
  expect(new Set(others).size).toBe(1)
  expect(new Set(all)).toEqual(new Set([first.whole, second.whole]))
  await one.close()
  expect([await ask(server.url), await ask(server.url)]).toEqual([second.whole, second.whole])
})

verifies('connect.drain', 'a process that leaves takes no new requests and finishes its answers', async () => {
  const server = await startHost([local])
  const only = processOf('only')
  const connected = await host(server.url, only.agent)
  const running = ask(server.url, 'Wait')
  await only.begun
  const closing = connected.close({ graceMs: 60_000 })
  await expect.poll(() => isOnline(server.url)).toBe(false)
  const refused = await complete(server.url, 'counter', { prompt: 'Now' })
  expect(refused.status).toBe(404)
  expect(refused.headers.get('retry-after')).toBe('5')
  only.go()
  expect(await running).toBe(only.whole)
  await closing
  await connected.closed
})

verifies(['connect.drain', 'connect.resume'], 'a process that leaves comes back after a cut, and the next one stays', async () => {
  const server = await startHost([local])
  const net = await network(server.url)
  const [first, second] = [processOf('first'), processOf('second')]
  const connected = await host(net.url, first.agent)
  const running = ask(server.url, 'Wait')
  await first.begun
  const closing = connected.close({ graceMs: 60_000 })
  await expect.poll(() => isOnline(server.url)).toBe(false)
  const later = await host(server.url, second.agent)
  net.cut()
  await expect.poll(() => connected.statuses).toContain('offline')
  first.go()
  expect(await running).toBe(first.whole)
  await closing
  expect(await ask(server.url)).toBe(second.whole)
  expect(later.statuses).toEqual(['online'])
})

verifies('connect.drain', 'it ends its sessions, and answers what was asked before the host heard of it', async () => {
  const platform = await barePlatform({ version: 1 })
  const connected = await host(platform.url, [defineAgent('one', hello), defineAgent('two', hello)])
  const socket = await platform.socket()
  const closing = connected.close({ graceMs: 60_000 })
  for (const agent of ['one', 'two']) {
    await socket.first(({ type, session_id, reason }) => type === 'session.end' && session_id === `of ${agent}` && reason === 'drain')
  }
  // The host sent this before it got the end, and then it answers the ping that came after it.
  await socket.first('ping')
  socket.send({ type: 'input.text', session_id: 'late', agent: 'one', text: 'Hi' }, { type: 'pong' })
  await socket.first(({ type, session_id }) => type === 'response.done' && session_id === 'late')
  socket.send({ type: 'input.text', session_id: 'too late', agent: 'one', text: 'Hi' })
  const { error } = await socket.first(({ type, session_id }) => type === 'response.error' && session_id === 'too late')
  expect(error).toMatchObject({ code: 'agent_offline', details: { retry_after: 5 } })
  socket.send({ type: 'session.end', session_id: 'late' })
  await closing
  await socket.closed
  expect(platform.sockets).toBe(1)
})

verifies('connect.drain', 'answers that it has no time for end at once', async () => {
  const server = await startHost([local])
  const only = processOf('only')
  const connected = await host(server.url, only.agent)
  const wire = await overWebSocket(server.url, { token: CALLER })
  await wire.open({ agent: 'counter' })
  await wire.send({ type: 'input.text', text: 'Wait' })
  await wire.send({ type: 'response.create' })
  await wire.next('response.delta')
  await connected.close({ graceMs: 0 })
  expect((await wire.next('response.error'))['error']).toMatchObject({ code: 'agent_offline', details: { retry_after: 5 } })
  expect(textOf(wire.heard)).toBe('only begins')
  wire.close()
})

verifies('connect.forgotten', 'an agent that stays away is removed, and its name is free', async () => {
  const server = await startHost([local], { limits: { hostedNameMs: 500, resumeWindowMs: 100 } })
  const [first, second] = [processOf('first'), processOf('second')]
  const connected = await host(server.url, first.agent)
  await connected.close()
  expect(await isOnline(server.url)).toBe(false)
  await expect(host(server.url, second.agent, { token: OTHER })).rejects.toThrow('taken')
  await expect.poll(() => isOnline(server.url), { timeout: 10_000 }).toBeUndefined()
  expect(server.agents.names()).toEqual(['local'])
  await host(server.url, second.agent, { token: OTHER })
  expect(await ask(server.url)).toBe(second.whole)
})

verifies('connect.forgotten', 'one that is online is not, however long nobody asks it', async () => {
  const server = await startHost([local], { limits: { hostedNameMs: 1, resumeWindowMs: 1 } })
  const only = processOf('only')
  await host(server.url, only.agent)
  const gone = await host(server.url, { ...only.agent, name: 'mirror' })
  await gone.close()
  await expect.poll(() => server.agents.names(), { timeout: 10_000 }).not.toContain('mirror')
  expect(await ask(server.url)).toBe(only.whole)
})

async function* hello() {
  yield 'Hello'
}

verifies('connect.every-protocol', 'a host that is shut down lets its hosted agents finish', async () => {
  const server = await startHost([local])
  const only = processOf('only')
  const connected = await host(server.url, only.agent)
  const running = ask(server.url, 'Wait')
  await only.begun
  const closing = server.close({ graceMs: 20_000 })
  only.go()
  expect(await running).toBe(only.whole)
  await closing
  await expect.poll(() => connected.statuses).toContain('offline')
})
