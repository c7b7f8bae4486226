import { describe, expect, test } from 'vitest'
import type { Draft } from '../../protocol/events.ts'
import { memoryStore } from '../../stores/memory.ts'
import { AgentRegistry } from './agent-registry.ts'
import { Budget, type Holding } from './budget.ts'
import { defineAgent } from '../agent-kit/define-agent.ts'
import { text } from '../agent-kit/drafts.ts'
import { createGateway } from './gateway.ts'
import type { CoreLimits } from '../basics/limits.ts'
import type { SessionInit } from '../ports/session.ts'

const KIB = 1024
const principal = (id: string) => ({ tenant: 'default', id, scopes: [] })

describe('a budget', () => {
  const budget = () => new Budget({ heldBytes: 300 * KIB, heldBytesPerPrincipal: 200 * KIB })

  test('bounds a principal, and all of them together', () => {
    const all = budget()
    const [alice, bob] = [all.open(principal('alice'), 'session'), all.open(principal('bob'), 'session')]
    alice.grow('messages', 190 * KIB)
    expect(() => alice.grow('pending', 20 * KIB)).toThrow(expect.objectContaining({ code: 'overloaded' }))
    bob.grow('messages', 100 * KIB)
    expect(() => bob.grow('messages', 120 * KIB)).toThrow(expect.objectContaining({ code: 'overloaded' }))
    expect(all.bytes).toBe(290 * KIB)
    alice.close()
    bob.grow('messages', 120 * KIB)
    bob.close()
    expect(all.bytes).toBe(0)
  })

  test('lets everybody hold a little, however much others hold', () => {
    const all = budget()
    all.open(principal('alice'), 'session').set('messages', 400 * KIB)
    const bob = all.open(principal('bob'), 'session')
    bob.grow('output', 64 * KIB)
    expect(() => bob.grow('output', 65 * KIB)).toThrow(expect.objectContaining({ code: 'overloaded' }))
    expect(bob.bytes).toBe(64 * KIB)
  })

  test('lets nobody hold much in little pieces', () => {
    const all = budget()
    const pieces = Array.from({ length: 20 }, () => all.open(principal('alice'), 'session'))
    const taken = pieces.filter((piece) => grows(piece, 60 * KIB))
    expect(taken).toHaveLength(3)
    expect(all.bytes).toBe(180 * KIB)
  })

  test('lets many who hold little hold no more than a quarter of it all beyond it', () => {
    const all = new Budget({ heldBytes: 1024 * KIB, heldBytesPerPrincipal: 1024 * KIB })
    all.open(principal('alice'), 'session').set('messages', 2048 * KIB)
    const others = Array.from({ length: 20 }, (_, n) => all.open(principal(`other-${n}`), 'session'))
    expect(others.filter((other) => grows(other, 60 * KIB))).toHaveLength(4)
    others[0]?.close()
    expect(others.filter((other) => other.bytes === 0 && grows(other, 60 * KIB))).toHaveLength(1)
    // A principal that is no longer small leaves room for those that are.
    others[1]?.set('messages', 100 * KIB)
    expect(others.filter((other) => other.bytes === 0 && grows(other, 60 * KIB))).toHaveLength(1)
  })
})

function grows(holding: Holding, bytes: number): boolean {
  try {
    holding.grow('config', bytes)
    return true
  } catch {
    return false
  }
}

const small: Partial<CoreLimits> = { heldBytes: 600 * KIB, heldBytesPerPrincipal: 400 * KIB }

function gatewayOf(run: () => AsyncGenerator<Draft, void>, limits: Partial<CoreLimits> = small, store = memoryStore()) {
  const agents = new AgentRegistry()
  agents.add(defineAgent('a', run))
  return createGateway({ agents, store, limits })
}

const init = (id: string, more: Partial<SessionInit> = {}): SessionInit => ({
  transport: 'test',
  agent: 'a',
  principal: principal(id),
  config: { modalities: ['text'] },
  duplex: true,
  persist: true,
  onDetach: 'continue',
  ...more,
})

async function* quiet(): AsyncGenerator<Draft, void> {
  yield text('ok')
}

