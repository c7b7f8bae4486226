import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { EventOf } from '../../protocol/events.ts'
import { aesKeys } from '../../stores/file-keys.ts'
import { memoryStore } from '../../stores/memory.ts'
import { sqliteStore } from '../../stores/sqlite.ts'
import { defineAgent } from '../agent-kit/define-agent.ts'
import { wrap } from '../agent-kit/wrap.ts'
import { AgentRegistry } from '../engine/agent-registry.ts'
import { createGateway } from '../engine/gateway.ts'
import type { GatewayOptions } from '../engine/gateway-options.ts'
import type { Principal } from '../ports/access.ts'
import type { Turn } from '../ports/agent.ts'
import type { Session, SessionInit } from '../ports/session.ts'
import type { Store } from '../ports/store.ts'
import { prune } from './prune.ts'
import { Records } from './records.ts'

const ada: Principal = { tenant: 'default', id: 'ada', scopes: [] }
const bob: Principal = { tenant: 'default', id: 'bob', scopes: [] }
const other: Principal = { tenant: 'other', id: 'ada', scopes: [] }
const KEY = new Uint8Array(32).fill(7)

type Work = (store: Turn['store'], turn: Turn) => Promise<unknown>

/** An agent that does what it is told, and a gateway that serves it. */
function setUp(store: Store, options: Partial<GatewayOptions> = {}) {
  let work: Work = async () => undefined
  let result: unknown
  let failed: Error | undefined
  const agents = new AgentRegistry()
  for (const name of ['clerk', 'guard']) {
    const agent = defineAgent(name, async function* (turn) {
      try {
        result = await work(turn.store, turn)
      } catch (error) {
        failed = error as Error
      }
    })
    agents.add(wrap(agent, (_turn, next) => next({ silent: false })))
  }
  const gateway = createGateway({ agents, store, keys: aesKeys(KEY), ...options })
  onTestFinished(() => gateway.close())
  const open = (principal = ada, more: Partial<SessionInit> = {}): Promise<Session> =>
    gateway.open({
      transport: 'test',
      agent: 'clerk',
      principal,
      config: { modalities: ['text'] },
      duplex: true,
      persist: true,
      onDetach: 'finish',
      ...more,
    })
  const within = async <T>(session: Session, next: (store: Turn['store'], turn: Turn) => Promise<T>): Promise<T> => {
    work = next
    result = undefined
    failed = undefined
    const reader = session.read()
    await session.send({ type: 'response.create', event_id: crypto.randomUUID() } as EventOf<'response.create'>)
    for await (const batch of reader) if ([...batch].some(({ type }) => type === 'response.done')) break
    if (failed as Error | undefined) throw failed as unknown as Error
    return result as T
  }
  return { gateway, open, within }
}

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'uamp-state-'))
  onTestFinished(() => rmSync(path, { recursive: true, force: true }))
  return path
}

const stores: [string, () => Store][] = [
  ['memory', () => memoryStore()],
  ['sqlite', () => sqliteStore({ path: join(folder(), 'uamp.db') })],
]

async function recordsOf(store: Store, kind: string): Promise<string[]> {
  const found: string[] = []
  for await (const { key } of store.scan()) if (key.split('/')[1] === kind) found.push(key)
  return found
}

