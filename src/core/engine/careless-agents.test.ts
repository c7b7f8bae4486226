/** Mistakes of agents that types would have caught, or that nobody thought of: each must end its own response and harm nobody else. */
import { expect, onTestFinished, test } from 'vitest'
import { UampError } from '../../protocol/errors.ts'
import type { ClientEvent, Draft, ServerEvent } from '../../protocol/events.ts'
import { memoryStore } from '../../stores/memory.ts'
import { AgentRegistry } from './agent-registry.ts'
import { defineAgent } from '../agent-kit/define-agent.ts'
import { text } from '../agent-kit/drafts.ts'
import { exchange } from '../agent-kit/exchange.ts'
import { createGateway } from './gateway.ts'
import type { AgentPort } from '../ports/agent.ts'

const principal = { tenant: 't', id: 'p', scopes: ['*'] }

function gatewayOf(...agents: readonly AgentPort[]) {
  const registry = new AgentRegistry()
  for (const agent of agents) registry.add(agent)
  const gateway = createGateway({ agents: registry, store: memoryStore(), log: () => undefined })
  onTestFinished(() => gateway.close())
  return gateway
}

async function heardOf(gateway: ReturnType<typeof gatewayOf>, agent: string): Promise<ServerEvent[]> {
  const heard: ServerEvent[] = []
  for await (const event of exchange(gateway, { agent, principal, messages: [{ role: 'user', content: 'go' }] })) heard.push(event)
  return heard
}

const greeter = defineAgent('greeter', async function* () {
  yield text('Hello')
})

const delta = (given: object): object => ({ type: 'response.delta', delta: given })
const done = (response: object): object => ({ type: 'response.done', response: { id: '', status: 'completed', output: [], ...response } })

test.each<[string, unknown]>([
  ['a number for a text', delta({ type: 'text', text: 42 })],
  ['a list for a text', delta({ type: 'text', text: ['a'] })],
  ['an object for the arguments of a call', delta({ type: 'tool_call', tool_call: { id: 'c', name: 'look', arguments: { at: 1 } } })],
  ['a result without a call', delta({ type: 'tool_result' })],
  ['a number for a thought', { type: 'thinking', content: 5 }],
  ['a bigint', { type: 'x.custom', name: 'rows', value: { count: 1n } }],
  ['what refuses to be JSON', { type: 'x.custom', name: 'it', value: { toJSON: () => { throw new Error('no') } } }], // prettier-ignore
  ['a bigint in the usage', done({ usage: { input_tokens: 1n } })],
  ['an error without one', { type: 'response.error' }],
  ['a bigint in an error', { type: 'response.error', error: { code: 'mine', message: 'x', details: { n: 1n } } }],
])('an agent that yields %s fails, and others go on', async (_, draft) => {
  const careless = defineAgent('careless', async function* () {
    yield text('A')
    yield draft as Draft
    yield text('B')
  })
  const gateway = gatewayOf(careless, greeter)
  expect((await heardOf(gateway, 'careless')).at(-1)).toMatchObject({ type: 'response.error', error: { code: 'internal' } })
  expect((await heardOf(gateway, 'greeter')).at(-1)).toMatchObject({ type: 'response.done', response: { status: 'completed' } })
})

test('an agent that throws what cannot be told fails all the same', async () => {
  const careless = defineAgent('careless', async function* () {
    yield text('A')
    throw new UampError('provider_error', 'No', { details: { count: 1n } })
  })
  expect((await heardOf(gatewayOf(careless), 'careless')).at(-1)).toMatchObject({ type: 'response.error', error: { code: 'internal' } })
})

test.each<[string, object, object]>([
  ['is done', done({}), { type: 'response.done' }],
  ['has failed', { type: 'response.error', error: { code: 'mine', message: 'No' } }, { type: 'response.error', error: { code: 'mine' } }],
])('an agent that says that it %s and never cleans up is not waited for', async (_, draft, end) => {
  const careless = defineAgent('careless', async function* () {
    try {
      yield draft as Draft
    } finally {
      await new Promise(() => undefined)
    }
  })
  expect((await heardOf(gatewayOf(careless), 'careless')).at(-1)).toMatchObject(end)
})

test('a cancel before an agent looks at the answer to its question harms nobody', async () => {
  const unhandled: unknown[] = []
  const note = (reason: unknown): void => void unhandled.push(reason)
  process.on('unhandledRejection', note)
  onTestFinished(() => void process.off('unhandledRejection', note))
  const careless = defineAgent('careless', async function* (turn) {
    const answer = turn.ask('tool.call', { name: 'look', arguments: '{}' })
    yield text('Meanwhile')
    await new Promise((resolve) => setTimeout(resolve, 20))
    yield text('and then')
    yield text((await answer).result)
  })
  const config = { modalities: ['text' as const] }
  const init = { transport: 'test', agent: 'careless', principal, config, duplex: true, persist: false, onDetach: 'continue' as const }
  const session = await gatewayOf(careless).open(init)
  const reader = session.read()
  await session.send({ type: 'response.create', event_id: 'e1' } as ClientEvent)
  let end: string | undefined
  for await (const batch of reader) {
    for (const { type } of batch)
      if (type === 'response.delta') await session.send({ type: 'response.cancel', event_id: 'e2' } as ClientEvent)
    if (!batch.has(new Set(['response.cancelled', 'response.done', 'response.error']))) continue
    for (const { type } of batch) end = type
    break
  }
  await new Promise((resolve) => setTimeout(resolve, 30))
  expect(end).toBe('response.cancelled')
  expect(unhandled).toEqual([])
})
