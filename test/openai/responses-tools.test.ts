import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { serve } from '../../src/serve/index.ts'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { text } from '../../src/core/agent-kit/drafts.ts'
import type { AgentPort } from '../../src/core/ports/agent.ts'
import { UampError } from '../../src/protocol/errors.ts'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'
import { client, deltasOf, fn, textOf, typesOf, type Json } from './responses-wire.ts'

const start = async (agents: AgentPort | readonly AgentPort[] = demo()) => {
  const server = await startServer(agents)
  return { ...server, api: client(server.url) }
}

const callsIn = (response: Json): Json[] => (response['output'] as Json[]).filter(({ type }) => type === 'function_call')
const result = (call_id: unknown, output: unknown): object => ({ type: 'function_call_output', call_id, output })

/** Asks for one tool, then for two at once, and says what came. Counts how often it was begun, and how often it was ended. */
function stepper() {
  const count = { begun: 0, ended: 0 }
  const agent = defineAgent('stepper', async function* (turn) {
    count.begun++
    try {
      const call = (name: string) => turn.ask('tool.call', { name, arguments: `{"of":"${name}"}` })
      yield text('first ')
      const one = await call('one')
      yield text(`got ${one.result} `)
      const both = await Promise.all([call('two'), call('three')])
      yield text(`then ${both.map(({ result }) => result).join('+')}`)
    } finally {
      count.ended++
    }
  })
  return { agent, count }
}
const tools = [fn('one'), fn('two'), fn('three')]

verifies('openai-responses.tool-loop', 'a tool loop over three requests goes on in one run and keeps its ids', async () => {
  const { agent, count } = stepper()
  const { api } = await start(agent)
  const first = await api.stream({ input: 'go', tools })
  const one = first.at(-1)?.['response'] as Json
  const [call] = callsIn(one)
  expect(call).toMatchObject({ name: 'one', arguments: '{"of":"one"}', status: 'completed' })
  expect(first.find(({ type }) => type === 'response.function_call_arguments.done')).toMatchObject({ item_id: call?.['id'] })

  const { body: two } = await api.ask({ previous_response_id: one['id'], input: [result(call?.['call_id'], 'ONE')], tools })
  expect(two['id']).not.toBe(one['id'])
  expect(two['previous_response_id']).toBe(one['id'])
  expect(textOf(two)).toBe('got ONE ')
  const calls = callsIn(two)
  expect(calls.map(({ name }) => name)).toEqual(['two', 'three'])

  const third = await api.stream({
    previous_response_id: two['id'],
    input: [result(calls[1]?.['call_id'], 'THREE'), result(calls[0]?.['call_id'], [{ type: 'input_text', text: 'TWO' }])],
    tools,
  })
  expect(deltasOf(third)).toBe('then TWO+THREE')
  expect(typesOf(third)).not.toContain('function_call_arguments.delta')
  expect(count).toEqual({ begun: 1, ended: 1 })

  for (const response of [one, two, third.at(-1)?.['response'] as Json]) {
    const { body } = await api.get(response['id'] as string)
    expect({ ...body, completed_at: 0 }).toEqual({ ...response, completed_at: 0 })
  }
  const { body: items } = await api.items(two['id'] as string, '?order=asc')
  expect(items['data']).toMatchObject([
    { type: 'message', role: 'user' },
    { type: 'message', role: 'assistant', id: (one['output'] as Json[])[0]?.['id'] },
    { type: 'function_call', id: call?.['id'], call_id: call?.['call_id'] },
    { type: 'function_call_output', call_id: call?.['call_id'], output: 'ONE' },
  ])
})

