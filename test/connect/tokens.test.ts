/** How long an agent is hosted, and by whose token. */
import { expect } from 'vitest'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { TimedAccess } from '../identity/timed-access.ts'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'
import { bareEnd, barePlatform } from './bare.ts'
import { answerOf, CALLER, complete, counted, host, LAPTOP, OTHER, startHost } from './hosts.ts'

const local = defineAgent('local', async function* () {
  yield 'I live here'
})

const HOST = ['call', 'host']

/** Counts to its prompt, and waits before the last number until it may go on. */
function waiting() {
  let go: () => void = () => undefined
  const may = new Promise<void>((resolve) => (go = resolve))
  const agent = defineAgent('counter', async function* ({ messages }) {
    const last = Number(messages.at(-1)?.content)
    for (let n = 1; n <= last; n++) {
      if (n === last) await may
      yield n === 1 ? '1' : ` ${n}`
    }
  })
  return { agent, go: () => go() }
}

verifies('connect.own-principal', 'a token of another principal does not refresh the session of a hosted agent', async () => {
  const server = await startHost([local])
  const end = await bareEnd(server.url)
  const { session_id } = await end.offer('counter', LAPTOP)
  for (const [update, where] of [
    [{ session_id, token: OTHER }, { session_id }],
    [{ token: OTHER }, {}],
    [{ session_id, token: CALLER }, { session_id }],
  ] as const) {
    const before = end.heard.length
    end.send({ type: 'session.update', ...update })
    await end.settled()
    const [answer] = end.heard.slice(before)
    expect(answer).toMatchObject({ type: 'session.error', ...where, error: { code: 'unauthorized' } })
    expect(answer?.['error'].message).toBe('The token belongs to someone else: open a session of its own with it')
  }
  // It is hosted as before.
  const answer = complete(server.url, 'counter', { prompt: 'Hi' })
  end.answer(await end.request(), 'as before')
  expect(await answerOf(await answer)).toBe('as before')
  end.send({ type: 'session.update', session_id, token: LAPTOP })
  expect(await end.first('session.updated')).toMatchObject({ session_id })
  expect(JSON.stringify(server.logged)).not.toMatch(new RegExp(`${LAPTOP}|${OTHER}|${CALLER}`))
})

verifies(['connect.own-principal', 'connect.forbidden'], 'nor does one of the same principal that may not host', async () => {
  const access = new TimedAccess({ graceSeconds: 0.5 })
  const server = await startServer([local], { access })
  const end = await bareEnd(server.url)
  const { session_id } = await end.offer('counter', access.give('laptop', { expiresIn: 1_000, scopes: HOST }))
  const less = access.give('laptop', { scopes: ['call'] })
  end.send({ type: 'session.update', session_id, token: less })
  expect(await end.first('session.error')).toMatchObject({ session_id, error: { code: 'forbidden' } })
  // For the connection it is good, but the agent is hosted no longer than by the token that may.
  end.send({ type: 'session.update', token: less })
  await end.first('session.updated')
  expect(await end.first('session.end')).toMatchObject({ session_id, reason: 'token_expired' })
  expect((await complete(server.url, 'counter', { prompt: 'Hi', token: access.give('caller') })).status).toBe(404)
})

verifies('connect.refresh', 'a token that ends is replaced, and the answers go on', async () => {
  const access = new TimedAccess({ graceSeconds: 30, strict: true })
  const server = await startServer([local], { access })
  const { agent, go } = waiting()
  const given: string[] = []
  const token = (name: string) => {
    expect(name).toBe('counter')
    given.push(access.give('laptop', { expiresIn: 500, scopes: HOST }))
    return given.at(-1) ?? ''
  }
  const connected = await host(server.url, agent, { token })
  const answer = complete(server.url, 'counter', { prompt: '50', token: access.give('caller') })
  await expect.poll(() => given.length, { timeout: 10_000 }).toBeGreaterThan(3)
  go()
  expect(await answerOf(await answer)).toBe(counted(50))
  expect(connected.statuses).toEqual(['online'])
  expect(connected.logged).not.toContain('The host ended the session of an agent: it is offered again')
})

verifies('connect.refresh', 'one that says when it ends is replaced before', async () => {
  const platform = await barePlatform()
  const jwt = (exp: number) =>
    ['{"alg":"none"}', JSON.stringify({ exp }), 'x'].map((part) => Buffer.from(part).toString('base64url')).join('.')
  let made = 0
  const seconds = Math.floor(Date.now() / 1000)
  await host(platform.url, local, { token: () => jwt(seconds + 3 + 1000 * made++) })
  const socket = await platform.socket()
  const update = await socket.first('session.update')
  expect(update).toMatchObject({ session_id: 'of local', token: jwt(seconds + 1003) })
  expect(platform.sockets).toBe(1)
})

verifies('connect.host', 'agents of two principals share a socket, and each is hosted as long as its own token is good', async () => {
  const access = new TimedAccess({ graceSeconds: 0.1 })
  const server = await startServer([local], { access })
  const end = await bareEnd(server.url)
  const { session_id } = await end.offer('counter', access.give('one', { expiresIn: 500, scopes: HOST }))
  await end.offer('mirror', access.give('two', { scopes: HOST }))
  expect(await end.first('session.end')).toMatchObject({ session_id, reason: 'token_expired' })
  const token = access.give('caller')
  expect((await complete(server.url, 'counter', { prompt: 'Hi', token })).status).toBe(404)
  const answer = complete(server.url, 'mirror', { prompt: 'Hi', token })
  end.answer(await end.request(), 'still here')
  expect(await answerOf(await answer)).toBe('still here')
})

verifies(['connect.refresh', 'connect.offline'], 'without a newer one the agent is hosted no more', async () => {
  const access = new TimedAccess({ graceSeconds: 0.2, strict: true })
  const server = await startServer([local], { access })
  const { agent } = waiting()
  const connected = await host(server.url, agent, { token: access.give('laptop', { expiresIn: 500, scopes: HOST }) })
  const answer = await complete(server.url, 'counter', { prompt: '50', token: access.give('caller') })
  expect(answer.status).toBe(404)
  expect(answer.headers.get('retry-after')).toBe('5')
  await expect.poll(() => connected.logged).toContain('The host ended the session of an agent: it is offered again')
  expect(server.agents.get('counter')?.hosted?.online).toBe(false)
})
