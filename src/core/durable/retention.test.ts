import { expect, onTestFinished, test } from 'vitest'
import type { ClientEvent } from '../../protocol/events.ts'
import { memoryStore } from '../../stores/memory.ts'
import { AgentRegistry } from '../engine/agent-registry.ts'
import { defineAgent } from '../agent-kit/define-agent.ts'
import { text } from '../agent-kit/drafts.ts'
import { createGateway } from '../engine/gateway.ts'
import type { CoreLimits } from '../basics/limits.ts'
import type { Session, SessionInit } from '../ports/session.ts'
import type { Store } from '../ports/store.ts'
import type { Logger } from '../ports/transport.ts'

const DAY = 24 * 3_600_000
const ENDS = new Set(['response.done', 'response.error', 'response.cancelled'])
const principal = { tenant: 'default', id: 'someone', scopes: [] }

const echo = defineAgent('echo', async function* (turn) {
  yield text(`${turn.messages.at(-1)?.content}`)
})

function start({ store, limits = {}, log }: { store?: Store; limits?: Partial<CoreLimits>; log?: Logger } = {}) {
  const clock = { now: Date.UTC(2026, 0, 1) }
  const now = (): number => clock.now
  const agents = new AgentRegistry()
  agents.add(echo)
  const kept = store ?? memoryStore({ now })
  const gateway = createGateway({ agents, store: kept, limits: { unloadMs: 0, ...limits }, now, ...(log && { log }) })
  onTestFinished(() => gateway.close())
  return { gateway, store: kept, clock }
}

const init = (more: Partial<SessionInit> = {}): SessionInit => ({
  transport: 'test',
  agent: 'echo',
  principal,
  config: { modalities: ['text'] },
  duplex: true,
  persist: true,
  onDetach: 'continue',
  ...more,
})

let events = 0
const id = (): string => `e${++events}`

async function say(session: Session, said: string): Promise<void> {
  const reader = session.read({ after: session.lastSeq })
  const input: ClientEvent = { type: 'input.text', event_id: id(), text: said }
  await Promise.all([session.send(input), session.send({ type: 'response.create', event_id: id() })])
  for await (const batch of reader) if (batch.has(ENDS)) break
  reader.close()
}

/** Every key of a tenant in the store, of records and of streams. */
async function keysIn(store: Store): Promise<string[]> {
  const keys: string[] = []
  for await (const { key } of store.scan()) if (!key.startsWith('/')) keys.push(key)
  return keys.toSorted()
}

test('the name that a client chose for a session was kept for ever', async () => {
  const { gateway, store, clock } = start()
  const session = await gateway.open(init({ alias: { protocol: 'test', id: 'mine' } }))
  await say(session, 'hello')
  expect(await store.get('default/alias/someone/test/mine')).toBeDefined()
  await session.release()
  clock.now += 8 * DAY
  await gateway.sweep()
  expect(await store.get('default/alias/someone/test/mine')).toBeUndefined()
  expect(await keysIn(store)).toEqual([])
})

test('a name that an earlier version stored goes when its session is gone, and not before', async () => {
  const { gateway, store } = start()
  const session = await gateway.open(init())
  await store.set('default/alias/someone/test/old', session.id)
  await store.set('default/alias/someone/test/orphan', 'sess_gone')
  await store.append('default/log/sess_gone', { first: 1, last: 1, text: '' })
  await gateway.sweep()
  expect(await store.get('default/alias/someone/test/orphan')).toBeUndefined()
  expect(await store.last('default/log/sess_gone')).toBe(0)
  expect((await store.get('default/alias/someone/test/old'))?.value).toBe(session.id)
})

test('of a session with more than 1,000 responses the others were kept for ever', async () => {
  const { gateway, store } = start()
  const session = await gateway.open(init())
  for (let turn = 0; turn < 1_200; turn++) await say(session, 'x')
  await session.release()
  expect(await gateway.remove(session.id, principal)).toBe(true)
  expect(await keysIn(store)).toEqual([])
})

test('a store that is full of what is never removed says so, once', async () => {
  const told: string[] = []
  const log: Logger = (level, message) => void (level === 'error' && told.push(message))
  const { gateway, store } = start({ limits: { storedBytes: 1_000 }, log })
  await store.set('default/money/pay_1', { description: 'x'.repeat(2_000) })
  await gateway.sweep()
  await gateway.sweep()
  expect(told).toEqual([expect.stringMatching(/movements of money: raise it/)])
  expect(await store.get('default/money/pay_1')).toBeDefined()
  await store.delete('default/money/pay_1')
  await gateway.sweep()
  expect(told).toHaveLength(1)
})

