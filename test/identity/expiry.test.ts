import { expect } from 'vitest'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { text } from '../../src/core/agent-kit/drafts.ts'
import { TOKEN_REVOKED } from '../../src/core/basics/principal.ts'
import { Live } from '../../src/server/live.ts'
import { events } from '../../src/transports/events/index.ts'
import { mirror } from '../support/agents.ts'
import { mirrored, say, textOf } from '../support/talk.ts'
import { testServer } from '../support/test-server.ts'
import { verifies } from '../support/verifies.ts'
import { overSse, overWebSocket, type Heard, type Wire } from '../support/wire.ts'
import { TimedAccess } from './timed-access.ts'

const EXPIRED = { type: 'session.error', error: { code: 'unauthorized', details: { reason: 'token_expired' } } }

const of = (session: string, type: string) => (event: Heard) => event['session_id'] === session && event.type === type

/** Not `wire.next`, which passes over events that others wait for. */
async function told(wire: Wire, session: string, type: string): Promise<Heard | undefined> {
  await expect.poll(() => wire.heard.find(of(session, type)), { timeout: 10_000 }).toBeDefined()
  return wire.heard.find(of(session, type))
}

async function start(graceSeconds?: number) {
  const access = new TimedAccess(graceSeconds === undefined ? {} : { graceSeconds })
  const live = new Live({ graceSeconds: access.graceSeconds })
  // Says a word, waits until it may go on, and says the rest.
  let goOn: () => void = () => undefined
  const may = new Promise<void>((resolve) => (goOn = resolve))
  const slow = defineAgent('slow', async function* () {
    yield text('one')
    await may
    yield text(' two')
  })
  const server = await testServer({ agents: [mirror, slow], transports: [events()], access, live, defaultAgent: 'mirror' })
  return { ...server, access, live, goOn: () => goOn() }
}

verifies(
  ['identity:time:announced', 'identity:time:detached', 'identity:time:others', 'identity:time:session-token'],
  'a session whose token expires is told so, ends here alone, and goes on with a new token',
  async () => {
    const { url, access } = await start(1)
    const wire = await overWebSocket(url)
    const other = await wire.open({ token: access.give('bob') })
    const short = await wire.open({ session: { modalities: ['text'], token: access.give('alice', { expiresIn: 1 }) } })
    expect(await told(wire, short, 'session.error')).toMatchObject({ ...EXPIRED, error: { details: { grace_seconds: 1 } } })
    expect(await told(wire, short, 'session.end')).toMatchObject({ reason: 'token_expired' })
    expect(await wire.send({ type: 'input.text', text: 'x', session_id: short })).toMatchObject({ code: 'not_found' })
    expect(mirrored(await say(wire, 'still here', { session: other })).principal.id).toBe('bob')
    const resume = { modalities: ['text'], extensions: { uamp: { resume: { session_id: short, after: 0 } } } }
    expect(await wire.open({ token: access.give('alice'), session: resume })).toBe(short)
    expect(mirrored(await say(wire, 'again', { session: short })).principal.id).toBe('alice')
  },
)

verifies(
  ['identity:time:refreshed', 'identity:time:others'],
  'an answer goes on while its token expires and another takes its place',
  async () => {
    const { url, access, goOn } = await start(1)
    const wire = await overWebSocket(url)
    const lasting = await wire.open({ token: access.give('alice', { expiresIn: 1 }), agent: 'slow' })
    const ending = await wire.open({ token: access.give('bob', { expiresIn: 1 }) })
    const answer = say(wire, 'go', { session: lasting })
    await told(wire, lasting, 'session.error')
    const [stranger, own] = [access.give('bob'), access.give('alice', { expiresIn: 3_600_000 })]
    expect(await wire.send({ type: 'session.update', session_id: lasting, token: stranger })).toMatchObject({ code: 'unauthorized' })
    expect(await wire.send({ type: 'session.update', session_id: lasting, token: own })).toBeUndefined()
    // The grace of both began together, so it is over for both.
    await told(wire, ending, 'session.end')
    goOn()
    expect(textOf(await answer)).toBe('one two')
    expect(wire.heard.filter(of(lasting, 'session.end'))).toEqual([])
  },
)

verifies('identity:time:refused', 'a refresh with the token of somebody else changes nothing', async () => {
  const { url, access } = await start()
  const wire = await overWebSocket(url, { token: access.give('alice', { expiresIn: 1 }) })
  const session = await wire.open()
  expect(await wire.send({ type: 'session.update', token: access.give('bob') })).toMatchObject({ code: 'unauthorized' })
  expect(await told(wire, session, 'session.end')).toMatchObject({ reason: 'token_expired' })
})