describe.each(stores)('what an agent remembers, in %s', (_name, openStore) => {
  test('each session, each principal, each agent and each tenant has its own', async () => {
    const { open, within } = setUp(openStore())
    const first = await open()
    await within(first, async (store) => {
      for (const shelf of [store.session, store.principal, store.agent]) await shelf.set('seen', { at: [1, null, 'ü'] })
    })
    const seen = (session: Session) =>
      within(session, async (store) => [
        (await store.session.get('seen')) !== undefined,
        (await store.principal.get('seen')) !== undefined,
        (await store.agent.get('seen')) !== undefined,
      ])
    expect(await seen(first)).toEqual([true, true, true])
    expect(await seen(await open())).toEqual([false, true, true])
    expect(await seen(await open(bob))).toEqual([false, false, true])
    expect(await seen(await open(ada, { agent: 'guard' }))).toEqual([false, false, false])
    expect(await seen(await open(other))).toEqual([false, false, false])
    expect(await within(first, (store) => store.session.get('seen'))).toEqual({ at: [1, null, 'ü'] })
  })

  test('keys are listed and deleted, and any text is one', async () => {
    const { open, within } = setUp(openStore())
    const names = ['a/b', 'ünï %', '../x', '__proto__', 'z'.repeat(256)]
    const listed = await within(await open(), async ({ principal }) => {
      for (const name of names) await principal.set(name, name)
      await principal.delete('a/b')
      await principal.delete('never there')
      expect(await principal.get('__proto__')).toBe('__proto__')
      return principal.keys()
    })
    expect(listed).toEqual(names.slice(1).sort())
  })

  test('changes at the same time are all there', async () => {
    const { open, within } = setUp(openStore())
    const [one, two] = [await open(), await open()]
    const add = (store: Turn['store']) =>
      Promise.all(Array.from({ length: 40 }, () => store.principal.update<number>('count', (count = 0) => count + 1)))
    const state = await within(one, async (store) => store)
    await Promise.all([add(state), within(two, add)])
    expect(await within(two, ({ principal }) => principal.get('count'))).toBe(80)
    expect(await within(two, ({ principal }) => principal.update('count', () => undefined))).toBeUndefined()
    expect(await within(two, ({ principal }) => principal.keys())).toEqual([])
  })

  test('two gateways on one store do not overwrite each other', async () => {
    const store = openStore()
    const [here, there] = [setUp(store), setUp(store)]
    const add = (turn: Turn['store']) => turn.agent.update<number[]>('list', (list = []) => [...list, list.length])
    const [a, b] = [await here.open(), await there.open(bob)]
    for (let round = 0; round < 5; round++) await Promise.all([here.within(a, add), there.within(b, add)])
    expect(await here.within(a, ({ agent }) => agent.get('list'))).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
  })

  test('it has bounds, and says which', async () => {
    const { open, within } = setUp(openStore(), { limits: { stateKeys: 3, stateBytes: 1000 } })
    for (const persist of [true, false]) {
      await within(await open(ada, { persist }), async ({ session }) => {
        await expect(session.set('k', 'x'.repeat(999))).rejects.toMatchObject({ code: 'too_large', details: { limit: 1000 } })
        await expect(session.set('k', '€'.repeat(400))).rejects.toMatchObject({ code: 'too_large' })
        await expect(session.set('k'.repeat(257), 1)).rejects.toMatchObject({ code: 'invalid_request' })
        await expect(session.set('', 1)).rejects.toMatchObject({ code: 'invalid_request' })
        await expect(session.set('k', undefined)).rejects.toThrow(/delete the key/)
        await expect(session.set('k', () => 1)).rejects.toThrow(/is a function, which is not JSON/)
        await expect(session.set('k', 1n)).rejects.toThrow(/BigInt/)
        for (const key of ['a', 'b', 'c']) await session.set(key, 'x'.repeat(998))
        await expect(session.set('d', 1)).rejects.toMatchObject({ code: 'too_large', details: { limit: 3 } })
        await expect(session.update('d', () => 1)).rejects.toMatchObject({ code: 'too_large' })
        await session.set('a', 'still')
        await session.delete('b')
        await session.set('d', 1)
        expect(await session.keys()).toEqual(['a', 'c', 'd'])
      })
    }
  })

  test('a session takes what it remembered with it, and leaves the rest', async () => {
    const store = openStore()
    const { gateway, open, within } = setUp(store)
    const session = await open()
    await within(session, async (state) => {
      for (let i = 0; i < 5; i++) await state.session.set(`k${i}`, i)
      await state.principal.set('k', 1)
    })
    expect(await recordsOf(store, 'session-state')).toHaveLength(5)
    expect(await gateway.remove(session.id, ada)).toBe(true)
    expect(await recordsOf(store, 'session-state')).toEqual([])
    expect(await recordsOf(store, 'principal-state')).toHaveLength(1)
  })

  test('an agent that goes on after its session was removed leaves nothing behind', async () => {
    const store = openStore()
    const { gateway, open, within } = setUp(store)
    const session = await open()
    const state = await within(session, async (all) => all)
    await gateway.remove(session.id, ada)
    await expect(state.session.set('late', 1)).rejects.toMatchObject({ code: 'not_found' })
    await expect(state.session.update('late', () => 1)).rejects.toMatchObject({ code: 'not_found' })
    expect(await recordsOf(store, 'session-state')).toEqual([])
  })

  test('the last response that is forgotten, and age, remove it too', async () => {
    const store = openStore()
    let time = Date.now()
    const { gateway, open, within } = setUp(store, { limits: { sessionTtlMs: 1000 }, now: () => time, monotonic: () => time })
    const session = await open()
    await within(session, async (state) => state.session.set('k', 1))
    await gateway.forget(session.lastResponse ?? '', ada)
    expect(await recordsOf(store, 'session-state')).toEqual([])
    const old = await open()
    await within(old, async (state) => state.session.set('k', 1))
    expect(await recordsOf(store, 'session-state')).toHaveLength(1)
    time += 200_000
    await gateway.sweep()
    await gateway.sweep()
    expect(await recordsOf(store, 'session-state')).toEqual([])
  })

  test('a prune removes it with its session, and that of a principal with the principal', async () => {
    const store = openStore()
    const { gateway, open, within } = setUp(store)
    for (const who of [ada, bob]) {
      const session = await open(who)
      await within(session, async (state) => {
        for (const shelf of [state.session, state.principal, state.agent]) await shelf.set(`of ${who.id}`, 1)
      })
      await session.release()
    }
    const remove = (tenant: string, id: string) => gateway.removeUnused(tenant, id)
    const options = { records: new Records(store), describe: () => undefined, remove, onDelete: async () => undefined }
    // A principal may be called as the agent is.
    await prune(options, { principal: 'clerk', dryRun: false })
    await prune(options, { principal: 'ada', dryRun: false })
    expect(await recordsOf(store, 'session-state')).toHaveLength(1)
    expect(await recordsOf(store, 'principal-state')).toEqual(['default/principal-state/bob/clerk/of%20bob'])
    expect(await recordsOf(store, 'agent-state')).toHaveLength(2)
    await prune(options, { before: Date.now() + 1000, dryRun: false })
    expect(await recordsOf(store, 'session-state')).toEqual([])
    expect(await recordsOf(store, 'principal-state')).toEqual([])
    expect(await recordsOf(store, 'agent-state')).toHaveLength(2)
  })

  test('a session that is not stored remembers until it ends, and stores nothing', async () => {
    const store = openStore()
    const { gateway, open, within } = setUp(store)
    const session = await open(ada, { persist: false })
    await within(session, ({ session: shelf }) => shelf.set('k', 'x'.repeat(5000)))
    const held = gateway.heldBytes
    expect(held).toBeGreaterThan(5000)
    expect(await within(session, ({ session: shelf }) => shelf.update<string>('k', (text = '') => text.slice(0, 2)))).toBe('xx')
    expect(gateway.heldBytes).toBeLessThan(held)
    expect(await recordsOf(store, 'session-state')).toEqual([])
    await session.end()
    expect(gateway.heldBytes).toBe(0)
  })
})

