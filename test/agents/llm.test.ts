import { expect, test } from 'vitest'
import * as z from 'zod'
import { llmAgent } from '../../src/agents/llm/index.ts'
import { modelOf } from '../../src/agents/llm/model.ts'
import type { Tool } from '../../src/core/ports/skill.ts'
import { defineTool } from '../../src/core/tools/tool.ts'
import { UampError } from '../../src/protocol/errors.ts'
import type { Draft } from '../../src/protocol/events.ts'
import { scriptedProvider, type ScriptedTurn } from '../../src/testing/scripted-provider.ts'
import { startServer } from '../support/server.ts'
import { say, textOf } from '../support/talk.ts'
import { verifies } from '../support/verifies.ts'
import { overWebSocket, type Heard, type Wire } from '../support/wire.ts'
import { answering, call, said, stopped, used } from './provider.ts'

type Init = Omit<Parameters<typeof llmAgent>[0], 'name' | 'model'>

const add = defineTool({
  name: 'add',
  description: 'The sum',
  parameters: z.object({ a: z.number(), b: z.number().default(1) }),
  run: ({ a, b }) => ({ sum: a + b }),
})
const echo: Tool = {
  name: 'echo',
  parameters: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
  run: ({ text }) => String(text),
}

/** An agent with this script on a server of its own, and a client. */
async function talk(turns: readonly ScriptedTurn[], init: Init = {}, session: object = {}) {
  const provider = scriptedProvider(turns)
  const agent = llmAgent({ name: 'bot', model: modelOf(provider, 'm'), tools: [add, echo], ...init })
  const server = await startServer(agent)
  const wire = await overWebSocket(server.url)
  await wire.open({ session: { modalities: ['text'], ...session } })
  return { provider, wire, server }
}

const results = (events: readonly Heard[]) =>
  events.flatMap((event) => (event.type === 'response.delta' && event['delta'].type === 'tool_result' ? [event['delta'].tool_result] : []))
const last = (events: readonly Heard[]): Heard => events.at(-1) as Heard
const done = (events: readonly Heard[]) => {
  expect(last(events)).toMatchObject({ type: 'response.done' })
  return last(events)['response']
}

verifies(
  ['uamp:tools:call-done', 'uamp:tools:server-result'],
  'the model is asked, its tools run in parallel, and it is asked again with their results',
  async () => {
    const { provider, wire } = await talk([
      [
        { type: 'thinking', content: 'two sums', is_delta: true, signature: 'signed' },
        said('Let me see. '),
        call('c1', 'add', '{"a":'),
        call('c2', 'add', { a: 5, b: 6 }),
        call('c1', 'add', '2}'),
        used({ input_tokens: 10, output_tokens: 5 }),
      ],
      [said('3 and '), said('11'), used({ input_tokens: 20, output_tokens: 2 })],
    ])
    const events = await say(wire, 'sums')
    expect(textOf(events)).toBe('Let me see. 3 and 11')
    expect(done(events).usage).toMatchObject({ input_tokens: 30, output_tokens: 7, total_tokens: 37 })
    expect(results(events).map(({ call_id, result }) => [call_id, result])).toEqual([
      ['c1', '{"sum":3}'],
      ['c2', '{"sum":11}'],
    ])
    expect(events.filter(({ type }) => type === 'tool.call_done')).toHaveLength(2)
    // What the model is shown: its thoughts with their signature, its calls whole, the results in order.
    const [user, assistant, ...tools] = provider.requests[1]?.messages ?? []
    expect(user).toMatchObject({ role: 'user', content: 'sums' })
    expect(assistant?.content_items?.map(({ type }) => type)).toEqual(['thinking', 'text', 'tool_call', 'tool_call'])
    expect(assistant?.content_items?.[0]).toEqual({ type: 'thinking', thinking: 'two sums', signature: 'signed' })
    expect(assistant?.tool_calls?.[0]).toEqual({ id: 'c1', name: 'add', arguments: '{"a":2}' })
    expect(tools).toEqual([
      { role: 'tool', tool_call_id: 'c1', content: '{"sum":3}' },
      { role: 'tool', tool_call_id: 'c2', content: '{"sum":11}' },
    ])
    expect(done(events).output.map(({ type }: { type: string }) => type)).toEqual([
      'thinking',
      'text',
      'tool_call',
      'tool_call',
      'tool_result',
      'tool_result',
      'text',
    ])
  },
)

