import { expect } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { text } from '../../src/core/agent-kit/drafts.ts'
import { remoteEvents } from '../../src/remotes/events/index.ts'
import { ask, stream } from '../openai/support.ts'
import { endless, mirror, scripted } from '../support/agents.ts'
import { startServer } from '../support/server.ts'
import { mirrored, say, textOf } from '../support/talk.ts'
import { overSse, overWebSocket } from '../support/wire.ts'
import { begin, plain } from './plain.ts'
import { verifies } from '../support/verifies.ts'

const DOUBLE = { type: 'function', function: { name: 'double', parameters: { type: 'object', properties: { n: { type: 'number' } } } } }

/** The demo on one server, and on another one the same demo behind it. */
async function pair() {
  const there = await startServer(demo())
  const here = await startServer(remoteEvents({ name: 'far', url: there.url, agent: 'demo' }))
  return { there, here }
}

const COMMANDS = [
  'hello there',
  '/count 5',
  '/think life',
  '/tool add {"a":1,"b":2}',
  '/tool slow {"ms":20}',
  '/tool nothing',
  '/progress 2',
  '/image',
  '/file',
  '/audio 0.2',
  '/video',
  '/json',
  '/state',
  '/error rate_limited',
  '/error of_its_own',
  '/delegate it',
  '/big 200000',
  '/help',
]

for (const command of COMMANDS)
  verifies('remote-events.same', `${command} behind a remote is what it is directly`, async () => {
    const { there, here } = await pair()
    const [direct, remote] = await Promise.all([overWebSocket(there.url), overWebSocket(here.url)])
    await Promise.all([direct.open(), remote.open()])
    expect(plain(await say(remote, command))).toEqual(plain(await say(direct, command)))
  })

for (const [binding, connect] of Object.entries({ WebSocket: overWebSocket, SSE: overSse }))
  verifies('remote-events.conversation', `the conversation goes along, and the agent there sees it: ${binding}`, async () => {
    const { here } = await pair()
    const wire = await connect(here.url)
    await wire.open({ session: { modalities: ['text'], instructions: 'Be kind' } })
    await say(wire, 'one')
    await say(wire, '/tool add {"a":1,"b":2}')
    const history = textOf(await say(wire, '/history'))
    expect(history).toContain('user: one\nassistant: You said: one\nuser: /tool add')
    expect(history).toContain('[call add {"a":1,"b":2}]')
    expect(history).toContain('tool: {"sum":3}')
  })

verifies('remote-events.settings', 'settings, tools and capabilities of the client reach the agent there', async () => {
  const there = await startServer(mirror)
  const here = await startServer(remoteEvents({ name: 'far', url: `${there.url}/agents/mirror/` }))
  const wire = await overWebSocket(here.url)
  const settings = { instructions: 'Be kind', tools: [DOUBLE], response_format: { type: 'json_object' } }
  await wire.open({ session: { modalities: ['text'], ...settings, extensions: { openai: { temperature: 0.5 } } } })
  const { config, messages, client } = mirrored(await say(wire, 'hi', { create: { response: { instructions: 'Be brief' } } }))
  expect(config).toMatchObject({ ...settings, instructions: 'Be brief', extensions: { openai: { temperature: 0.5 } } })
  expect(messages).toEqual([{ role: 'user', content: 'hi', content_items: [{ type: 'text', text: 'hi' }] }])
  expect(client).toMatchObject({ id: 'test', modalities: ['text', 'image', 'audio', 'video', 'file'] })
})

verifies('remote-events.tools', 'a call of a client tool is asked here and answered there', async () => {
  const { here } = await pair()
  const wire = await overWebSocket(here.url)
  await wire.open({ session: { modalities: ['text'], tools: [DOUBLE] } })
  const answer = await begin(wire, '/tool double {"n":4}')
  const call = await wire.next('tool.call')
  expect(call).toMatchObject({ name: 'double', arguments: '{"n":4}' })
  expect(await wire.send({ type: 'tool.result', call_id: call['call_id'], result: '{"n":8}' })).toBeUndefined()
  const events = await answer.end()
  expect(textOf(events)).toBe('double answered: {"n":8}')
  expect(events.at(-1)).toMatchObject({ type: 'response.done', response: { status: 'completed' } })
})

