import { describe, expect, test } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { text } from '../../src/core/agent-kit/drafts.ts'
import type { AgentPort } from '../../src/core/ports/agent.ts'
import { toolRunner } from '../../src/core/tools/tool-loop.ts'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'
import { BOTH, connect, DIALECTS, says, typesOf, withoutIds, type RealtimeWire } from './realtime-wire.ts'

const TOOLS = ['weather', 'time'].map((name) => ({ type: 'function', name, parameters: { type: 'object' } }))
const output = (call_id: string, said: string) => ({
  type: 'conversation.item.create',
  item: { type: 'function_call_output', call_id, output: said },
})
const textOf = (wire: RealtimeWire): string => wire.heard.at(-1)?.['response'].output[0]?.content[0].text as string

async function open(agent: AgentPort, dialect: (typeof BOTH)[number] = 'ga'): Promise<RealtimeWire> {
  const { url } = await startServer(agent)
  const wire = await connect(url, DIALECTS[dialect].options)
  await wire.ask(DIALECTS[dialect].session({ tools: TOOLS, modalities: ['text'] }), 'session.updated')
  return wire
}

/** Calls the client's tools, and tells what they gave. `ended` resolves when it is through, whatever the way. */
function caller(calls: readonly { id: string; name: string; arguments: string }[]) {
  let end: (how: string) => void = () => undefined
  const ended = new Promise<string>((resolve) => (end = resolve))
  const agent = defineAgent('caller', async function* (turn) {
    const last = turn.messages.at(-1)
    if (last?.content !== 'call' && last?.role !== 'tool') {
      yield text(`no call: ${turn.messages.map(({ role }) => role).join(' ')}`)
      return
    }
    let how = 'cancelled'
    try {
      yield text('Let me see.')
      const results = yield* toolRunner(turn, { tools: [] })(calls)
      how = 'through'
      yield text(results.map(({ result }) => result).join(' and '))
    } finally {
      end(how)
    }
  })
  return { agent, ended }
}

/** Asks first and shows the call afterwards, when the client has answered already. */
const hasty = defineAgent('hasty', async function* (turn) {
  const call = { id: 'call_1', name: 'weather', arguments: '{}' }
  const { result } = await turn.ask('tool.call', { call_id: call.id, name: call.name, arguments: call.arguments })
  yield { type: 'response.delta', delta: { type: 'tool_call', tool_call: call } }
  yield text(result)
})

/** Says nothing after the client has answered. */
const terse = defineAgent('terse', async function* (turn) {
  yield text('Let me see.')
  await turn.ask('tool.call', { call_id: 'call_1', name: 'weather', arguments: '{}' })
})

const ONE = [{ id: 'call_1', name: 'weather', arguments: '{"city":"Oslo"}' }]
const TWO = [...ONE, { id: 'call_2', name: 'time', arguments: '{}' }]

describe.each(BOTH)('%s', (dialect) => {
  const words = DIALECTS[dialect]

  verifies(['openai-realtime.function-call', 'openai-realtime.function-output'], 'a call and its output, event by event', async () => {
    const { agent, ended } = caller(ONE)
    const wire = await open(agent, dialect)
    const events = withoutIds(await wire.respond(says('call')))
    const from = events.findIndex((event) => event['item']?.type === 'function_call')
    const item = (status: string, args: string) => ({
      id: 'item 3',
      object: 'realtime.item',
      type: 'function_call',
      status,
      call_id: 'call_1',
      name: 'weather',
      arguments: args,
    })
    const place = { response_id: 'resp 1', item_id: 'item 3', output_index: 1, call_id: 'call_1' }
    const whole = item('completed', '{"city":"Oslo"}')
    expect(events.slice(from)).toEqual([
      { type: 'response.output_item.added', response_id: 'resp 1', output_index: 1, item: item('in_progress', '') },
      { type: words.added[0], previous_item_id: 'item 1', item: item('in_progress', '') },
      { type: 'response.function_call_arguments.delta', ...place, delta: '{"city":"Oslo"}' },
      { type: 'response.function_call_arguments.done', ...place, name: 'weather', arguments: '{"city":"Oslo"}' },
      { type: 'response.output_item.done', response_id: 'resp 1', output_index: 1, item: whole },
      ...words.added.slice(1).map((type) => ({ type, previous_item_id: 'item 1', item: whole })),
      {
        type: 'response.done',
        response: expect.objectContaining({
          status: 'completed',
          output: [expect.objectContaining({ type: 'message', status: 'completed' }), whole],
        }),
      },
    ])
    const next = await wire.respond(output('call_1', 'rain'))
    expect(next[0]?.['response'].id).not.toBe(wire.heard.find(({ type }) => type === 'response.created')?.['response'].id)
    expect(textOf(wire)).toBe('rain')
    expect(await ended).toBe('through')
    expect(typesOf(next)).not.toContain('response.function_call_arguments.done')
  })
})

verifies('openai-realtime.function-parallel', 'calls that are made together end one response; partial outputs go on with it', async () => {
  const { agent, ended } = caller(TWO)
  const wire = await open(agent)
  const done = (await wire.respond(says('call'))).at(-1)
  expect(done?.['response'].output.map((item: { type: string; call_id?: string }) => item.call_id ?? item.type)).toEqual([
    'message',
    'call_1',
    'call_2',
  ])
  // As clients do that ask for an answer with each output.
  wire.send(output('call_1', 'rain'))
  wire.send({ type: 'response.create' })
  await wire.next('response.created')
  wire.send(output('call_2', 'noon'))
  await wire.next('response.done')
  expect(textOf(wire)).toBe('rain and noon')
  expect(await ended).toBe('through')
})