test('everything is there after a restart, and nothing of it can be read in the file', async () => {
  const path = join(folder(), 'uamp.db')
  let store = sqliteStore({ path })
  const before = setUp(store)
  const session = await before.open()
  await before.within(session, async (state) => {
    for (const shelf of [state.session, state.principal, state.agent]) await shelf.set('mood', { note: 'very-private-words' })
  })
  await before.gateway.close()
  await store.close()
  expect(readFileSync(path, 'latin1')).not.toContain('very-private-words')
  store = sqliteStore({ path })
  onTestFinished(() => store.close())
  const again = setUp(store)
  await again.gateway.start()
  const found = await again.gateway.attach(session.id, ada)
  const read = (state: Turn['store']) => Promise.all([state.session, state.principal, state.agent].map((shelf) => shelf.get('mood')))
  expect(await again.within(found as Session, read)).toEqual(Array(3).fill({ note: 'very-private-words' }))
})

test('without a key a secret is refused, and the rest is stored', async () => {
  const { open, within } = setUp(memoryStore(), { keys: undefined as never })
  await within(await open(), async ({ principal }) => {
    await principal.set('mood', { note: 'fine' })
    expect(await principal.get('mood')).toEqual({ note: 'fine' })
    await expect(principal.set('login', { password: 'hunter2' })).rejects.toMatchObject({ code: 'not_supported' })
  })
})
