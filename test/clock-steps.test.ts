import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as after } from 'node:timers/promises'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { WebSocket } from 'ws'
import { demo } from '../src/agents/demo/index.ts'
import { AgentRegistry } from '../src/core/engine/agent-registry.ts'
import { defineAgent } from '../src/core/agent-kit/define-agent.ts'
import { text } from '../src/core/agent-kit/drafts.ts'
import { createGateway } from '../src/core/engine/gateway.ts'
import type { CoreLimits } from '../src/core/basics/limits.ts'
import type { AgentPort } from '../src/core/ports/agent.ts'
import type { Session, SessionInit } from '../src/core/ports/session.ts'
import type { Store } from '../src/core/ports/store.ts'
import type { ServerEvent } from '../src/protocol/events.ts'
import { memoryStore } from '../src/stores/memory.ts'
import { sqliteStore } from '../src/stores/sqlite.ts'
import { OmniaClient } from './omnia/omnia-client.ts'
import { startServer } from './support/server.ts'
import { say, textOf } from './support/talk.ts'
import { overSse, overWebSocket } from './support/wire.ts'

const HOUR = 3_600_000
const STEPS = [
  ['an hour back', -HOUR],
  ['an hour ahead', HOUR],
  ['30 days back', -30 * 24 * HOUR],
  ['30 days ahead', 30 * 24 * HOUR],
] as const

/** The wall clock of this process, which the function that it returns moves. Everything made after it reads it. */
function steppedClock(): (ms: number) => void {
  const real = Date.now
  let offset = 0
  const spy = vi.spyOn(Date, 'now').mockImplementation(() => real() + offset)
  onTestFinished(() => spy.mockRestore())
  return (ms) => {
    offset += ms
  }
}

const LIMITS = { requestsPerSecond: 1_000, requestBurst: 50, messagesPerSecond: 1_000, messageBurst: 20, sweepMs: 10 }