verifies('openai-realtime.function-dropped', 'something else instead of the output gives the turn up', async () => {
  const { agent, ended } = caller(ONE)
  const wire = await open(agent)
  await wire.respond(says('call'))
  await wire.respond(says('never mind'))
  expect(await ended).toBe('cancelled')
  expect(textOf(wire)).toBe('no call: user assistant user')
})

verifies('openai-realtime.function-dropped', 'a response.create without the output gives the turn up', async () => {
  const { agent, ended } = caller(ONE)
  const wire = await open(agent)
  await wire.respond(says('call'))
  wire.send({ type: 'response.create', response: { conversation: 'none', input: [] } })
  expect((await wire.next('response.done'))['response'].output[0].content[0].text).toBe('no call: ')
  expect(await ended).toBe('cancelled')
})

verifies('openai-realtime.function-output', 'an output that nobody waits for is history', async () => {
  // An agent that calls without waiting: the next turn finds the call and its output in the conversation.
  const agent = defineAgent('passing', async function* (turn) {
    const result = turn.messages.find(({ role }) => role === 'tool')
    if (result) yield text(`it was ${result.content}`)
    else
      for (const piece of ['{"city"', ':"Oslo"}']) {
        yield { type: 'response.delta', delta: { type: 'tool_call', tool_call: { id: 'c9', name: 'weather', arguments: piece } } }
      }
  })
  const wire = await open(agent)
  const events = await wire.respond(says('go'))
  const deltas = events.filter(({ type }) => type === 'response.function_call_arguments.delta').map(({ delta }) => delta as string)
  expect(deltas).toEqual(['{"city"', ':"Oslo"}'])
  expect(events.at(-1)?.['response'].output).toMatchObject([{ type: 'function_call', status: 'completed', arguments: '{"city":"Oslo"}' }])
  await wire.respond(output('c9', 'rain'))
  expect(textOf(wire)).toBe('it was rain')
})

verifies('openai-realtime.function-output', 'a call that is shown after its answer is not made twice', async () => {
  const wire = await open(hasty)
  await wire.respond(says('go'))
  const events = await wire.respond(output('call_1', 'rain'))
  expect(events.at(-1)?.['response'].output.map(({ type }: { type: string }) => type)).toEqual(['message'])
  expect(textOf(wire)).toBe('rain')
})

verifies('openai-realtime.function-output', 'an output that comes too late is found in the conversation by the next turn', async () => {
  let tell: () => void = () => undefined
  const late = new Promise<void>((resolve) => (tell = resolve))
  const agent = defineAgent('impatient', async function* (turn) {
    const given = turn.messages.find(({ role }) => role === 'tool')
    if (given) return yield text(`it was ${given.content}`)
    const call = { call_id: 'call_1', name: 'weather', arguments: '{}' }
    await turn.ask('tool.call', call, { timeoutMs: 1_000 }).catch(tell)
    yield text('nobody answered')
  })
  const wire = await open(agent)
  await wire.respond(says('go'))
  await late
  await wire.respond(output('call_1', 'rain'))
  expect(textOf(wire)).toBe('it was rain')
  expect(wire.heard.some((event) => event['delta'] === 'nobody answered')).toBe(false)
})

verifies('openai-realtime.own-tools', 'what the agent runs itself is no call', async () => {
  const wire = await open(demo())
  const events = await wire.respond(says('/tool add {"a":1,"b":2}'))
  expect(events.at(-1)?.['response'].output.map(({ type }: { type: string }) => type)).toEqual(['message'])
  expect(textOf(wire)).toBe('add answered: {"sum":3}')
  expect(events.some(({ type }) => type.includes('function_call') || type.startsWith('tool.'))).toBe(false)
})

verifies('openai-realtime.cancel', 'a cancelled call is incomplete, and no call for the agent', async () => {
  const agent = defineAgent('slow-caller', async function* (turn) {
    if (turn.messages.length > 1) return yield text(`${turn.messages.length} ${turn.messages.at(-2)?.tool_calls?.length ?? 'no'} calls`)
    yield { type: 'response.delta', delta: { type: 'tool_call', tool_call: { id: 'c1', name: 'weather', arguments: '{"ci' } } }
    await new Promise((resolve) => turn.signal.addEventListener('abort', resolve))
  })
  const wire = await open(agent)
  wire.send(says('go'))
  wire.send({ type: 'response.create' })
  await wire.next('response.function_call_arguments.delta')
  const done = await wire.ask({ type: 'response.cancel' }, 'response.done')
  expect(done['response']).toMatchObject({
    status: 'cancelled',
    output: [{ type: 'function_call', status: 'incomplete', arguments: '{"ci' }],
  })
  await wire.respond(says('again'))
  expect(textOf(wire)).toBe('2 no calls')
})

test('a turn that says nothing after its call does not repeat what it said before it', async () => {
  const wire = await open(terse)
  await wire.respond(says('call'))
  const events = await wire.respond(output('call_1', 'rain'))
  expect(events.at(-1)?.['response'].output).toEqual([])
})