verifies('openai-responses.function-call', "a model's calls are streamed as they come, several at once", async () => {
  const piece = (id: string, name: string, args: string) =>
    ({ type: 'response.delta', delta: { type: 'tool_call', tool_call: { id, name, arguments: args } } }) as const
  const { api } = await start(
    defineAgent('model', async function* ({ messages }) {
      const results = messages.filter(({ role }) => role === 'tool').map(({ tool_call_id, content }) => `${tool_call_id}=${content}`)
      if (results.length > 0) return yield text(results.join(' '))
      yield piece('call_a', 'one', '{"x"')
      yield piece('call_b', 'two', '{"y":')
      yield piece('call_a', 'one', ':1}')
      yield piece('call_b', 'two', '2}')
    }),
  )
  const events = await api.stream({ input: 'go', tools })
  const deltas = events.filter(({ type }) => type === 'response.function_call_arguments.delta')
  expect(deltas.map(({ output_index, delta }) => [output_index, delta])).toEqual([
    [0, '{"x"'],
    [1, '{"y":'],
    [0, ':1}'],
    [1, '2}'],
  ])
  const response = events.at(-1)?.['response'] as Json
  expect(callsIn(response)).toMatchObject([
    { call_id: 'call_a', arguments: '{"x":1}', status: 'completed' },
    { call_id: 'call_b', arguments: '{"y":2}', status: 'completed' },
  ])
  // It has ended: what it called is answered by a new run, with the conversation.
  const { body } = await api.ask({ previous_response_id: response['id'], input: [result('call_a', 'A'), result('call_b', 'B')], tools })
  expect(textOf(body)).toBe('call_a=A call_b=B')
})

verifies('openai-responses.tool-loop', 'the whole conversation may be sent again instead', async () => {
  for (const store of [true, false]) {
    const { agent, count } = stepper()
    const { api, gateway } = await start(agent)
    let input: object[] = [{ role: 'user', content: 'go' }]
    const { body: one } = await api.ask({ input, tools, store })
    input = [...input, ...(one['output'] as object[]), result(callsIn(one)[0]?.['call_id'], 'ONE')]
    const { body: two } = await api.ask({ input, tools, store })
    expect(callsIn(two).map(({ name }) => name)).toEqual(['two', 'three'])
    input = [...input, ...(two['output'] as object[]), ...callsIn(two).map(({ call_id, name }) => result(call_id, name))]
    const { body: three } = await api.ask({ input, tools, store })
    expect(textOf(three)).toMatch(/then two\+three$/)
    expect(count.begun).toBe(3)
    if (!store) await expect.poll(() => [gateway.openSessions, count.ended]).toEqual([0, 3])
  }
})

verifies('openai-responses.tool-missing', 'an output without its call, and a call without its output, are refused', async () => {
  const { agent } = stepper()
  const { api } = await start(agent)
  const { body: one } = await api.ask({ input: 'go', tools })
  const call_id = callsIn(one)[0]?.['call_id'] as string
  const from = { previous_response_id: one['id'], tools }
  const refused = async (body: object) => {
    const answer = await api.ask(body)
    expect(answer.status).toBe(400)
    return answer.body['error'] as Json
  }
  expect(await refused({ ...from, input: 'never mind' })).toMatchObject({ message: `No tool output found for function call ${call_id}.` })
  expect(await refused({ ...from, input: [result('call_x', 'X')] })).toMatchObject({
    message: 'No tool call found for function call output with call_id call_x.',
    param: 'input[0].call_id',
  })
  expect(await refused({ input: [result(call_id, 'X')] })).toMatchObject({ param: 'input[0].call_id' })
  const { body: two } = await api.ask({ ...from, input: [result(call_id, 'ONE')] })
  const [a] = callsIn(two)
  expect(await refused({ previous_response_id: two['id'], tools, input: [result(a?.['call_id'], 'A')] })).toMatchObject({
    message: `No tool output found for function call ${callsIn(two)[1]?.['call_id']}.`,
  })
})

test('an output together with something else begins anew, with everything in the conversation', async () => {
  const { api } = await start(
    defineAgent('talker', async function* (turn) {
      if (turn.messages.length === 1) await turn.ask('tool.call', { name: 'one', arguments: '{}' })
      yield text(turn.messages.map(({ role, content }) => `${role}:${content}`).join(' '))
    }),
  )
  const { body: one } = await api.ask({ input: 'go', tools })
  const call_id = callsIn(one)[0]?.['call_id']
  const { body } = await api.ask({
    previous_response_id: one['id'],
    tools,
    input: [result(call_id, 'ONE'), { role: 'user', content: 'and hurry' }],
  })
  expect(textOf(body)).toBe('user:go assistant: tool:ONE user:and hurry')
})