test('the next turn is shown the whole turn before', async () => {
  const { provider, wire } = await talk([[call('c1', 'add', { a: 1 })], [said('2')], [said('still 2')]])
  await say(wire, 'one')
  await say(wire, 'again')
  expect(provider.requests[2]?.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'assistant', 'user'])
})

test('ids that a model counts anew with every request are made unique', async () => {
  const { provider, wire } = await talk([
    [call('call_0', 'add', { a: 1 })],
    [call('call_0', 'add', { a: 2 }), call('', 'add', { a: 3 })],
    [said('ok')],
  ])
  const events = await say(wire, 'go')
  expect(results(events).map(({ result }) => result)).toEqual(['{"sum":2}', '{"sum":3}', '{"sum":4}'])
  const ids = provider.requests[2]?.messages.flatMap(({ tool_calls = [] }) => tool_calls.map(({ id }) => id)) ?? []
  expect(new Set(ids).size).toBe(3)
  expect(provider.requests[2]?.messages.flatMap(({ tool_call_id = [] }) => tool_call_id)).toEqual(ids)
})

for (const [what, args, name, reason] of [
  ['arguments that are not JSON', '{"a":', 'add', 'are not JSON'],
  ['arguments that are no object', '[1]', 'add', 'must be a JSON object'],
  ['arguments that do not fit a zod schema', '{"a":"x"}', 'add', '\\"a\\"'],
  ['arguments that do not fit a JSON Schema', '{"text":1}', 'echo', '\\"text\\" must be a string, but is a number'],
  ['a tool that does not exist', '{}', 'nothing', 'There is no tool'],
] as const)
  verifies('model.arguments', `${what} go back to the model`, async () => {
    const { provider, wire } = await talk([[call('c1', name, args)], [said('sorry')]])
    const events = await say(wire, 'go')
    expect(results(events)).toMatchObject([{ call_id: 'c1', is_error: true, status: 'failed' }])
    expect(provider.requests[1]?.messages.at(-1)?.content).toContain(reason)
    expect(textOf(events)).toBe('sorry')
  })

verifies('model.tools-harmless', 'a tool that throws, hangs, or returns 10 MiB harms nobody', async () => {
  const tools: Tool[] = [
    { name: 'throws', run: () => Promise.reject(new Error('no such city')) },
    { name: 'hangs', timeoutMs: 20, run: () => new Promise(() => undefined) },
    { name: 'undecided', timeoutMs: 20, needsApproval: () => new Promise(() => undefined), run: () => 'never' },
    { name: 'floods', run: () => 'x'.repeat(10 * 1024 * 1024) },
    {
      name: 'circular',
      run: () => {
        const value: unknown[] = []
        value.push(value)
        return value
      },
    },
    { name: 'media', run: () => ({ text: '', data: 'x'.repeat(17 * 1024 * 1024) }) },
  ]
  const { provider, wire } = await talk([tools.map(({ name }) => call(name, name, {})), [said('ok')]], {
    tools,
    limits: { resultLength: 1000 },
  })
  const events = await say(wire, 'go')
  const told = Object.fromEntries(provider.requests[1]?.messages.map(({ tool_call_id, content }) => [tool_call_id, content]) ?? [])
  expect(told['throws']).toBe('{"error":{"code":"tool_failed","message":"no such city"}}')
  expect(told['hangs']).toContain('"timeout"')
  expect(told['undecided']).toContain('"timeout"')
  expect(told['floods']).toHaveLength(1000 + '\n[cut off: this is the beginning, 1000 of 10485760 characters]'.length)
  expect(told['circular']).toContain('circular')
  expect(told['media']).toContain('too_large')
  expect(textOf(events)).toBe('ok')
})