test('attaching to stored sessions had no limit', async () => {
  const { gateway } = start({ limits: { sessionsPerPrincipal: 2 } })
  const ids: string[] = []
  for (let n = 0; n < 3; n++) {
    const session = await gateway.open(init())
    await say(session, 'x')
    ids.push(session.id)
    await session.release()
  }
  expect(gateway.openSessions).toBe(0)
  const attached = await Promise.allSettled(ids.map((each) => gateway.attach(each, principal)))
  expect(attached.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'fulfilled', 'rejected'])
  expect(attached.find(({ status }) => status === 'rejected')).toMatchObject({ reason: { code: 'rate_limited' } })
  // A principal at the limit can still delete sessions, which makes room.
  for (const each of ids) expect(await gateway.remove(each, principal)).toBe(true)
  expect(gateway.openSessions).toBe(0)
})

test('a stranger who names a session does not bring it into memory', async () => {
  const { gateway } = start()
  const session = await gateway.open(init())
  await session.release()
  const stranger = { ...principal, id: 'stranger' }
  const [theirs, mine] = await Promise.all([gateway.attach(session.id, stranger), gateway.attach(session.id, principal)])
  expect(theirs).toBeUndefined()
  expect(mine?.id).toBe(session.id)
  await mine?.release()
  expect(await gateway.attach(session.id, stranger)).toBeUndefined()
  expect(gateway.openSessions).toBe(0)
})

/** Makes sessions with this many characters each, one minute apart. Returns their ids, oldest first. */
async function fill({ gateway, clock }: ReturnType<typeof start>, owner: string, count: number): Promise<string[]> {
  const ids: string[] = []
  for (let n = 0; n < count; n++) {
    clock.now += 60_000
    const session = await gateway.open(init({ principal: { ...principal, id: owner } }))
    await say(session, 'x'.repeat(10_000))
    await session.release()
    ids.push(session.id)
  }
  return ids
}

/** The sessions that still exist. */
async function left(gateway: ReturnType<typeof start>['gateway'], owner: string, ids: readonly string[]): Promise<string[]> {
  const found = await gateway.list({ ...principal, id: owner }, {})
  return ids.filter((each) => found.items.some((item) => item.id === each))
}

test('beyond the bytes that may be stored the oldest sessions go, but not those that are used', async () => {
  const parts = start({ limits: { storedBytes: 200_000 } })
  const { gateway, store } = parts
  const used = await gateway.open(init({ principal: { ...principal, id: 'reader' } }))
  const reader = used.read()
  const ids = await fill(parts, 'someone', 10)
  expect(await store.bytes()).toBeGreaterThan(200_000)
  await gateway.sweep()
  expect(await store.bytes()).toBeLessThanOrEqual(200_000)
  const rest = await left(gateway, 'someone', ids)
  expect(rest.length).toBeGreaterThan(0)
  expect(rest).toEqual(ids.slice(-rest.length))
  expect(await gateway.attach(used.id, used.owner)).toBe(used)
  reader.close()
})

test('beyond the bytes of one principal their oldest sessions go, and nobody else loses one', async () => {
  const parts = start({ limits: { storedBytesPerPrincipal: 200_000 } })
  const { gateway } = parts
  const few = await fill(parts, 'modest', 2)
  const many = await fill(parts, 'greedy', 10)
  await gateway.sweep()
  expect(await left(gateway, 'modest', few)).toEqual(few)
  const rest = await left(gateway, 'greedy', many)
  expect(rest.length).toBeGreaterThan(2)
  expect(rest.length).toBeLessThan(8)
  expect(rest).toEqual(many.slice(-rest.length))
})

test('a shorter time to keep sessions counts at once, also for those that are there', async () => {
  const store = memoryStore()
  const long = start({ store, limits: { sessionTtlMs: 30 * DAY } })
  const ids = await fill(long, 'someone', 3)
  const short = start({ store, limits: { sessionTtlMs: DAY } })
  short.clock.now = long.clock.now + 2 * DAY
  await short.gateway.sweep()
  expect(await left(long.gateway, 'someone', ids)).toEqual([])
  expect(await keysIn(store)).toEqual([])
})