verifies('openai-responses.tool-loop', 'a response that was answered can be answered again: that is a fork', async () => {
  const { agent, count } = stepper()
  const { api } = await start(agent)
  const { body: one } = await api.ask({ input: 'go', tools })
  const answer = (word: string) => api.ask({ previous_response_id: one['id'], tools, input: [result(callsIn(one)[0]?.['call_id'], word)] })
  expect(textOf((await answer('A')).body)).toBe('got A ')
  expect(textOf((await answer('B')).body)).toBe('first got B ')
  expect(count.begun).toBe(2)
})

verifies('openai-responses.tool-choice', 'functions can be forbidden, forced and picked', async () => {
  const seen: unknown[] = []
  const { api } = await start(
    defineAgent('seer', async function* ({ config }) {
      seen.push(config.tools?.map((tool) => tool.function.name))
      yield text('seen')
    }),
  )
  await api.ask({ input: 'x', tools, tool_choice: 'none' })
  await api.ask({ input: 'x', tools, tool_choice: { type: 'allowed_tools', mode: 'auto', tools: [{ type: 'function', name: 'two' }] } })
  await api.ask({ input: 'x', tools: tools, tool_choice: { type: 'function', name: 'one' } })
  expect(seen).toEqual([undefined, ['two'], ['one', 'two', 'three']])
  const { status, body } = await api.ask({ input: 'x', tools, tool_choice: { type: 'function', name: 'nine' } })
  expect([status, body['error'].param]).toEqual([400, 'tool_choice'])
})

for (const approve of [true, false]) {
  verifies('openai-responses.approval', `an approval is ${approve ? 'given' : 'denied'} by the next request`, async () => {
    const { api } = await start()
    const { body: one } = await api.ask({ input: '/approve the launch' })
    const [asked] = one['output'] as Json[]
    expect(asked).toMatchObject({ type: 'mcp_approval_request', uamp: { message: 'the launch' } })
    const answer = { type: 'mcp_approval_response', approval_request_id: asked?.['id'], approve, reason: 'my reason' }
    const { body: two } = await api.ask({ previous_response_id: one['id'], input: [answer] })
    expect(textOf(two)).toBe(`${approve ? 'Approved' : 'Denied'}: the launch (my reason)`)
    expect((await api.items(two['id'] as string)).body['data'][0]).toMatchObject({ type: 'mcp_approval_response', approve })
  })
}

verifies(
  'openai-responses.approval',
  'a client that sends the whole conversation answers it too, and without a store it is denied',
  async () => {
    const { api } = await start()
    const { body: one } = await api.ask({ input: '/approve it' })
    const [asked] = one['output'] as Json[]
    const input = [
      { role: 'user', content: '/approve it' },
      asked,
      { type: 'mcp_approval_response', approval_request_id: asked?.['id'], approve: true },
    ]
    expect(textOf((await api.ask({ input })).body)).toBe('Approved: it')
    expect(textOf((await api.ask({ input: '/approve it', store: false })).body)).toBe('Denied: it (approval_unavailable)')
  },
)