describe.each([
  ['stored', true],
  ['not stored', false],
])('sessions that are %s', (_, persist) => {
  test('hold no more configuration, history and input than their principal may', async () => {
    const gateway = gatewayOf(quiet)
    const large = 'x'.repeat(150 * KIB)
    const config = { modalities: ['text'], extensions: { large } }
    const first = await gateway.open(init('alice', { persist, config }))
    await gateway.open(init('alice', { persist, history: [{ role: 'user', content: large }] }))
    await expect(gateway.open(init('alice', { persist, config }))).rejects.toMatchObject({ code: 'overloaded' })
    await expect(first.send({ type: 'input.text', event_id: 'i', text: large })).rejects.toMatchObject({ code: 'overloaded' })
    await expect(first.send({ type: 'session.update', event_id: 'u', session: { instructions: large } })).rejects.toMatchObject({
      code: 'overloaded',
    })
    expect(first.config).toEqual(config)
    // Another principal is not affected.
    await gateway.open(init('bob', { persist, config }))
    await first.end()
    await gateway.open(init('alice', { persist, config }))
    await gateway.close()
  })

  test('end an answer that grows beyond what there is room for, and leave small ones alone', async () => {
    const gateway = gatewayOf(async function* () {
      for (let n = 0; n < 100; n++) yield text('x'.repeat(10 * KIB))
    })
    const ends: string[] = []
    const ask = async (id: string) => {
      const session = await gateway.open(init(id, { persist }))
      const reader = session.read()
      await session.send({ type: 'response.create', event_id: 'r' })
      for await (const batch of reader) {
        for (const { event } of batch) if (event.type === 'response.error') ends.push(event.error.code)
        if (batch.has(new Set(['response.done', 'response.error']))) break
      }
      return session
    }
    const session = await ask('alice')
    expect(ends).toEqual(['overloaded'])
    await session.end()
    expect(gateway.heldBytes).toBe(0)
    await gateway.close()
  })
})

test('many small members weigh more than their text', async () => {
  const gateway = gatewayOf(quiet, { ...small, heldBytesPerPrincipal: 2048 * KIB, heldBytes: 2048 * KIB })
  const extensions = { many: Array.from({ length: 50_000 }, () => ({})) }
  await expect(gateway.open(init('alice', { config: { modalities: ['text'], extensions } }))).rejects.toMatchObject({ code: 'overloaded' })
  await gateway.close()
})

test('an answer that comes whole at the end is bounded as one that is streamed', async () => {
  const output = [{ type: 'text' as const, text: 'x'.repeat(500 * KIB) }]
  const whole = async function* (): AsyncGenerator<Draft, void> {
    yield { type: 'response.done', response: { id: '', status: 'completed', output } }
  }
  for (const [limits, code] of [
    [small, 'overloaded'],
    [{ outputBytes: 100 * KIB }, 'too_large'],
  ] as const) {
    const gateway = gatewayOf(whole, limits)
    const session = await gateway.open(init('alice'))
    const reader = session.read()
    await session.send({ type: 'response.create', event_id: 'r' })
    const seen: unknown[] = []
    for await (const batch of reader) {
      for (const { event } of batch) seen.push(event)
      if (batch.has(new Set(['response.done', 'response.error']))) break
    }
    expect(seen.at(-1)).toMatchObject({ type: 'response.error', error: { code } })
    await gateway.close()
  }
})

test('a large stored conversation leaves memory as soon as nobody needs it there', async () => {
  const gateway = gatewayOf(
    async function* () {
      yield text('x'.repeat(2048 * KIB))
    },
    { heldBytes: 8192 * KIB, heldBytesPerPrincipal: 4096 * KIB },
  )
  for (let n = 0; n < 5; n++) {
    const session = await gateway.open(init('alice'))
    const reader = session.read()
    await session.send({ type: 'response.create', event_id: 'r' })
    for await (const batch of reader) if (batch.has(new Set(['response.done']))) break
    session.leave()
    await expect.poll(() => gateway.openSessions).toBe(0)
    expect(gateway.heldBytes).toBe(0)
    expect((await gateway.attach(session.id, principal('alice')))?.id).toBe(session.id)
    await gateway.attach(session.id, principal('alice')).then((again) => again?.end())
  }
  await gateway.close()
})

