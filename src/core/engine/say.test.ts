import { expect, test } from 'vitest'
import { memoryStore } from '../../stores/memory.ts'
import { AgentRegistry } from './agent-registry.ts'
import { defineAgent } from '../agent-kit/define-agent.ts'
import { text } from '../agent-kit/drafts.ts'
import { createGateway } from './gateway.ts'
import type { InputEvent, Session, SessionInit } from '../ports/session.ts'
import type { Store } from '../ports/store.ts'
import { ResponseBatches } from '../reading/response-batches.ts'

const init: SessionInit = {
  transport: 'test',
  agent: 'parrot',
  principal: { tenant: 'default', id: 'someone', scopes: [] },
  config: { modalities: ['text'] },
  duplex: true,
  persist: true,
  onDetach: 'continue',
}

/** Repeats the newest message; waits after `wait` until the test lets it go. */
function parrot() {
  let letGo: () => void = () => undefined
  const gate = new Promise<void>((resolve) => (letGo = resolve))
  const agent = defineAgent('parrot', async function* ({ messages }) {
    const said = messages.at(-1)?.content ?? ''
    yield text(said)
    if (said === 'wait') await gate
  })
  return { agent, letGo }
}

function setUp({ store = memoryStore() }: { readonly store?: Store } = {}) {
  const { agent, letGo } = parrot()
  const agents = new AgentRegistry()
  agents.add(agent)
  const gateway = createGateway({ agents, store, limits: { pendingInputs: 3 } })
  return { agents, agent, gateway, letGo }
}

let count = 0
const input = (said: string): InputEvent => ({ type: 'input.text', event_id: `i${++count}`, text: said })
const create = () => ({ type: 'response.create', event_id: `c${++count}` }) as const

/** The agent's answer to these inputs. */
async function answer(session: Session, ...said: readonly string[]): Promise<string> {
  const reader = session.read()
  const batches = new ResponseBatches(reader)
  await session.say(said.map(input), create())
  let heard = ''
  for (let batch = await batches.take(); batch; batch = await batches.take()) {
    batch.visit({ text: (piece) => (heard += piece), event: () => undefined })
  }
  reader.close()
  return heard
}

test('what is said while a response runs is refused, and forgotten', async () => {
  const { gateway, letGo } = setUp()
  const session = await gateway.open(init)
  const first = answer(session, 'wait')
  await expect(session.say([input('refused')], create())).rejects.toMatchObject({ code: 'response_in_progress' })
  letGo()
  expect(await first).toBe('wait')
  expect(await answer(session, 'next')).toBe('next')
})

test('what is too much is refused as a whole', async () => {
  const { gateway } = setUp()
  const session = await gateway.open(init)
  for (let round = 0; round < 3; round++) {
    await expect(session.say(['a', 'b', 'c', 'd'].map(input), create())).rejects.toMatchObject({ code: 'too_large' })
  }
  expect(await answer(session, 'x', 'y')).toBe('xy')
})

test('what is said to an agent that is away is not answered later', async () => {
  const { gateway, agents, agent } = setUp()
  const session = await gateway.open(init)
  agents.remove('parrot')
  await expect(session.say([input('refused')], create())).rejects.toMatchObject({ code: 'agent_offline' })
  agents.add(agent)
  expect(await answer(session, 'next')).toBe('next')
})

test('what the store does not take was not said', async () => {
  const store = memoryStore()
  let fails = false
  const batch: Store['batch'] = (...args) => (fails ? Promise.reject(new Error('The disk is full')) : store.batch(...args))
  const { gateway } = setUp({ store: { ...store, batch } })
  const session = await gateway.open(init)
  fails = true
  await expect(session.say([input('refused')], create())).rejects.toThrow()
  fails = false
  expect(await answer(session, 'next')).toBe('next')
})

test('what was said before stays, and is a part of what is answered', async () => {
  const { gateway } = setUp()
  const session = await gateway.open(init)
  await session.send(input('before '))
  await expect(session.say(['a', 'b', 'c'].map(input), create())).rejects.toMatchObject({ code: 'too_large' })
  expect(await answer(session, 'after')).toBe('before after')
})

test('a tool result is no answer to a question for approval, nor the reverse', async () => {
  const agents = new AgentRegistry()
  agents.add(
    defineAgent('parrot', async function* (turn) {
      const { approved } = await turn.ask('x.approval.request', { approval_id: 'a', message: 'May I?' })
      const { result } = await turn.ask('tool.call', { call_id: 'b', name: 'pick', arguments: '{}' })
      yield text(`${approved} ${result}`)
    }),
  )
  const gateway = createGateway({ agents, store: memoryStore() })
  const session = await gateway.open(init)
  const reader = session.read({ extensions: 'all' })
  const batches = new ResponseBatches(reader)
  await session.say([input('go')], create())
  let heard = ''
  for (let batch = await batches.take(); batch; batch = await batches.take()) {
    for (const { event } of batch) {
      const result = { type: 'tool.result', event_id: `r${++count}`, result: 'yes' } as const
      const decision = { type: 'x.approval.response', event_id: `d${++count}`, approved: true } as const
      if (event.type === 'x.approval.request') {
        await expect(session.send({ ...result, call_id: 'a' })).rejects.toMatchObject({ code: 'not_found' })
        await session.send({ ...decision, approval_id: 'a' })
      }
      if (event.type === 'tool.call') {
        await expect(session.send({ ...decision, approval_id: 'b' })).rejects.toMatchObject({ code: 'not_found' })
        await session.send({ ...result, call_id: 'b' })
      }
      if (event.type === 'response.delta' && event.delta.type === 'text') heard += event.delta.text
    }
  }
  expect(heard).toBe('true yes')
})

test('a first delta does not wait for the end of a turn of the event loop, however many agents begin in it', async () => {
  const { gateway, letGo } = setUp()
  const sessions = await Promise.all(Array.from({ length: 50 }, () => gateway.open({ ...init, persist: false })))
  await new Promise((resolve) => setImmediate(resolve))
  let isOver = false
  setImmediate(() => (isOver = true))
  const late = sessions.map(async (session) => {
    for await (const batch of session.read()) {
      const heard: string[] = []
      batch.visit({ text: (piece) => heard.push(piece), event: () => undefined })
      if (heard.length > 0) return isOver
    }
    return undefined
  })
  await Promise.all(sessions.map((session) => session.say([input('wait')], create())))
  expect(await Promise.all(late)).toEqual(sessions.map(() => false))
  letGo()
})
