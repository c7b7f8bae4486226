import { expect, test } from 'vitest'
import { Agent } from '../../agents/agent.ts'
import type { Draft, ServerEvent } from '../../protocol/events.ts'
import { memoryStore } from '../../stores/memory.ts'
import { AgentRegistry } from './agent-registry.ts'
import { defineAgent } from '../agent-kit/define-agent.ts'
import { text } from '../agent-kit/drafts.ts'
import { exchange } from '../agent-kit/exchange.ts'
import { createGateway } from './gateway.ts'
import type { AgentPort } from '../ports/agent.ts'
import { toolRunner } from '../tools/tool-loop.ts'

const principal = { tenant: 't', id: 'p', scopes: ['*'] }
const circle: Record<string, unknown> = {}
circle['again'] = circle

/** Stands for agents that are written without types. */
const untyped = (value: unknown): never => value as never
const delta = (item: unknown): unknown => ({ type: 'response.delta', delta: item })
const call = (fields: object): unknown => delta({ type: 'tool_call', tool_call: { id: 'c', name: 'look', ...fields } })

async function ask(agent: AgentPort): Promise<{ heard: ServerEvent[]; logged: unknown; held: number }> {
  const agents = new AgentRegistry()
  agents.add(agent)
  agents.add(
    defineAgent('neighbour', async function* () {
      yield text('fine')
    }),
  )
  let logged: unknown
  const log = (_level: string, _message: string, fields?: Record<string, unknown>): void => {
    logged ??= (fields?.['error'] as Error | undefined)?.message
  }
  const gateway = createGateway({ agents, store: memoryStore(), log })
  const talk = async (name: string): Promise<ServerEvent[]> => {
    const heard: ServerEvent[] = []
    for await (const event of exchange(gateway, { agent: name, principal, messages: [{ role: 'user', content: 'go' }] })) heard.push(event)
    return heard
  }
  const heard = await talk(agent.name)
  expect((await talk('neighbour')).at(-1)?.type).toBe('response.done')
  const held = gateway.heldBytes
  await gateway.close()
  return { heard, logged, held }
}

test.each<[string, unknown, string]>([
  ['a number', 42, 'a number and not an event: yield a text'],
  ['nothing', undefined, 'undefined and not an event'],
  ['null', null, 'null and not an event'],
  ['a list of events', [text('a')], 'an array and not an event'],
  ['a number as text', text(untyped(5)), 'delta.text is a number: it must be text'],
  ['a promise as text', text(untyped(Promise.resolve('a'))), 'delta.text is a promise (await it)'],
  ['bytes as text', text(untyped(new Uint8Array(2))), 'delta.text is bytes'],
  [
    'a mistyped event',
    { type: 'respnse.delta', delta: { type: 'text', text: 'a' } },
    'type "respnse.delta", which is no event: did you mean "response.delta"?',
  ],
  [
    'an event of its own',
    { type: 'weather.found', city: 'Rome' },
    'type "weather.found", which is no event: events of your own begin with "x."',
  ],
  ['what only clients say', { type: 'input.text', text: 'a' }, 'type "input.text", which is no event'],
  ['a mistyped delta', delta({ type: 'txt', text: 'a' }), 'delta.type is "txt": did you mean "text"?'],
  [
    'a mistyped item',
    { type: 'response.done', response: { output: [{ type: 'imagee', image: 'a' }] } },
    'response.output[0].type is "imagee": did you mean "image"?',
  ],
  ['no delta', { type: 'response.delta' }, 'delta is undefined'],
  ['a number as a thought', { type: 'thinking', content: 5 }, 'content is a number'],
  ['an object as arguments', call({ arguments: { a: 1 } }), 'delta.tool_call.arguments is an object: it must be JSON text'],
  ['no arguments', call({}), 'delta.tool_call.arguments is undefined'],
  ['a number as a transcript', { type: 'transcript.delta', transcript: 5 }, 'transcript is a number'],
  ['usage without counts', { type: 'usage.delta' }, 'delta is undefined: it must be an object'],
  ['a failure without a reason', { type: 'response.error' }, 'error.code is undefined'],
  ['an end without an output', { type: 'response.done', response: {} }, 'response.output is undefined'],
  [
    'an end with a wrong item',
    { type: 'response.done', response: { output: [{ type: 'text', text: 5 }] } },
    'response.output[0].text is a',
  ],
  ['a bigint', { type: 'x.state.snapshot', snapshot: { rows: [{ count: 10n }] } }, 'snapshot.rows.0.count is a bigint'],
  ['what contains itself', { type: 'x.state.snapshot', snapshot: circle }, 'is deeper than 500 levels, or contains itself'],
  ['a picture as bytes', delta({ type: 'image', image: new Uint8Array(2) }), 'delta.image is bytes: it must be text, such as base64'],
])('an agent that yields %s fails alone, cleans up, and the log says what to do', async (_, draft, reason) => {
  let cleaned = false
  const agent = defineAgent('odd', async function* () {
    try {
      yield text('a')
      yield untyped(draft)
      yield text('z')
    } finally {
      cleaned = true
    }
  })
  const { heard, logged, held } = await ask(agent)
  expect(heard.at(-1)).toMatchObject({ type: 'response.error', error: { code: 'internal' } })
  expect(logged).toContain(reason)
  expect(cleaned).toBe(true)
  expect(held).toBeGreaterThanOrEqual(0)
})

test.each<[string, () => unknown]>([
  ['an async function', async () => 'hi'],
  ['an async function that fails', () => Promise.reject(new Error('boom'))],
  ['a generator that is not async', () => [][Symbol.iterator]()],
])('an agent that is %s is told to be a generator', async (_, run) => {
  const { heard, logged } = await ask(defineAgent('odd', untyped(run)))
  expect(heard.at(-1)).toMatchObject({ type: 'response.error', error: { code: 'internal' } })
  expect(logged).toContain('write it as async function*')
  const handler = { name: 'h', subscribes: ['input.text'], process: untyped(run) }
  expect((await ask(new Agent({ name: 'skilled', skills: [{ name: 's', handlers: [handler] }] }))).logged).toContain('async function*')
})

test.each<[string, (turn: Parameters<AgentPort['run']>[0]) => AsyncGenerator<Draft, unknown> | Promise<unknown>, string]>([
  [
    'calls a tool with an object',
    (turn) => toolRunner(turn, { tools: [] })([untyped({ id: 'c', name: 'x', arguments: {} })]),
    'arguments is an object',
  ],
  ['asks with an object', (turn) => turn.ask('tool.call', untyped({ name: 'x', arguments: {} })), 'arguments is an object'],
  ['asks what nobody knows', (turn) => turn.ask(untyped('nonsense'), untyped({})), 'but not "nonsense"'],
])('an agent that %s fails alone', async (_, work, reason) => {
  const agent = defineAgent('odd', async function* (turn) {
    const given = work(turn)
    if (given instanceof Promise) await given
    else yield* given
  })
  const { heard, logged } = await ask(agent)
  expect(heard.at(-1)).toMatchObject({ type: 'response.error', error: { code: 'internal' } })
  expect(logged).toContain(reason)
})

test('an agent may yield extension events of its own, and what only parts of it hear', async () => {
  const agent = defineAgent('odd', async function* () {
    yield untyped({ type: 'x.weather.found', city: 'Rome' })
    yield untyped({ type: 'system.stop' })
    yield text('z')
  })
  const { heard, logged } = await ask(agent)
  expect(heard.at(-1)).toMatchObject({ type: 'response.done' })
  expect(logged).toBeUndefined()
})
