import { expect, test } from 'vitest'
import type { ClientEvent, ServerEvent } from '../../protocol/events.ts'
import { memoryStore } from '../../stores/memory.ts'
import { AgentRegistry } from '../engine/agent-registry.ts'
import { defineAgent } from '../agent-kit/define-agent.ts'
import { text } from '../agent-kit/drafts.ts'
import { createGateway } from '../engine/gateway.ts'
import type { CoreLimits } from '../basics/limits.ts'
import type { AgentPort } from '../ports/agent.ts'
import type { Session, SessionInit } from '../ports/session.ts'
import type { Store } from '../ports/store.ts'
import type { Logger } from '../ports/transport.ts'

const principal = { tenant: 'default', id: 'someone', scopes: [] }
const other = { ...principal, id: 'other' }
const ENDS = new Set(['response.done', 'response.error', 'response.cancelled'])

const init = (agent: AgentPort, input: string): SessionInit => ({
  transport: 'test',
  agent: agent.name,
  principal,
  config: { modalities: ['text'] },
  duplex: false,
  persist: true,
  onDetach: 'continue',
  input: [{ role: 'user', content: input }],
})

function gatewayOf(agent: AgentPort, { store = memoryStore(), limits = {} }: { store?: Store; limits?: Partial<CoreLimits> } = {}) {
  const agents = new AgentRegistry()
  agents.add(agent)
  return createGateway({ agents, store, limits })
}

let events = 0
const create = (): ClientEvent => ({ type: 'response.create', event_id: `c${++events}` })
const result = (call_id: string, json: string): ClientEvent => ({ type: 'tool.result', event_id: `r${++events}`, call_id, result: json })

/** Sends events and returns the id and the calls of the response that ends next. */
async function respond(session: Session, ...sent: readonly ClientEvent[]): Promise<{ id: string; calls: string[] }> {
  const reader = session.read({ extensions: 'all' })
  await Promise.all([...sent, create()].map((event) => session.send(event)))
  const heard: ServerEvent[] = []
  for await (const batch of reader) {
    for (const { event } of batch) heard.push(event)
    if (batch.has(ENDS)) break
  }
  const begun = heard.find((event) => event.type === 'response.created') as { response_id: string }
  return { id: begun.response_id, calls: heard.flatMap((event) => (event.type === 'tool.call' ? [event.call_id] : [])) }
}

/** Asks two questions, one after the other. */
function asker() {
  const count = { begun: 0, cleaned: 0 }
  const agent = defineAgent('asker', async function* (turn) {
    count.begun++
    try {
      yield text('a')
      const one = await turn.ask('tool.call', { name: 'one', arguments: '{}' })
      yield text(`b${one.result}`)
      const two = await turn.ask('tool.call', { name: 'two', arguments: '{}' })
      yield text(`c${two.result}`)
    } finally {
      count.cleaned++
    }
  })
  return { agent, count }
}

const echo = defineAgent('echo', async function* ({ messages }) {
  yield text(messages.map(({ content }) => content).join('|'))
})

const textIn = (output: readonly object[]): string =>
  output.map((item) => ('type' in item && item.type === 'text' && 'text' in item ? String(item.text) : '')).join('')

test('each response of a run is found by its own id, with what it said alone', async () => {
  const { agent } = asker()
  const gateway = gatewayOf(agent)
  const session = await gateway.open(init(agent, 'go'))
  const one = await respond(session)
  expect(session.waiting).toEqual({ response: one.id, questions: [{ id: one.calls[0], type: 'tool.call' }] })
  const two = await respond(session, result(one.calls[0] as string, '1'))
  const three = await respond(session, result(two.calls[0] as string, '2'))
  const turns = await Promise.all([one, two, three].map(({ id }) => gateway.response(id, principal)))
  expect(turns.map((turn) => [turn?.run, turn?.parent, turn?.status, textIn(turn?.output ?? [])])).toEqual([
    [one.id, null, 'waiting', 'a'],
    [one.id, one.id, 'waiting', 'b1'],
    [one.id, two.id, 'completed', 'c2'],
  ])
  expect(turns.map((turn) => turn?.given.map((answer) => answer.type === 'tool.result' && answer.result))).toEqual([[], ['1'], ['2']])
  expect(turns[0]).toMatchObject({ agent: 'asker', session: session.id, input: [{ role: 'user', content: 'go' }] })
  expect(await gateway.response(one.id, other)).toBeUndefined()
})

test('a response is found while it runs', async () => {
  let go = (): void => undefined
  const gate = new Promise<void>((resolve) => (go = resolve))
  const slow = defineAgent('slow', async function* () {
    await gate
    yield text('x')
  })
  const gateway = gatewayOf(slow)
  const session = await gateway.open(init(slow, 'go'))
  const reader = session.read()
  await session.send(create())
  let id = ''
  for await (const batch of reader) {
    for (const { event } of batch) if (event.type === 'response.created') id = event.response_id
    if (id !== '') break
  }
  expect(await gateway.response(id, principal)).toMatchObject({ status: 'open', output: [], endedAt: undefined })
  go()
  await expect.poll(async () => (await gateway.response(id, principal))?.status).toBe('completed')
})