verifies('uamp:tools:server-progress', 'a tool tells how far it is', async () => {
  const slow: Tool = { name: 'slow', run: (_, { progress }) => (progress('half'), 'whole') }
  const { wire } = await talk([[call('c1', 'slow', {})], [said('ok')]], { tools: [slow] })
  const events = await say(wire, 'go')
  expect(events.find((event) => event['delta']?.type === 'tool_progress')?.['delta'].tool_progress).toEqual({ call_id: 'c1', text: 'half' })
})

verifies('model.steps', 'a model that calls tools for ever is stopped', async () => {
  const agent = llmAgent({ name: 'bot', model: answering(() => [call('c', 'echo', { text: 'x' })]), tools: [echo], maxSteps: 5 })
  const wire = await overWebSocket((await startServer(agent)).url)
  await wire.open()
  const events = await say(wire, 'go')
  expect(last(events)).toMatchObject({ type: 'response.error', error: { code: 'tool_budget_exceeded', details: { steps: 5 } } })
  expect(results(events)).toHaveLength(4)
})

test('calls beyond the budget of a turn fail one by one', async () => {
  const { wire } = await talk([[1, 2, 3].map((n) => call(`c${n}`, 'add', { a: n })), [said('ok')]], { limits: { budget: 2 } })
  expect(results(await say(wire, 'go')).filter(({ is_error }) => is_error)).toHaveLength(1)
})

test('an answer that was cut off ends there, and its calls are not made', async () => {
  const { provider, wire } = await talk([[said('Once'), call('c1', 'echo', '{"text":"up'), stopped('length')]])
  const events = await say(wire, 'go')
  expect(done(events).extensions).toEqual({ uamp: { stop_reason: 'length' } })
  expect(provider.requests).toHaveLength(1)
})

test('a tool that the model was made to call is not forced on it again', async () => {
  const { provider, wire } = await talk(
    [[call('c1', 'add', { a: 1 })], [said('ok')]],
    {},
    { extensions: { openai: { tool_choice: 'required', seed: 1 } } },
  )
  await say(wire, 'go')
  expect(provider.requests.map(({ config }) => config.extensions)).toEqual([
    { openai: { tool_choice: 'required', seed: 1 } },
    { openai: { seed: 1 } },
  ])
})

test('instructions, settings and tools of agent and client come together', async () => {
  const provider = scriptedProvider([[said('ok')]], { name: 'acme' })
  const model = modelOf(provider, 'm', { settings: { temperature: 0.2, max_tokens: 100, top_k: 5 } })
  const wire = await overWebSocket((await startServer(llmAgent({ name: 'bot', model, instructions: 'Be brief.', tools: [add] }))).url)
  const mine = { type: 'function', function: { name: 'echo', description: 'mine' } }
  const extensions = { openai: { max_completion_tokens: 9 }, acme: { temperature: 1 } }
  await wire.open({ session: { modalities: ['text'], instructions: 'Speak French.', tools: [mine], extensions } })
  await say(wire, 'go')
  const config = provider.requests[0]?.config
  expect(config?.instructions).toBe('Be brief.\n\nSpeak French.')
  expect(config?.extensions).toEqual({ openai: { max_completion_tokens: 9 }, acme: { temperature: 1, top_k: 5 } })
  expect(config?.tools?.map(({ function: f }) => [f.name, f.description])).toEqual([
    ['add', 'The sum'],
    ['echo', 'mine'],
  ])
  expect(config?.tools?.[0]?.function.parameters).toEqual({
    type: 'object',
    properties: { a: { type: 'number' }, b: { type: 'number', default: 1 } },
    required: ['a'],
  })
})