verifies('identity:time:refreshed', 'a token without a session id is for the connection and all sessions of its owner', async () => {
  const { url, access } = await start(1)
  const wire = await overWebSocket(url, { token: access.give('alice', { expiresIn: 1 }) })
  const [first, second] = [await wire.open(), await wire.open()]
  const other = await wire.open({ token: access.give('bob', { expiresIn: 1 }) })
  await told(wire, second, 'session.error')
  // It belongs to no session, so it is acknowledged by none.
  void wire.send({ type: 'session.update', token: access.give('alice', { expiresIn: 3_600_000 }) })
  await expect.poll(() => wire.heard.some(({ type }) => type === 'session.updated')).toBe(true)
  await told(wire, other, 'session.end')
  for (const session of [first, second]) expect(mirrored(await say(wire, 'x', { session })).principal.id).toBe('alice')
  // Nor has the connection ended for sessions that bring no token.
  expect(await wire.open()).toMatch(/^sess_/)
})

verifies('identity:time:sockets', 'a connection that nobody is left on is closed with 4401', async () => {
  const { access, connect } = await start()
  const socket = connect('/uamp', { headers: { authorization: `Bearer ${access.give('alice', { expiresIn: 1 })}` } })
  const closed = await new Promise((resolve) => socket.once('close', (code, reason) => resolve([code, reason.toString()])))
  expect(closed).toEqual([4401, 'token_expired'])
})

verifies('identity:time:session-token', 'after its own token, a connection opens only sessions that bring one', async () => {
  const { url, access } = await start()
  const wire = await overWebSocket(url, { token: access.give('alice', { expiresIn: 1 }) })
  const other = await wire.open({ token: access.give('bob') })
  const own = await wire.open()
  await told(wire, own, 'session.end')
  await expect(wire.open()).rejects.toMatchObject({ refusal: EXPIRED })
  expect(await wire.open({ token: access.give('alice') })).toMatch(/^sess_/)
  expect(mirrored(await say(wire, 'x', { session: other })).principal.id).toBe('bob')
})

verifies(['identity:time:streams', 'identity:time:detached'], 'a stream of events ends with its token and can be resumed', async () => {
  const { url, access } = await start(1)
  const wire = await overSse(url, { token: access.give('alice', { expiresIn: 1 }) })
  const session = await wire.open()
  expect(await told(wire, session, 'session.error')).toMatchObject({ ...EXPIRED, error: { details: { grace_seconds: 1 } } })
  expect(await told(wire, session, 'session.end')).toMatchObject({ reason: 'token_expired' })
  const again = await overSse(url, { token: access.give('alice') })
  await again.follow(session, 0)
  expect(mirrored(await say(again, 'x', { session })).principal.id).toBe('alice')
})

verifies('identity:time:refreshed', 'who may only read may also bring a newer token', async () => {
  const { url, access } = await start(1)
  const session = await (await overWebSocket(url, { token: access.give('alice') })).open()
  const reader = (expiresIn: number) => access.give('alice', { scopes: ['read'], expiresIn })
  const wire = await overWebSocket(url, { token: reader(1) })
  await wire.follow(session, 0)
  await told(wire, session, 'session.error')
  expect(await wire.send({ type: 'session.update', session_id: session, token: reader(3_600_000) })).toBeUndefined()
  expect(await wire.send({ type: 'input.text', session_id: session, text: 'x' })).toMatchObject({ code: 'forbidden' })
})

verifies('identity:time:revoked', 'what is revoked ends at once, and nothing of others', async () => {
  const { url, access, live } = await start(60)
  const wire = await overWebSocket(url)
  const bob = await wire.open({ token: access.give('bob') })
  const alice = await wire.open({ token: access.give('alice') })
  const stream = await overSse(url, { token: access.give('alice') })
  const streamed = await stream.open()
  expect(live.cut(({ id }) => id === 'alice', TOKEN_REVOKED)).toBe(2)
  expect(await told(wire, alice, 'session.end')).toMatchObject({ reason: TOKEN_REVOKED })
  expect(await told(stream, streamed, 'session.end')).toMatchObject({ reason: TOKEN_REVOKED })
  expect(mirrored(await say(wire, 'x', { session: bob })).principal.id).toBe('bob')
})