test('answers that were acknowledged are there after a crash, and the run goes on with all of them', async () => {
  const store = memoryStore()
  const { agent, count } = asker()
  const session = await gatewayOf(agent, { store }).open(init(agent, 'go'))
  const one = await respond(session)
  const two = await respond(session, result(one.calls[0] as string, '1'))
  await session.send(result(two.calls[0] as string, '2'))

  const after = gatewayOf(agent, { store })
  await after.start()
  const found = (await after.attach(session.id, principal)) as Session
  expect(found.waiting).toEqual({ response: two.id, questions: [] })
  const three = await respond(found)
  const turn = await after.response(three.id, principal)
  expect([turn?.parent, turn?.run, textIn(turn?.output ?? [])]).toEqual([two.id, one.id, 'ab1c2'])
  expect(count.begun).toBe(2)
})

test('a run whose generator was given up is run again when its answer comes', async () => {
  const { agent, count } = asker()
  const gateway = gatewayOf(agent, { limits: { parkedPerPrincipal: 0 } })
  const session = await gateway.open(init(agent, 'go'))
  const one = await respond(session)
  await expect.poll(() => count.cleaned).toBe(1)
  const two = await respond(session, result(one.calls[0] as string, '1'))
  expect(textIn((await gateway.response(two.id, principal))?.output ?? [])).toBe('ab1')
  expect(count.begun).toBe(2)
})

test('a released session leaves memory, unless something waits', async () => {
  const gateway = gatewayOf(echo)
  const session = await gateway.open(init(echo, 'x'))
  const { id } = await respond(session)
  await session.release()
  expect(gateway.openSessions).toBe(0)
  expect(await gateway.response(id, principal)).toBeDefined()
  const { agent } = asker()
  const waits = gatewayOf(agent)
  const parked = await waits.open(init(agent, 'x'))
  await respond(parked)
  await parked.release()
  expect(waits.openSessions).toBe(1)
})

test('what others go on from is forgotten by its id alone', async () => {
  const store = memoryStore()
  const gateway = gatewayOf(echo, { store })
  const one = await respond(await gateway.open(init(echo, '1')))
  const two = await respond(await gateway.open({ ...init(echo, '2'), parent: one.id }))
  expect(await gateway.forget(one.id, other)).toBe(false)
  expect(await gateway.forget(one.id, principal)).toBe(true)
  expect(await gateway.forget(one.id, principal)).toBe(false)
  expect(await gateway.response(one.id, principal)).toBeUndefined()
  await expect(gateway.open({ ...init(echo, 'x'), parent: one.id })).rejects.toMatchObject({ code: 'not_found' })
  const three = await respond(await gateway.open({ ...init(echo, '3'), parent: two.id }))
  expect(textIn((await gateway.response(three.id, principal))?.output ?? [])).toBe('1|1|2|1|1|2|3')
})

test('with the only response of a session the session is forgotten; one of several leaves its place', async () => {
  const store = memoryStore()
  const gateway = gatewayOf(echo, { store })
  const alone = await gateway.open(init(echo, '1'))
  const { id } = await respond(alone)
  await gateway.forget(id, principal)
  expect(await gateway.attach(alone.id, principal)).toBeUndefined()
  expect(gateway.openSessions).toBe(0)

  const session = await gateway.open(init(echo, '1'))
  await respond(session)
  const last = await respond(session, { type: 'input.text', event_id: `i${++events}`, text: 'secret' })
  await gateway.forget(last.id, principal)
  await session.release()
  const again = (await gateway.attach(session.id, principal)) as Session
  const after = await respond(again, { type: 'input.text', event_id: `i${++events}`, text: '3' })
  expect(textIn((await gateway.response(after.id, principal))?.output ?? [])).toBe('1|1|3')
})

test('responses go with their session when its time has come', async () => {
  const agents = new AgentRegistry()
  agents.add(echo)
  let now = 0
  const gateway = createGateway({ agents, store: memoryStore(), now: () => now, limits: { sweepMs: 5, sessionTtlMs: 1000 } })
  const session = await gateway.open(init(echo, '1'))
  const { id } = await respond(session)
  await session.release()
  expect(await gateway.response(id, principal)).toBeDefined()
  now = 200_000
  await expect.poll(() => gateway.response(id, principal)).toBeUndefined()
  await gateway.close()
})

test('a session that never came to a response leaves nothing behind', async () => {
  const store = memoryStore()
  const gateway = gatewayOf(echo, { store })
  const session = await gateway.open(init(echo, '1'))
  await session.release()
  expect(await gateway.attach(session.id, principal)).toBeUndefined()
  expect(await store.last(`default/log/${session.id}`)).toBe(0)
})

test('a session that is read while its only response is deleted goes with it', async () => {
  const complaints: unknown[] = []
  const agents = new AgentRegistry()
  agents.add(echo)
  const log: Logger = (level, message, fields) => level === 'error' && complaints.push(message, fields)
  const gateway = createGateway({ agents, store: memoryStore(), log, limits: { unloadMs: 0, sweepMs: 1e6 } })
  const session = await gateway.open(init(echo, 'hello'))
  const { id } = await respond(session)
  await session.release()
  expect(gateway.openSessions).toBe(0)
  const [removed] = await Promise.all([gateway.forget(id, principal), gateway.attach(session.id, principal)])
  expect(removed).toBe(true)
  expect(gateway.openSessions).toBe(0)
  await gateway.sweep()
  expect(complaints).toEqual([])
  await gateway.close()
})
