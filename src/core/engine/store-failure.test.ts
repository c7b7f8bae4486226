import { expect, test } from 'vitest'
import { UampError } from '../../protocol/errors.ts'
import type { ServerEvent } from '../../protocol/events.ts'
import { memoryStore } from '../../stores/memory.ts'
import { AgentRegistry } from './agent-registry.ts'
import { defineAgent } from '../agent-kit/define-agent.ts'
import { text } from '../agent-kit/drafts.ts'
import { createGateway } from './gateway.ts'
import type { Store } from '../ports/store.ts'

const principal = { tenant: 'default', id: 'someone', scopes: [] }

/** A store whose disk can run full. */
function onDisk(): { store: Store; full: (now: boolean) => void } {
  const inner = memoryStore()
  let isFull = false
  const write = <T>(run: () => Promise<T>): Promise<T> => (isFull ? Promise.reject(new UampError('overloaded', 'The disk is full')) : run())
  const store: Store = {
    ...inner,
    append: (stream, group, options) => write(() => inner.append(stream, group, options)),
    batch: (operations, options) => write(() => inner.batch(operations, options)),
  }
  return { store, full: (now) => (isFull = now) }
}

test('a full disk refuses what it cannot keep, ends what runs, and all is well when there is room again', async () => {
  const { store, full } = onDisk()
  const agents = new AgentRegistry()
  let goOn: () => void = () => undefined
  agents.add(
    defineAgent('slow', async function* (turn) {
      yield text(`begun after ${turn.messages.filter(({ role }) => role === 'user').length}`)
      await new Promise<void>((resolve) => (goOn = resolve))
      yield text(' and ended')
    }),
  )
  const gateway = createGateway({ agents, store, limits: { turnTimeoutMs: 60_000 } })
  const config = { modalities: ['text'] }
  const session = await gateway.open({
    transport: 'test',
    agent: 'slow',
    principal,
    config,
    duplex: true,
    persist: true,
    onDetach: 'continue',
  })
  const heard: ServerEvent[] = []
  void (async () => {
    for await (const batch of session.read({ after: 0 })) for (const { event } of batch) heard.push(event)
  })()
  const ends = (): number => heard.filter(({ type }) => type === 'response.done').length

  await session.send({ type: 'response.create', event_id: 'e1' })
  await expect.poll(() => heard.some(({ type }) => type === 'response.delta')).toBe(true)
  full(true)
  goOn()
  await expect.poll(ends).toBe(1)
  await expect(session.send({ type: 'input.text', event_id: 'e2', text: 'lost?' })).rejects.toMatchObject({ code: 'overloaded' })
  await expect(session.send({ type: 'response.create', event_id: 'e3' })).rejects.toMatchObject({ code: 'overloaded' })
  expect(gateway.openResponses).toBe(0)

  full(false)
  await session.send({ type: 'input.text', event_id: 'e4', text: 'kept' })
  await session.send({ type: 'response.create', event_id: 'e3' })
  await expect.poll(() => heard.filter(({ type }) => type === 'response.delta').length).toBe(3)
  goOn()
  await expect.poll(ends).toBe(2)
  // The input that was refused is not part of the response.
  expect(JSON.stringify(heard.findLast(({ type }) => type === 'response.done'))).toContain('begun after 1 and ended')
  await gateway.close()
})

test('a response that nobody had been told of was told as done, and was not kept', async () => {
  const { store, full } = onDisk()
  const agents = new AgentRegistry()
  agents.add(
    defineAgent('echo', async function* () {
      yield text('lost')
    }),
  )
  const gateway = createGateway({ agents, store })
  const opened = { transport: 'test', agent: 'echo', principal, config: { modalities: ['text'] }, duplex: false, persist: true }
  const say = async () => {
    const session = await gateway.open({ ...opened, onDetach: 'cancel', input: [{ role: 'user', content: 'hi' }], silent: true })
    const reader = session.read()
    await session.send({ type: 'response.create', event_id: 'e1' })
    let last: ServerEvent | undefined
    for await (const batch of reader) {
      for (const { event } of batch) last = event
      if (batch.has(new Set(['response.done', 'response.error']))) break
    }
    const turn = 'response_id' in (last ?? {}) ? (last as { response_id: string }).response_id : ''
    await session.release().catch(() => undefined)
    return { type: last?.type, last, turn }
  }

  full(true)
  const refused = await say()
  expect(refused.last).toMatchObject({ type: 'response.error', error: { code: 'overloaded', message: 'The disk is full' } })
  full(false)
  const kept = await say()
  expect(kept.type).toBe('response.done')
  expect(await gateway.response(kept.turn, principal)).toMatchObject({ status: 'completed' })
  // Nothing is left of the first session, not even its log.
  await gateway.sweep()
  await gateway.close()
  const logs: string[] = []
  for await (const { key } of store.scan()) if (key.includes('/log/')) logs.push(key)
  expect(logs).toHaveLength(1)
})