describe.each(STEPS)('when the wall clock steps %s', (_, ms) => {
  test('requests and messages are let in as before', async () => {
    const step = steppedClock()
    const { url } = await startServer(demo(), { limits: LIMITS })
    const ping = async () => (await fetch(`${url}/events`, { method: 'POST', body: '{"type":"ping"}' })).status
    expect(await ping()).toBe(200)
    const socket = new WebSocket(`${url.replace('http', 'ws')}/uamp`)
    let heard = 0
    socket.on('message', () => heard++)
    await new Promise((resolve) => socket.once('open', resolve))
    step(ms)
    expect([await ping(), await ping(), await ping()]).toEqual([200, 200, 200])
    // More than a burst: the socket rests for some milliseconds, and not until the wall clock has caught up.
    for (let at = 0; at < 100; at++) socket.send('{"type":"ping"}')
    await expect.poll(() => heard).toBeGreaterThanOrEqual(100)
    socket.terminate()
  })

  test('an Omnia client goes on talking, and its upload is taken and kept', async () => {
    const step = steppedClock()
    const { url } = await startServer(demo(), { limits: LIMITS, omnia: { limits: { messagesPerSecond: 1_000, messageBurst: 3 } } })
    const client = await OmniaClient.open(url)
    const upload_request = { filename: 'a.png', mime_type: 'image/png', size_bytes: 3 }
    const ask = { type: 'upload_request', session_id: client.sessionId, upload_request }
    const { upload_url, storage_ref } = (await client.ask(ask, 'upload_ready'))['upload_ready'] as Record<string, string>
    step(ms)
    for (let at = 0; at < 6; at++) {
      await after(5)
      await client.ask(ask, 'upload_ready')
    }
    expect((await fetch(upload_url as string, { method: 'PUT', body: new Uint8Array(3) })).status).toBe(204)
    const place = storage_ref?.replace('omnia://sessions/', '').replace('/media/', '/')
    expect((await fetch(`${url}/media/download/${place}`)).status).toBe(200)
    client.socket.terminate()
  })

  test.each(['memory', 'a file'])('a session stored in %s is found again', async (kind) => {
    const step = steppedClock()
    const data = kind === 'memory' ? 'memory' : newFolder()
    const { url } = await startServer(demo(), { data, limits: { ...LIMITS, unloadMs: 1 } })
    const wire = await overWebSocket(url)
    const id = await wire.open()
    const last = (await say(wire, 'before')).at(-1)?.['seq'] as number
    wire.cut()
    step(ms)
    // Several sweeps: the session leaves memory, and what is old leaves the store.
    await after(100)
    const again = await overSse(url)
    await again.follow(id, last)
    expect(textOf(await say(again, 'after', { session: id }))).toBe('You said: after')
    again.close()
  })

  test('a session that is not stored is found again within its window', async () => {
    const step = steppedClock()
    const gateway = gatewayOf(demo(), { limits: { sweepMs: 5, resumeWindowMs: 60_000 } })
    const session = await gateway.open(init('demo'))
    step(ms)
    await after(50)
    expect(await gateway.attach(session.id, principal)).toBe(session)
  })

  test('a session that is not stored goes when its window is over', async () => {
    const step = steppedClock()
    const gateway = gatewayOf(demo(), { limits: { sweepMs: 5, resumeWindowMs: 20 } })
    const session = await gateway.open(init('demo'))
    // Else it stays ten seconds for whoever opened it.
    session.leave()
    step(ms)
    await expect.poll(() => gateway.openSessions).toBe(0)
    expect(await gateway.attach(session.id, principal)).toBeUndefined()
  })

  test('a turn that waits for an answer keeps its generator', async () => {
    const step = steppedClock()
    let begun = 0
    const asker = defineAgent('asker', async function* (turn) {
      begun++
      const { result } = await turn.ask('tool.call', { name: 'one', arguments: '{}' })
      yield text(`It is ${typeof result === 'string' ? result : ''}`)
    })
    const gateway = gatewayOf(asker, { limits: { sweepMs: 5 } })
    const session = await gateway.open({ ...init('asker'), duplex: false, persist: true, input: [{ role: 'user', content: 'what?' }] })
    const call = (await respond(session)).find((event) => event.type === 'tool.call') as { call_id: string }
    step(ms)
    await after(50)
    await session.send({ type: 'tool.result', event_id: 'r1', call_id: call.call_id, result: 'red' })
    expect((await respond(session)).flatMap((event) => (event.type === 'response.delta' ? [event.delta] : []))).toEqual([
      { type: 'text', text: 'It is red' },
    ])
    expect(begun).toBe(1)
  })

  test('a drain takes its grace time', async () => {
    const step = steppedClock()
    const endless = defineAgent('endless', async function* ({ signal }) {
      yield text('a')
      await new Promise((resolve) => signal.addEventListener('abort', resolve))
    })
    const gateway = gatewayOf(endless)
    const session = await gateway.open(init('endless'))
    await session.send({ type: 'response.create', event_id: 'e1' })
    let drained = false
    const draining = gateway.drain(200).then(() => (drained = true))
    await after(50)
    step(ms)
    await after(50)
    expect(drained).toBe(false)
    await draining
    expect(gateway.openResponses).toBe(0)
  })
})

test('a store goes on tidying up after the clock was set back', async () => {
  const step = steppedClock()
  let ticks = 0
  const store = sqliteStore({ path: join(newFolder(), 'uamp.db'), monotonic: () => ticks })
  onTestFinished(() => store.close())
  step(-30 * 24 * HOUR)
  await store.set('short', 1, { ttlMs: 1, index: [['all', 'a']] })
  await after(5)
  for (let writes = 0; writes < 5; writes++) {
    ticks += 60_000
    await store.set('kept', writes)
  }
  expect(await store.count('all')).toBe(0)
})

const principal = { tenant: 'default', id: 'someone', scopes: [] }

const init = (agent: string): SessionInit => ({
  transport: 'test',
  agent,
  principal,
  config: { modalities: ['text'] },
  duplex: true,
  persist: false,
  onDetach: 'continue',
})

/** Starts a response, and returns what is said up to its end. */
async function respond(session: Session): Promise<ServerEvent[]> {
  const reader = session.read({ after: session.lastSeq, extensions: 'all' })
  await session.send({ type: 'response.create', event_id: crypto.randomUUID() })
  const heard: ServerEvent[] = []
  for await (const batch of reader) {
    for (const { event } of batch) heard.push(event)
    if (batch.has(new Set(['response.done']))) break
  }
  return heard
}

function gatewayOf(agent: AgentPort, { store = memoryStore(), limits = {} }: { store?: Store; limits?: Partial<CoreLimits> } = {}) {
  const agents = new AgentRegistry()
  agents.add(agent)
  const gateway = createGateway({ agents, store, limits })
  onTestFinished(() => gateway.close())
  return gateway
}

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'uamp-clock-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}