verifies('remote-events.tools', 'calls that are made together are asked together', async () => {
  const both = defineAgent('both', async function* (turn) {
    const answers = await Promise.all(['a', 'b'].map((name) => turn.ask('tool.call', { name, arguments: '{}' })))
    yield text(answers.map(({ result }) => result).join(' '))
  })
  const there = await startServer(both)
  const here = await startServer(remoteEvents({ name: 'far', url: there.url }))
  const wire = await overWebSocket(here.url)
  await wire.open()
  const answer = await begin(wire, 'go')
  const [first, second] = [await wire.next('tool.call'), await wire.next('tool.call')]
  for (const call of [second, first]) await wire.send({ type: 'tool.result', call_id: call['call_id'], result: `${call['name']}!` })
  expect(textOf(await answer.end())).toBe('a! b!')
})

verifies('remote-events.approvals', 'approvals are asked here, and denied there when nobody here understands them', async () => {
  const { here } = await pair()
  const wire = await overWebSocket(here.url)
  await wire.open()
  const answer = await begin(wire, '/approve the plan')
  const request = await wire.next('x.approval.request')
  expect(request).toMatchObject({ message: 'the plan' })
  await wire.send({ type: 'x.approval.response', approval_id: request['approval_id'], approved: true })
  expect(textOf(await answer.end())).toBe('Approved: the plan')
  const asked = { model: 'far', messages: [{ role: 'user', content: '/approve the plan' }] }
  const { body } = await ask(`${here.url}/v1/chat/completions`, asked)
  expect(body.choices[0].message.content).toBe('Denied: the plan (approval_unavailable)')
})

verifies('remote-events.one-way', 'over completions its questions are tool calls, and the next request has the answer', async () => {
  const { here } = await pair()
  const url = `${here.url}/v1/chat/completions`
  const messages = [{ role: 'user', content: '/tool double {"n":4}' }]
  const first = await stream(url, { model: 'far', messages, tools: [DOUBLE] })
  const calls = first.chunks.flatMap(({ choices }) => choices[0]?.delta.tool_calls ?? [])
  expect(calls).toMatchObject([{ function: { name: 'double', arguments: '{"n":4}' } }])
  expect(first.chunks.flatMap(({ choices }) => choices[0]?.finish_reason ?? [])).toEqual(['tool_calls'])
  const { index: _, ...call } = calls[0]
  const next = [
    ...messages,
    { role: 'assistant', content: null, tool_calls: [call] },
    { role: 'tool', tool_call_id: call.id, content: '8' },
  ]
  const second = await ask(url, { model: 'far', messages: next, tools: [DOUBLE] })
  expect(second.body.choices[0]).toMatchObject({ finish_reason: 'stop', message: { content: 'double answered: 8' } })
})

verifies('remote-events.cancel', 'a cancel here stops the agent there, and so does leaving', async () => {
  for (const leave of ['response.cancel', 'session.end']) {
    const { agent, stopped } = endless()
    const there = await startServer(agent)
    const here = await startServer(remoteEvents({ name: 'far', url: there.url }))
    const wire = await overWebSocket(here.url)
    await wire.open()
    await wire.send({ type: 'input.text', text: 'go' })
    await wire.send({ type: 'response.create' })
    await wire.next('response.delta')
    await wire.send({ type: leave })
    await wire.next('response.cancelled')
    await stopped
    await expect.poll(() => there.gateway.openSessions).toBe(0)
  }
})

verifies('remote-events.sessions', 'its sessions there end with its turns', async () => {
  const { there, here } = await pair()
  const wire = await overWebSocket(here.url)
  await wire.open()
  for (const word of ['one', 'two', 'three']) await say(wire, word)
  await expect.poll(() => there.gateway.openSessions).toBe(0)
})

