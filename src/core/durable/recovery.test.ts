import { expect, test } from 'vitest'
import { memoryStore } from '../../stores/memory.ts'
import { AgentRegistry } from '../engine/agent-registry.ts'
import { defineAgent } from '../agent-kit/define-agent.ts'
import { text } from '../agent-kit/drafts.ts'
import { createGateway } from '../engine/gateway.ts'
import type { Session } from '../ports/session.ts'
import type { Store } from '../ports/store.ts'

const principal = { tenant: 't', id: 'p', scopes: ['*'] }

/** A gateway on a store that a killed process may have left. */
function gatewayOn(store: Store, word = 'a word') {
  const agents = new AgentRegistry()
  agents.add(
    defineAgent('endless', async function* (turn) {
      yield text('a word')
      await new Promise((resolve) => turn.signal.addEventListener('abort', resolve))
    }),
  )
  agents.add(
    defineAgent('words', async function* (turn) {
      yield text(word)
      await next(turn.sessionId)
      yield text(word)
      await next(turn.sessionId)
    }),
  )
  return createGateway({ agents, store })
}

/** Resolves what the agent `words` waits for, by session. */
const waits = new Map<string, () => void>()
const next = (session: string): Promise<void> => new Promise((resolve) => waits.set(session, resolve))

async function goOn({ id }: Session): Promise<void> {
  await expect.poll(() => waits.has(id)).toBe(true)
  const resolve = waits.get(id)
  waits.delete(id)
  resolve?.()
}

function open(gateway: ReturnType<typeof gatewayOn>, agent: string): Promise<Session> {
  const config = { modalities: ['text'] }
  return gateway.open({ transport: 'test', agent, principal, config, duplex: true, persist: true, onDetach: 'continue' })
}

async function eventsUntil(type: string, session: Session) {
  const events = []
  for await (const batch of session.read({ after: 0 })) {
    for (const { event } of batch) events.push(event)
    if (events.at(-1)?.type === type) break
  }
  return events
}

test('an input that no response has used is kept when the configuration changes before the process dies', async () => {
  const store = memoryStore()
  const session = await open(gatewayOn(store), 'words')
  await session.send({ type: 'input.text', event_id: '1', text: 'Remember this' })
  await session.send({ type: 'session.update', event_id: '2', session: { instructions: 'Be brief' } })
  const restarted = await gatewayOn(store).attach(session.id, principal)
  await restarted?.send({ type: 'response.create', event_id: '3' })
  const turn = await gatewayOn(store).response(restarted?.lastResponse ?? '', principal)
  expect(turn?.input).toMatchObject([{ role: 'user', content: 'Remember this' }])
  expect(restarted?.config.instructions).toBe('Be brief')
})

test('a task that cannot be found again keeps nobody from starting', async () => {
  const store = memoryStore()
  const session = await open(gatewayOn(store), 'endless')
  const keeper = { name: 'test', opened: () => () => [], closed: () => [] }
  await session.say([], { type: 'response.create', event_id: '1' }, { keeper })
  const restarted = gatewayOn(store)
  restarted.recoverWith('test', () => Promise.reject(new Error('The record is damaged')))
  await restarted.start()
  expect(await restarted.response(session.lastResponse ?? '', principal)).toMatchObject({
    status: 'failed',
    error: { code: 'interrupted' },
  })
})

test('an answer that cannot be put together after a kill keeps nobody from starting', async () => {
  const store = memoryStore()
  const killed = gatewayOn(store)
  const session = await open(killed, 'endless')
  await session.send({ type: 'input.text', event_id: '1', text: 'go' })
  await session.send({ type: 'response.create', event_id: '2' })
  await expect.poll(() => store.last(`t/log/${session.id}`)).toBeGreaterThan(2)
  // V8 throws this when the text of a record exceeds the longest string.
  const tooLong: Store = {
    ...store,
    batch: (operations, options) =>
      JSON.stringify(operations).includes('"text":"a word"')
        ? Promise.reject(new RangeError('Invalid string length'))
        : store.batch(operations, options),
  }
  const restarted = gatewayOn(tooLong)
  await restarted.start()
  const id = session.lastResponse as string
  expect(await restarted.response(id, principal)).toMatchObject({ status: 'failed', error: { code: 'interrupted' }, output: [] })
  await restarted.close()
})

test('a kill between two commits does not end a response twice', async () => {
  const inner = memoryStore()
  let slow: Promise<void> | undefined
  let appends = 0
  let isDead = false
  const store: Store = {
    ...inner,
    append: async (stream, group, options) => {
      if (stream.includes('/log/')) appends++
      await slow
      if (isDead) return new Promise(() => undefined)
      await inner.append(stream, group, options)
    },
    // The process dies before the record of the response is written.
    batch: async (operations, options) => {
      if (JSON.stringify(operations).includes('"status":"completed"')) isDead = true
      return isDead ? new Promise(() => undefined) : inner.batch(operations, options)
    },
  }
  const killed = gatewayOn(store)
  const session = await open(killed, 'words')
  let release = (): void => undefined
  slow = new Promise((resolve) => (release = resolve))
  await session.send({ type: 'response.create', event_id: '1' })
  await expect.poll(() => appends).toBe(1)
  // When the response ends, a second commit already waits for the first.
  await goOn(session)
  await new Promise((resolve) => setTimeout(resolve, 100))
  await goOn(session)
  await new Promise((resolve) => setTimeout(resolve, 10))
  release()
  await expect.poll(() => isDead).toBe(true)

  const restarted = gatewayOn(inner)
  await restarted.start()
  const found = (await restarted.attach(session.id, principal)) as Session
  const ends = (await eventsUntil('response.error', found)).filter(({ type }) => type === 'response.done' || type === 'response.error')
  expect(ends).toMatchObject([{ type: 'response.error', error: { code: 'interrupted' } }])
  await restarted.close()
})

test('the end of a large answer is stored once, with its response, and read whole from the log', async () => {
  const store = memoryStore()
  const word = 'word '.repeat(20_000)
  const first = gatewayOn(store, word)
  const session = await open(first, 'words')
  await session.send({ type: 'response.create', event_id: '1' })
  await goOn(session)
  await goOn(session)
  const live = await eventsUntil('response.done', session)
  await first.close()

  let stored = 0
  for await (const { text: group } of store.read(`t/log/${session.id}`)) stored += group.length
  expect(stored).toBeLessThan(2 * word.length + 10_000)
  const second = gatewayOn(store, word)
  await second.start()
  expect(await eventsUntil('response.done', (await second.attach(session.id, principal)) as Session)).toEqual(live)
  await second.close()
})
