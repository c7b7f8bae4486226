import { expect } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { text } from '../../src/core/agent-kit/drafts.ts'
import { toolRunner } from '../../src/core/tools/tool-loop.ts'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'
import { ask, joined, stream, user, type Wire } from './support.ts'

const PATH = '/v1/chat/completions'
const tool = (name: string) => ({ type: 'function', function: { name, parameters: { type: 'object' } } })

/** Calls `first`, then `second` with what the first one gave, then says what that one gave. */
const chain = defineAgent('chain', async function* (turn) {
  const run = toolRunner(turn, { tools: [] })
  const [a] = yield* run([{ id: `${turn.id}_a`, name: 'first', arguments: '{"n":1}' }])
  const [b] = yield* run([{ id: `${turn.id}_b`, name: 'second', arguments: JSON.stringify({ given: a?.result }) }])
  yield text(`It is ${b?.result}.`)
})

verifies(['openai-completions.tool-loop', 'openai-completions.tool-calls'], 'a loop over three requests keeps its ids', async () => {
  const { url } = await startServer(chain)
  const tools = [tool('first'), tool('second')]
  for (const streamed of [false, true]) {
    const messages: unknown[] = [user('go')]
    const seen: [string, string][] = []
    const next = async (): Promise<Wire> => {
      if (!streamed) return (await ask(url + PATH, { messages, tools })).body.choices[0]
      const { chunks } = await stream(url + PATH, { messages, tools })
      const calls = gather(chunks)
      const finish_reason = chunks.at(-1).choices[0].finish_reason
      return {
        finish_reason,
        message: { role: 'assistant', content: joined(chunks, 'content'), ...(calls.length > 0 && { tool_calls: calls }) },
      }
    }
    for (const result of ['one', 'two']) {
      const { finish_reason, message } = await next()
      expect(finish_reason).toBe('tool_calls')
      expect(message.tool_calls).toHaveLength(1)
      const [call] = message.tool_calls
      seen.push([call.function.name, call.function.arguments])
      messages.push(message, { role: 'tool', tool_call_id: call.id, content: result })
    }
    const { finish_reason, message } = await next()
    expect([finish_reason, message.content, message.tool_calls]).toEqual(['stop', 'It is two.', undefined])
    expect(seen).toEqual([
      ['first', '{"n":1}'],
      ['second', '{"given":"one"}'],
    ])
  }
})

verifies('openai-completions.tool-arguments', 'arguments come in pieces', async () => {
  const agent = defineAgent('pieces', async function* () {
    for (const piece of ['{"ci', 'ty":', '"Bern"}']) {
      yield { type: 'response.delta', delta: { type: 'tool_call', tool_call: { id: 'c1', name: 'weather', arguments: piece } } }
    }
  })
  const { url } = await startServer(agent)
  const { chunks } = await stream(url + PATH, { messages: [user('x')], tools: [tool('weather')] })
  expect(chunks.flatMap(({ choices }) => choices[0].delta.tool_calls ?? [])).toEqual([
    { index: 0, id: 'c1', type: 'function', function: { name: 'weather', arguments: '{"ci' } },
    { index: 0, function: { arguments: 'ty":' } },
    { index: 0, function: { arguments: '"Bern"}' } },
  ])
  // The agent asks nobody: a call without a result is for the client all the same.
  expect(chunks.at(-1).choices[0].finish_reason).toBe('tool_calls')
})

verifies('openai-completions.parallel-calls', 'calls side by side', async () => {
  const agent = defineAgent('both', async function* (turn) {
    const results = yield* toolRunner(turn, { tools: [] })([
      { id: `${turn.id}_a`, name: 'first', arguments: '{"n":1}' },
      { id: `${turn.id}_b`, name: 'first', arguments: '{"n":1}' },
    ])
    yield text(results.map(({ result }) => result).join(' and '))
  })
  const { url } = await startServer(agent)
  const tools = [tool('first')]
  const { chunks } = await stream(url + PATH, { messages: [user('x')], tools })
  const calls = gather(chunks)
  expect(calls.map(({ function: { name } }) => name)).toEqual(['first', 'first'])
  const results = calls.map(({ id }, index) => ({ role: 'tool', tool_call_id: id, content: `r${index}` }))
  const { body } = await ask(url + PATH, {
    messages: [user('x'), { role: 'assistant', content: null, tool_calls: calls }, ...results],
    tools,
  })
  expect(body.choices[0].message.content).toBe('r0 and r1')
})

verifies('openai-completions.functions', 'the older form', async () => {
  const { url } = await startServer(demo())
  const request = { messages: [user('/tool weather {"city":"Bern"}')], functions: [{ name: 'weather', parameters: { type: 'object' } }] }
  const { body } = await ask(url + PATH, request)
  const function_call = { name: 'weather', arguments: '{"city":"Bern"}' }
  expect(body.choices[0]).toMatchObject({ finish_reason: 'function_call', message: { content: null, function_call } })
  const { chunks } = await stream(url + PATH, request)
  expect(chunks.flatMap(({ choices }) => choices[0].delta.function_call ?? [])).toEqual([function_call])
  expect(chunks.at(-1).choices[0].finish_reason).toBe('function_call')
  const answered = [...request.messages, body.choices[0].message, { role: 'function', name: 'weather', content: 'sun' }]
  expect((await ask(url + PATH, { ...request, messages: answered })).body.choices[0].message.content).toBe('weather answered: sun')
})

verifies('openai-completions.own-tools', 'what the agent runs itself is not for the client', async () => {
  const { url } = await startServer(demo())
  const { chunks } = await stream(url + PATH, { messages: [user('/tool add {"a":1,"b":2}')], tools: [tool('weather')] })
  expect(chunks.flatMap(({ choices }) => choices[0].delta.tool_calls ?? [])).toEqual([])
  const items = chunks.flatMap(({ choices }) => choices[0].delta.content_items ?? [])
  expect(items).toMatchObject([
    { type: 'tool_call', tool_call: { name: 'add' } },
    { type: 'tool_result', tool_result: { result: '{"sum":3}' } },
  ])
  expect(chunks.at(-1).choices[0].finish_reason).toBe('stop')
})

/** Tool calls put together as clients do it. */
function gather(chunks: readonly Wire[]): Wire[] {
  const calls: Wire[] = []
  for (const piece of chunks.flatMap(({ choices }) => choices[0]?.delta.tool_calls ?? [])) {
    const known = calls[piece.index]
    if (known) known.function.arguments += piece.function.arguments
    else calls[piece.index] = { id: piece.id, type: piece.type, function: { ...piece.function } }
  }
  return calls
}