verifies('remote-events.end', 'stop reasons, signatures and refusals come through', async () => {
  const response = { id: '', status: 'completed' as const, output: [], extensions: { uamp: { stop_reason: 'length' } } }
  const there = await startServer(
    scripted([
      { type: 'response.delta', delta: { type: 'text', text: 'No.', refusal: true } },
      { type: 'usage.delta', delta: { input_tokens: 3, output_tokens: 1, cache_read: 2, cost: { total_cost: 0.5, currency: 'USD' } } },
      { type: 'response.done', response, signature: 'signed' },
    ]),
  )
  const here = await startServer(remoteEvents({ name: 'far', url: there.url }))
  const wire = await overWebSocket(here.url)
  await wire.open()
  expect((await say(wire, 'hi')).at(-1)).toMatchObject({
    signature: 'signed',
    response: {
      output: [{ type: 'text', text: 'No.', refusal: true }],
      usage: { input_tokens: 3, output_tokens: 1, cache_read: 2, cost: { total_cost: 0.5 } },
      extensions: { uamp: { stop_reason: 'length' } },
    },
  })
})

verifies('remote-events.capabilities', 'what it can do is told when it is known, and when it changes', async () => {
  const there = await startServer(demo())
  const here = await startServer(remoteEvents({ name: 'far', url: there.url }))
  const wire = await overWebSocket(here.url)
  await wire.open()
  await say(wire, 'hi')
  const told = () => wire.heard.filter(({ type }) => type === 'capabilities').map((event) => event['capabilities'])
  expect(told()).toMatchObject([
    { id: 'far', supports_thinking: false },
    { id: 'far', supports_thinking: true },
  ])
  await say(wire, 'hi again')
  expect(told()).toHaveLength(2)
  there.agents.add(defineAgent('demo', demo().run, { capabilities: { modalities: ['text'], context_window: 7 } }))
  await say(wire, 'and now')
  expect(told()[2]).toMatchObject({ id: 'far', context_window: 7 })
  expect(here.agents.get('far')?.capabilities.context_window).toBe(7)
})

const UNREACHABLE: readonly [string, object, string, RegExp][] = [
  ['a server that is not there', { url: 'http://127.0.0.1:9' }, 'provider_error', /cannot be reached/],
  ['a WebSocket that is not there', { url: 'ws://127.0.0.1:9' }, 'provider_error', /cannot be reached, or opens no WebSocket/],
  ['an agent that is not there', { agent: 'nobody' }, 'not_found', /There is no agent "nobody"/],
  ['a token that is wrong', { token: 'wrong' }, 'provider_error', /answered 401$/],
]

for (const [what, options, code, message] of UNREACHABLE)
  verifies('remote-events.unreachable', `${what} is told as an error`, async () => {
    const there = await startServer(demo(), { tokens: { alice: 'right-0123456789abcdef' } })
    const here = await startServer(remoteEvents({ name: 'far', url: there.url, token: 'right-0123456789abcdef', ...options }))
    const wire = await overWebSocket(here.url)
    await wire.open()
    const end = (await say(wire, 'hi')).at(-1)
    expect(end).toMatchObject({ type: 'response.error', error: { code, message: expect.stringMatching(message) } })
  })

verifies('remote-events.cut', 'a server that goes away in the middle of an answer ends it as an error', async () => {
  const there = await startServer(demo())
  const here = await startServer(remoteEvents({ name: 'far', url: there.url }))
  const wire = await overWebSocket(here.url)
  await wire.open()
  const answer = await begin(wire, '/count 100000 20')
  await wire.next('response.delta')
  await there.close({ graceMs: 0 })
  expect((await answer.end()).at(-1)).toMatchObject({ type: 'response.error' })
})

verifies('remote-events.one-way', 'over Responses the turn waits for the answer that the next request brings', async () => {
  const { here } = await pair()
  const url = `${here.url}/v1/responses`
  const tools = [{ type: 'function', name: 'double', parameters: DOUBLE.function.parameters }]
  const first = await ask(url, { model: 'far', input: '/tool double {"n":4}', tools })
  const call = first.body.output.find(({ type }: { type: string }) => type === 'function_call')
  expect(call).toMatchObject({ name: 'double', arguments: '{"n":4}' })
  const input = [{ type: 'function_call_output', call_id: call.call_id, output: '8' }]
  const second = await ask(url, { model: 'far', previous_response_id: first.body.id, input, tools })
  expect(second.body.output.at(-1)).toMatchObject({ type: 'message', content: [{ text: 'double answered: 8' }] })
})