verifies(
  ['uamp:tools:call', 'uamp:tools:result', 'uamp:tools:offered'],
  'a tool of the client and one of the server in one step',
  async () => {
    const tool = { type: 'function', function: { name: 'lookup' } }
    const { provider, wire } = await talk(
      [[call('c1', 'lookup', { q: 'x' }), call('c2', 'add', { a: 1 })], [said('ok')]],
      {},
      { tools: [tool] },
    )
    const saying = say(wire, 'go')
    const asked = await wire.next('tool.call')
    expect(asked).toMatchObject({ call_id: 'c1', name: 'lookup', arguments: '{"q":"x"}' })
    await wire.send({ type: 'tool.result', call_id: 'c1', result: 'found' })
    expect(textOf(await saying)).toBe('ok')
    expect(provider.requests[1]?.messages.slice(-2).map(({ content }) => content)).toEqual(['found', '{"sum":2}'])
  },
)

async function approve(wire: Wire, approved: boolean): Promise<Heard[]> {
  const saying = say(wire, 'go')
  const asked = await wire.next('x.approval.request')
  expect(asked['tool_call']).toEqual({ id: 'c1', name: 'wipe', arguments: '{"all":true}' })
  await wire.send({ type: 'x.approval.response', approval_id: asked['approval_id'], approved, ...(!approved && { reason: 'too risky' }) })
  return saying
}

test('a tool that must be allowed waits for it, and a denial goes to the model', async () => {
  let ran = 0
  const wipe: Tool = { name: 'wipe', needsApproval: ({ all }) => all === true, run: () => `wiped ${++ran}` }
  const steps: ScriptedTurn[] = [[call('c1', 'wipe', { all: true }), call('c2', 'wipe', { all: false })], [said('ok')]]
  const { wire, provider } = await talk([...steps, ...steps], { tools: [wipe] })
  expect(results(await approve(wire, false)).find(({ call_id }) => call_id === 'c1').result).toContain('too risky')
  expect(ran).toBe(1)
  // The ids of the second turn are those of the first, which the conversation has.
  const saying = say(wire, 'again')
  const asked = await wire.next('x.approval.request')
  await wire.send({ type: 'x.approval.response', approval_id: asked['approval_id'], approved: true })
  expect(results(await saying).map(({ is_error }) => is_error)).toEqual([false, false])
  expect(ran).toBe(3)
  expect(provider.requests).toHaveLength(4)
})

test('the second model answers when the first fails before it has said anything, and keeps the turn', async () => {
  const failing = scriptedProvider(
    [
      () => {
        throw new UampError('rate_limited', 'Too many')
      },
    ],
    { name: 'first' },
  )
  const second = scriptedProvider([[call('c1', 'add', { a: 1 })], [said('2')]], { name: 'second' })
  const logged: string[] = []
  const agent = llmAgent({
    name: 'bot',
    model: modelOf(failing, 'a'),
    fallbacks: [modelOf(second, 'b')],
    tools: [add],
    log: (level, message) => void logged.push(`${level} ${message}`),
  })
  const wire = await overWebSocket((await startServer(agent)).url)
  await wire.open()
  expect(textOf(await say(wire, 'go'))).toBe('2')
  expect([failing.requests.length, second.requests.length]).toEqual([1, 2])
  expect(logged).toEqual(['warn A model failed, the next one is asked'])
})

test('a model that fails after its first word fails the response', async () => {
  const cut = async function* (): AsyncGenerator<Draft> {
    yield said('Half a')
    throw new UampError('provider_error', 'The stream was cut')
  }
  const second = scriptedProvider([[said('never')]])
  const agent = llmAgent({ name: 'bot', model: answering(cut), fallbacks: [modelOf(second, 'b')] })
  const wire = await overWebSocket((await startServer(agent)).url)
  await wire.open()
  const events = await say(wire, 'go')
  expect(last(events)).toMatchObject({ type: 'response.error', error: { code: 'provider_error', message: 'The stream was cut' } })
  expect(second.requests).toHaveLength(0)
})

test('a cancel reaches the model', async () => {
  let left = false
  const endless = answering(async function* (_, { signal }) {
    try {
      yield said('word ')
      await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)))
    } finally {
      left = true
    }
  })
  const wire = await overWebSocket((await startServer(llmAgent({ name: 'bot', model: endless }))).url)
  await wire.open()
  const saying = say(wire, 'go')
  await wire.next('response.delta')
  await wire.send({ type: 'response.cancel' })
  expect(last(await saying).type).toBe('response.cancelled')
  expect(left).toBe(true)
})