describe('a stored conversation that is larger than its principal may hold', () => {
  const LINKS = 20

  /** Makes one response after another, each with a large input; returns the gateway and a count of the responses it reads. */
  async function chained() {
    const memory = memoryStore()
    const roomy = gatewayOf(quiet, {}, memory)
    let parent: string | undefined
    let session = ''
    for (let n = 0; n < LINKS; n++) {
      const input = [{ role: 'user' as const, content: 'x'.repeat(100 * KIB) }]
      const opened = await roomy.open(init('alice', { input, ...(parent !== undefined && { parent }) }))
      const reader = opened.read()
      await opened.send({ type: 'response.create', event_id: `r${n}` })
      for await (const batch of reader) {
        for (const { event } of batch) if (event.type === 'response.done') parent = event.response.id
        if (batch.has(new Set(['response.done']))) break
      }
      session = opened.id
    }
    await roomy.close()
    let reads = 0
    const get = (key: string) => {
      if (/ turn |\bturn\b/.test(key)) reads++
      return memory.get(key)
    }
    const tight = gatewayOf(quiet, small, { ...memory, get })
    return { tight, parent: parent as string, session, reads: () => reads }
  }

  test('is read no further than that, whoever goes on from it', async () => {
    const { tight, parent, session, reads } = await chained()
    await expect(tight.open(init('alice', { parent }))).rejects.toMatchObject({ code: 'overloaded' })
    expect(reads()).toBeLessThan(LINKS / 2)
    await expect(tight.attach(session, principal('alice'))).rejects.toMatchObject({ code: 'overloaded' })
    expect(reads()).toBeLessThan(LINKS)
    expect(tight.heldBytes).toBe(0)
    await tight.close()
  })

  test('counts while it is read, so that several at once are no more', async () => {
    const { tight, parent } = await chained()
    const ends = await Promise.allSettled(Array.from({ length: 4 }, () => tight.open(init('alice', { parent }))))
    expect(ends.every(({ status }) => status === 'rejected')).toBe(true)
    expect(tight.heldBytes).toBe(0)
    await tight.close()
  })

  test('lets others have their turn while it is read', async () => {
    const { tight, parent } = await chained()
    let turns = 0
    let over = false
    const count = (): void => {
      if (over) return
      turns++
      setImmediate(count)
    }
    setImmediate(count)
    await tight.open(init('alice', { parent })).catch(() => undefined)
    over = true
    expect(turns).toBeGreaterThan(2)
    await tight.close()
  })
})

test.each([
  ['while it waits', true],
  ['with the next request', false],
])('what a client answers an agent %s counts', async (_, duplex) => {
  const agents = new AgentRegistry()
  const asking = defineAgent('a', async function* (turn) {
    for (let n = 0; n < 6; n++) await turn.ask('tool.call', { call_id: `c${n}`, name: 'f', arguments: '{}' })
    yield text('ok')
  })
  agents.add(asking)
  const gateway = createGateway({ agents, store: memoryStore(), limits: small })
  const session = await gateway.open(init('alice', { duplex }))
  const ends: string[] = []
  const reader = session.read()
  await session.send({ type: 'response.create', event_id: 'r' })
  let asked: string | undefined
  for await (const batch of reader) {
    for (const { event } of batch) if (event.type === 'tool.call') asked = event.call_id
    if (asked === undefined || (!duplex && !batch.has(new Set(['response.done'])))) continue
    const call_id = asked
    asked = undefined
    const answer = session.send({ type: 'tool.result', event_id: `t${call_id}`, call_id, result: 'x'.repeat(150 * KIB) })
    ends.push(
      await answer.then(
        () => 'taken',
        (error: { code: string }) => error.code,
      ),
    )
    if (ends.at(-1) !== 'taken' || ends.length === 6) break
    if (!duplex) await session.send({ type: 'response.create', event_id: `r${call_id}` })
  }
  expect(ends.at(-1)).toBe('overloaded')
  expect(ends.length).toBeLessThan(4)
  expect(gateway.heldBytes).toBeLessThan(410 * KIB)
  await session.end()
  expect(gateway.heldBytes).toBe(0)
  await gateway.close()
})