verifies(
  'openai-responses.approval',
  'the same answer again gets the response that the first one began, and another is refused',
  async () => {
    const { api } = await start()
    const { body: one } = await api.ask({ input: '/approve it' })
    const [asked] = one['output'] as Json[]
    const answer = (approve: boolean) => ({ type: 'mcp_approval_response', approval_request_id: asked?.['id'], approve })
    const named = (approve: boolean) => ({ previous_response_id: one['id'], input: [answer(approve)] })
    const whole = (approve: boolean) => ({ input: [{ role: 'user', content: '/approve it' }, asked, answer(approve)] })
    const both = await Promise.all([api.ask(named(true)), api.ask(named(true))])
    expect(both.map(({ body }) => textOf(body))).toEqual(['Approved: it', 'Approved: it'])
    for (const body of [named(true), whole(true)]) expect((await api.ask(body)).body['id']).toBe(both[0]?.body['id'])
    expect(both[1]?.body['id']).toBe(both[0]?.body['id'])
    for (const body of [named(false), whole(false), { ...named(false), stream: true }]) {
      const { status, body: refusal } = await api.ask(body)
      expect([status, refusal['error']?.code]).toEqual([400, 'invalid_value'])
      expect(refusal['error'].message).toContain('answered already')
    }
    // In the middle of a conversation that goes on it is history.
    expect(textOf((await api.ask({ input: [...whole(false).input, { role: 'user', content: 'Hello' }] })).body)).toBe('You said: Hello')
  },
)

verifies('openai-responses.approval', 'of two different answers at once one counts, and the other is refused', async () => {
  const { api } = await start()
  const { body: one } = await api.ask({ input: '/approve it' })
  const [asked] = one['output'] as Json[]
  const answers = [true, false].map((approve) => ({ type: 'mcp_approval_response', approval_request_id: asked?.['id'], approve }))
  const both = await Promise.all(answers.map((answer) => api.ask({ previous_response_id: one['id'], input: [answer] })))
  expect(both.map(({ status }) => status).sort((a, b) => a - b)).toEqual([200, 400])
})

verifies('openai-responses.approval', 'an answer whose response came to nothing may be given again', async () => {
  const { api } = await start(
    defineAgent('clumsy', async function* (turn) {
      const { approved } = await turn.ask('x.approval.request', { message: 'May I?' })
      if (approved) throw new UampError('provider_error', 'It broke')
      yield text('No.')
    }),
  )
  const { body: one } = await api.ask({ input: 'go' })
  const answer = { type: 'mcp_approval_response', approval_request_id: (one['output'] as Json[])[0]?.['id'], approve: true }
  expect((await api.ask({ previous_response_id: one['id'], input: [answer] })).status).toBe(502)
  const { body: again } = await api.ask({ previous_response_id: one['id'], input: [answer] })
  expect(again['output']).toMatchObject([{ type: 'mcp_approval_request' }])
})

verifies('openai-responses.restart', 'a restart between two requests: the run that waits is run again with its answers', async () => {
  const data = mkdtempSync(join(tmpdir(), 'uamp-test-'))
  onTestFinished(() => rmSync(data, { recursive: true, force: true }))
  const { agent, count } = stepper()
  const once = async <T>(run: (api: ReturnType<typeof client>) => Promise<T>): Promise<T> => {
    const server = await serve([agent, demo()], { port: 0, data, log: () => undefined })
    try {
      return await run(client(server.url))
    } finally {
      await server.close({ graceMs: 0 })
    }
  }
  const model = 'stepper'
  const one = await once(async (api) => (await api.ask({ model, input: 'go', tools })).body)
  const two = await once(async (api) => {
    expect((await api.get(one['id'] as string)).body).toEqual(one)
    const { body } = await api.ask({ model, previous_response_id: one['id'], input: [result(callsIn(one)[0]?.['call_id'], 'ONE')], tools })
    expect(callsIn(body)).toHaveLength(2)
    return body
  })
  const three = await once(async (api) => {
    const input = callsIn(two).map(({ call_id, name }) => result(call_id, name))
    return (await api.ask({ model, previous_response_id: two['id'], input, tools })).body
  })
  expect(textOf(three)).toBe('first got ONE then two+three')
  expect(count.begun).toBe(3)
  const said = await once(async (api) => {
    expect((await api.get(two['id'] as string)).body).toEqual(two)
    const { body } = await api.ask({ model: 'demo', previous_response_id: three['id'], input: '/history' })
    return textOf(body).split('\n')
  })
  // Every call is there once, and its result after it.
  const places = said.flatMap((line) => line.match(/\[call \w+|^tool: \S+/g) ?? [])
  expect(places).toEqual(['[call one', 'tool: ONE', '[call two', '[call three', 'tool: two', 'tool: three'])
})