verifies(
  ['uamp:response:done-usage', 'uamp:response:usage-delta', 'uamp:response:usage-total', 'model.cost'],
  'what the model costs is in the end of the response',
  async () => {
    const usage = { input_tokens: 3_000, output_tokens: 100, input_uncached: 1_000, cache_read: 1_500, cache_write: 500, output: 100 }
    const { wire } = await talk(
      [
        [call('c1', 'add', { a: 1 }), used(usage)],
        [said('ok'), used({ input_tokens: 1_000, output_tokens: 10 })],
      ],
      {
        prices: { 'scripted/m': { input: 2, output: 10, cacheRead: 0.2, cacheWrite: 2.5 } },
      },
    )
    const { cost } = done(await say(wire, 'go')).usage
    expect(cost.currency).toBe('USD')
    expect(cost.input_cost).toBeCloseTo((1_000 * 2 + 1_500 * 0.2 + 500 * 2.5 + 1_000 * 2) / 1e6, 12)
    expect(cost.output_cost).toBeCloseTo((110 * 10) / 1e6, 12)
    expect(cost.total_cost).toBeCloseTo(cost.input_cost + cost.output_cost, 12)
  },
)

verifies('model.cost', 'what the failed model spent is counted at its own price', async () => {
  const failing = scriptedProvider(
    [
      async function* () {
        yield used({ input_tokens: 1_000_000, output_tokens: 0 })
        throw new UampError('provider_error', 'Broken')
      },
    ],
    { name: 'first' },
  )
  const second = scriptedProvider([[said('ok'), used({ input_tokens: 1_000_000, output_tokens: 0 })]], { name: 'second' })
  const prices = { 'second/b': { input: 3, output: 0 } }
  const agent = llmAgent({ name: 'bot', model: modelOf(failing, 'a'), fallbacks: [modelOf(second, 'b')], prices })
  const wire = await overWebSocket((await startServer(agent)).url)
  await wire.open()
  // Nobody knows the price of the first one.
  expect(done(await say(wire, 'go')).usage).toMatchObject({ input_tokens: 2_000_000, cost: { total_cost: 3 } })
})

test('a conversation is cut to what fits into the window of the model', async () => {
  const long = 'x'.repeat(6_000)
  const provider = scriptedProvider([[said('a')], [said('b')], [said('c')]], { capabilities: { context_window: 4_000 } })
  const wire = await overWebSocket((await startServer(llmAgent({ name: 'bot', model: modelOf(provider, 'm') }))).url)
  await wire.open()
  await say(wire, `first ${long}`)
  await say(wire, 'second')
  await say(wire, `third ${long}`)
  expect(provider.requests[1]?.messages.map(({ content }) => content?.slice(0, 6))).toEqual(['first ', 'a', 'second'])
  expect(provider.requests[2]?.messages.map(({ content }) => content?.slice(0, 6))).toEqual(['second', 'b', 'third '])
})

test('capabilities are those of the model and the agent', async () => {
  const able = { modalities: ['text', 'image'], context_window: 1000, image: { formats: ['png'] } }
  const agent = llmAgent({ name: 'bot', model: answering(() => [], { able }), tools: [add] })
  await agent.ready
  expect(agent.capabilities).toMatchObject({
    id: 'bot',
    provider: 'uamp',
    ...able,
    tools: { supports_tools: true, built_in_tools: ['add'] },
  })
})

test('two tools of one name, or a name that no provider takes, are refused', () => {
  const model = answering(() => [])
  expect(() => llmAgent({ name: 'bot', model, tools: [add, add] })).toThrow('Two tools are called "add"')
  expect(() => llmAgent({ name: 'bot', model, tools: [{ name: 'a b', run: () => '' }] })).toThrow('A tool cannot be called "a b"')
  expect(() => llmAgent({ name: 'bot', model, handoffs: [{ to: 'billing.asked' }] })).toThrow('No skill has a handler for "billing.asked"')
})
