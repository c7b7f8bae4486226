import { describe, expect, test } from 'vitest'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { text } from '../../src/core/agent-kit/drafts.ts'
import type { Draft } from '../../src/protocol/events.ts'
import { endless, scripted } from '../support/agents.ts'
import { verifies } from '../support/verifies.ts'
import { caller, careful, chooser, demo } from './agents.ts'
import { CARRIERS, Client, overStdio, type Heard } from './wire.ts'

const kinds = (client: Client): string[] => client.updates.map(({ sessionUpdate }) => sessionUpdate as string)
/** What came since the session was there, but for its commands and title. */
const story = (client: Client): Heard[] => client.updates.filter(({ sessionUpdate }) => !/commands|info/.test(sessionUpdate as string))

async function telling(drafts: readonly Draft[], capabilities: object = {}): Promise<Client> {
  const client = await Client.connect(overStdio([scripted(drafts)]))
  await client.initialize(capabilities)
  await client.say(await client.open(), 'go')
  return client
}

describe.each(Object.keys(CARRIERS))('over %s', (name) => {
  const connect = CARRIERS[name] as (typeof CARRIERS)[string]

  verifies(
    ['acp-1.initialize', 'acp-1.new', 'acp-1.after-new', 'acp-1.prompt', 'acp-1.updates-first', 'acp-1.commands', 'acp-1.title'],
    `a session, a prompt, its answer: ${name}`,
    async () => {
      const client = await Client.connect(await connect([demo()]))
      const { protocolVersion, agentInfo, agentCapabilities } = await client.initialize()
      expect(protocolVersion).toBe(1)
      expect(agentInfo).toMatchObject({ name: 'demo', version: expect.any(String) as string })
      expect(agentCapabilities).toMatchObject({
        loadSession: true,
        promptCapabilities: { image: true, audio: true, embeddedContext: true },
      })
      const session = await client.open()
      const { result } = await client.say(session, 'hello there')
      expect(result).toMatchObject({ stopReason: 'end_turn' })
      expect(client.text).toBe('You said: hello there')
      const { result: all } = await client.say(session, '/count 2000')
      expect(all.stopReason).toBe('end_turn')
      expect(client.text.endsWith(' 1999 2000')).toBe(true)
      expect(client.updates[0]).toMatchObject({ sessionUpdate: 'available_commands_update' })
      expect(client.heard.findIndex(({ result: answer }) => answer?.sessionId === session)).toBeLessThan(
        client.heard.findIndex(({ method }) => method === 'session/update'),
      )
      expect(client.updates.filter(({ sessionUpdate }) => sessionUpdate === 'session_info_update')).toEqual([
        { sessionUpdate: 'session_info_update', title: 'hello there' },
      ])
      // The answer is the last word.
      expect(client.heard.at(-1)?.['result']).toEqual(all)
    },
  )

  verifies(['acp-1.permission', 'acp-1.permission-always'], `a tool that must be allowed: ${name}`, async () => {
    const { tool, runs } = careful()
    const asked: Heard[] = []
    const choices = ['reject', 'allow-always']
    const client = await Client.connect(await connect([caller([tool])]), {
      'session/request_permission': (params) => {
        asked.push(params)
        return { outcome: { outcome: 'selected', optionId: choices[asked.length - 1] } }
      },
    })
    await client.initialize()
    const session = await client.open()
    await client.say(session, 'delete_all {"path":"/x"}')
    expect(runs()).toBe(0)
    await client.say(session, 'delete_all')
    await client.say(session, 'delete_all')
    expect(runs()).toBe(2)
    expect(asked).toHaveLength(2)
    expect(asked[0]).toMatchObject({
      sessionId: session,
      toolCall: {
        title: 'May "delete_all" run?',
        kind: 'delete',
        status: 'pending',
        rawInput: { path: '/x' },
        locations: [{ path: '/x' }],
      },
      options: [{ kind: 'allow_once' }, { kind: 'allow_always' }, { kind: 'reject_once' }],
    })
    // The call is known before it is asked about.
    const at = client.heard.findIndex(({ method }) => method === 'session/request_permission')
    expect(client.heard.findIndex(({ params }) => params?.update?.toolCallId === asked[0]?.['toolCall'].toolCallId)).toBeLessThan(at)
  })

  verifies('acp-1.cancel', `a cancel in mid-answer: ${name}`, async () => {
    const { agent, stopped } = endless()
    const client = await Client.connect(await connect([agent]))
    await client.initialize()
    const session = await client.open()
    client.send({ method: 'session/cancel', params: { sessionId: session } })
    const prompt = client.say(session, 'go')
    await client.update('agent_message_chunk')
    client.send({ method: 'session/cancel', params: { sessionId: session } })
    expect((await prompt)['result']).toEqual({ stopReason: 'cancelled' })
    await stopped
  })

  verifies('acp-1.cancel', `a prompt right after a cancel, or after the answer to what was cancelled: ${name}`, async () => {
    const client = await Client.connect(await connect([demo()]))
    await client.initialize()
    const sessionId = await client.open()
    for (const isAnswered of [true, false, true, false]) {
      const before = client.heard.length
      const prompt = client.say(sessionId, '/count 100000 1')
      await client.next((message) => message['method'] === 'session/update' && client.heard.indexOf(message) >= before)
      client.send({ method: 'session/cancel', params: { sessionId } })
      if (isAnswered) await prompt
      const next = client.say(sessionId, 'and now')
      expect((await prompt)['result']).toEqual({ stopReason: 'cancelled' })
      expect((await next)['result']).toMatchObject({ stopReason: 'end_turn' })
      expect(client.text).toMatch(/\dYou said: and now$/)
    }
  })
})

verifies(['acp-1.cancel', 'acp-1.always-answered'], 'of two prompts after a cancel the second is refused', async () => {
  const client = await Client.connect(overStdio([demo()]))
  await client.initialize()
  const sessionId = await client.open()
  const first = client.say(sessionId, '/count 100000 1')
  await client.update('agent_message_chunk')
  client.send({ method: 'session/cancel', params: { sessionId } })
  const [second, third] = [client.say(sessionId, '/tool slow {"ms":50}'), client.say(sessionId, 'three')]
  expect((await first)['result']).toEqual({ stopReason: 'cancelled' })
  expect((await third)['error']).toMatchObject({ code: -32600, data: { code: 'response_in_progress' } })
  expect((await second)['result']).toMatchObject({ stopReason: 'end_turn' })
})

verifies('acp-1.cancel-request', 'a request that is cancelled', async () => {
  const { agent, stopped } = endless()
  const client = await Client.connect(overStdio([agent]))
  await client.initialize()
  const sessionId = await client.open()
  const id = client.begin('session/prompt', { sessionId, prompt: [{ type: 'text', text: 'go' }] })
  await client.update('agent_message_chunk')
  client.send({ method: '$/cancel_request', params: { requestId: id } })
  expect((await client.next((message) => message['id'] === id))['result']).toEqual({ stopReason: 'cancelled' })
  await stopped
})

verifies('acp-1.always-answered', 'an agent that fails, and a prompt beside another', async () => {
  const client = await Client.connect(overStdio([demo()]))
  await client.initialize()
  const sessionId = await client.open()
  expect((await client.say(sessionId, '/error rate_limited'))['error']).toMatchObject({ code: -32005, data: { code: 'rate_limited' } })
  expect((await client.say(sessionId, '/error of_its_own'))['error']).toMatchObject({ code: -32603, data: { code: 'of_its_own' } })
  const first = client.say(sessionId, '/tool slow {"ms":100}')
  expect((await client.say(sessionId, 'me too'))['error']).toMatchObject({ code: -32600, data: { code: 'response_in_progress' } })
  expect((await first)['result']).toMatchObject({ stopReason: 'end_turn' })
  expect((await client.say(sessionId, 'and now'))['result']).toMatchObject({ stopReason: 'end_turn' })
  expect(client.text).not.toContain('me too')
})

verifies('acp-1.permission', 'a question without a tool, and clients that do not answer it', async () => {
  const outcomes: unknown[] = [
    { outcome: { outcome: 'cancelled' } },
    { outcome: { outcome: 'selected', optionId: 'nothing' } },
    { nonsense: true },
  ]
  const client = await Client.connect(overStdio([demo()]), {
    'session/request_permission': () => outcomes.shift() ?? Promise.reject(new Error('no')),
  })
  await client.initialize()
  const session = await client.open()
  for (let n = 0; n < 4; n++) await client.say(session, '/approve Go?')
  expect(client.text.match(/Denied/g)).toHaveLength(4)
  expect(client.text).not.toContain('Approved')
})

verifies(['acp-1.tool-calls', 'acp-1.thoughts'], 'a tool call with arguments in pieces, progress and a failure', async () => {
  const call = (args: string): Draft => ({
    type: 'response.delta',
    delta: { type: 'tool_call', tool_call: { id: 'c1', name: 'search', arguments: args } },
  })
  const client = await telling([
    { type: 'thinking', content: 'Hm.', is_delta: true },
    text('Let me see. '),
    call('{"query":'),
    call('"cats"}'),
    { type: 'response.delta', delta: { type: 'tool_progress', tool_progress: { call_id: 'c1', text: '50 %' } } },
    { type: 'response.delta', delta: { type: 'tool_result', tool_result: { call_id: 'c1', result: '{"found":0}', is_error: true } } },
    text('Nothing.'),
  ])
  const ids = story(client).flatMap(({ messageId }) => (messageId === undefined ? [] : [messageId as string]))
  expect(new Set(ids).size).toBe(3)
  expect(story(client).map(({ messageId: _, ...update }) => update)).toEqual([
    { sessionUpdate: 'agent_thought_chunk', content: { type: 'text', text: 'Hm.' } },
    { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: 'Let me see. ' } },
    { sessionUpdate: 'tool_call', toolCallId: 'c1', title: 'search', name: 'search', kind: 'search', status: 'pending' },
    { sessionUpdate: 'tool_call_update', toolCallId: 'c1', status: 'in_progress', title: 'search: cats', rawInput: { query: 'cats' } },
    {
      sessionUpdate: 'tool_call_update',
      toolCallId: 'c1',
      status: 'in_progress',
      content: [{ type: 'content', content: { type: 'text', text: '50 %' } }],
    },
    {
      sessionUpdate: 'tool_call_update',
      toolCallId: 'c1',
      status: 'failed',
      rawOutput: { found: 0 },
      content: [{ type: 'content', content: { type: 'text', text: '{"found":0}' } }],
    },
    { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: 'Nothing.' } },
  ])
})

verifies('acp-1.diffs', 'a call that changes a file, and what an agent says of its own call', async () => {
  const args = JSON.stringify({ path: '/project/a.ts', oldText: 'a', newText: 'b', line: 3 })
  const content = [{ type: 'diff', path: '/project/b.ts', oldText: null, newText: 'x' }]
  const client = await telling([
    { type: 'response.delta', delta: { type: 'tool_call', tool_call: { id: 'c1', name: 'edit_file', arguments: args } } },
    { type: 'response.delta', delta: { type: 'tool_result', tool_result: { call_id: 'c1', result: 'ok' } } },
    { type: 'response.delta', delta: { type: 'tool_call', tool_call: { id: 'c2', name: 'patch', arguments: '{}' } } },
    {
      type: 'response.delta',
      delta: { type: 'tool_result', tool_result: { call_id: 'c2', result: '', data: { acp: { content, kind: 'move', title: 'Moved' } } } },
    },
  ])
  const diff = [{ type: 'diff', path: '/project/a.ts', oldText: 'a', newText: 'b' }]
  const of = (id: string): Heard[] => story(client).filter(({ toolCallId }) => toolCallId === id)
  expect(of('c1')[0]).toMatchObject({ kind: 'edit' })
  expect(of('c1')[1]).toMatchObject({ content: diff, locations: [{ path: '/project/a.ts', line: 3 }] })
  expect(of('c1')[2]).toMatchObject({ status: 'completed', content: diff })
  expect(of('c2').at(-1)).toMatchObject({ status: 'completed', content, kind: 'move', title: 'Moved' })
})

verifies('acp-1.plan', 'a plan', async () => {
  const client = await telling([
    {
      type: 'x.plan',
      entries: [
        { content: 'Look', status: 'completed', priority: 'high' },
        { content: 'Do', status: 'pending' },
      ],
    },
  ])
  expect(story(client)).toEqual([
    {
      sessionUpdate: 'plan',
      entries: [
        { content: 'Look', status: 'completed', priority: 'high' },
        { content: 'Do', status: 'pending', priority: 'medium' },
      ],
    },
  ])
})

verifies('acp-1.usage', 'usage where the window is known, and nothing where it is not', async () => {
  const spend = (total_cost: number): Draft => ({
    type: 'usage.delta',
    delta: { input_tokens: 10, output_tokens: 5, cost: { total_cost } },
  })
  const agent = defineAgent('spender', async function* () { yield* [spend(0.5), spend(0.25), text('x')] }, { capabilities: { context_window: 1000 } }) // prettier-ignore
  const client = await Client.connect(overStdio([agent]))
  await client.initialize()
  const { result } = await client.say(await client.open(), 'go')
  expect(story(client).filter(({ sessionUpdate }) => sessionUpdate === 'usage_update')).toEqual([
    { sessionUpdate: 'usage_update', used: 15, size: 1000, cost: { amount: 0.5, currency: 'USD' } },
    { sessionUpdate: 'usage_update', used: 15, size: 1000, cost: { amount: 0.75, currency: 'USD' } },
  ])
  expect(result._meta.uamp.usage).toMatchObject({ input_tokens: 20, output_tokens: 10 })
  expect(kinds(await telling([spend(1), text('x')]))).not.toContain('usage_update')
})

verifies('acp-1.content', 'every kind of block comes to the agent, and media goes out', async () => {
  const client = await Client.connect(overStdio([chooser]))
  await client.initialize()
  const sessionId = await client.open()
  await client.ask('session/prompt', {
    sessionId,
    prompt: [
      { type: 'text', text: 'Look at ' },
      { type: 'resource_link', uri: 'file:///project/a.ts', name: 'a.ts' },
      { type: 'text', text: ' and ' },
      { type: 'resource', resource: { uri: 'file:///project/b.ts', text: 'let b' } },
      { type: 'resource', resource: { uri: 'file:///project/c.bin', blob: 'AAAA', mimeType: 'application/x-c' } },
      { type: 'image', data: 'aaaa', mimeType: 'image/png' },
      { type: 'audio', data: 'bbbb', mimeType: 'audio/wav' },
    ],
  })
  const { messages } = JSON.parse(client.text) as { messages: Heard[] }
  expect(messages[0]?.['content_items']).toMatchObject([
    {
      type: 'text',
      text: 'Look at [@a.ts](file:///project/a.ts) and [@b.ts](file:///project/b.ts)[@c.bin](file:///project/c.bin)\n<context ref="file:///project/b.ts">\nlet b\n</context>',
    },
    { type: 'file', file: 'AAAA', filename: 'c.bin', mime_type: 'application/x-c' },
    { type: 'image', image: 'aaaa', format: 'png' },
    { type: 'audio', audio: 'bbbb', format: 'wav' },
  ])
  const shown = await telling([
    { type: 'response.delta', delta: { type: 'image', image: 'iVBORaaa', format: 'png' } },
    { type: 'response.delta', delta: { type: 'audio', audio: 'aaaa', format: 'wav', content_id: 'x' } },
    { type: 'response.delta', delta: { type: 'file', file: 'aaaa', filename: 'f.pdf', mime_type: 'application/pdf', content_id: 'y' } },
    { type: 'response.delta', delta: { type: 'video', video: { url: 'https://example.com/v.mp4' } } },
  ])
  expect(story(shown).map(({ content }) => content as Heard)).toEqual([
    { type: 'image', data: 'iVBORaaa', mimeType: 'image/png' },
    { type: 'audio', data: 'aaaa', mimeType: 'audio/wav' },
    { type: 'resource', resource: { uri: 'uamp://content/y', blob: 'aaaa', mimeType: 'application/pdf' } },
    { type: 'resource_link', uri: 'https://example.com/v.mp4', name: 'video', mimeType: 'video/mp4' },
  ])
})

verifies('acp-1.content', 'all words of an agent that speaks are told, and once', async () => {
  const whole = (transcript: string): Draft => ({
    type: 'response.delta',
    delta: { type: 'audio', audio: 'aaaa', format: 'wav', content_id: 'x', transcript },
  })
  const spoken: readonly Draft[][] = [
    [whole('One two')],
    [{ type: 'transcript.delta', transcript: 'One' }, whole('One two')],
    [{ type: 'transcript.delta', transcript: 'One' }, { type: 'transcript.done', transcript: 'One two' }, whole('One two')],
    [{ type: 'transcript.done', transcript: 'One two' }],
  ]
  for (const drafts of spoken) {
    const shown = story(await telling(drafts)).map(({ content }) => content as Heard)
    expect(shown.map(({ text = '' }) => text as string).join('')).toBe('One two')
  }
})

verifies('acp-1.prompt', 'why it stopped, and an agent that says everything with its end', async () => {
  const ended = (stop_reason: string): Draft[] => [
    {
      type: 'response.done',
      response: { id: '', status: 'completed', output: [{ type: 'text', text: 'All at once' }], extensions: { uamp: { stop_reason } } },
    },
  ]
  for (const [reason, told] of [
    ['length', 'max_tokens'],
    ['content_filter', 'refusal'],
    ['other', 'end_turn'],
  ] as const) {
    // prettier-ignore
    const client = await telling(ended(reason))
    expect(client.heard.at(-1)?.['result'].stopReason).toBe(told)
    expect(client.text).toBe('All at once')
  }
})

verifies('acp-1.extensibility', 'events that ACP has no word for, to those who want them', async () => {
  const custom: Draft = { type: 'x.custom', name: 'weather', value: 'fine' }
  const others = (client: Client): Heard[] => client.heard.filter(({ method }) => method !== undefined && method !== 'session/update')
  expect(others(await telling([custom]))).toEqual([])
  const [told] = others(await telling([custom], { _meta: { uamp: { events: true } } }))
  expect(told).toMatchObject({ method: '_uamp/event', params: { event: { type: 'x.custom', name: 'weather', value: 'fine' } } })
})

verifies('acp-1.prompt', 'a reason that only ACP has, of an ACP agent elsewhere', async () => {
  const extensions = { acp: { stopReason: 'max_turn_requests' }, uamp: { stop_reason: 'length' } }
  const client = await telling([{ type: 'response.done', response: { id: '', status: 'completed', output: [], extensions } }])
  expect(client.heard.at(-1)?.['result'].stopReason).toBe('max_turn_requests')
})

test('what an agent says in a way that nobody knows is left out, and the answer ends as it does', async () => {
  const unknown = { type: 'response.delta', delta: { type: 'hologram', hologram: 'x' } } as unknown as Draft
  const empty = { type: 'response.delta', delta: { type: 'image', content_id: 'i', image: { data: 'AA==' } } } as unknown as Draft
  const client = await Client.connect(overStdio([scripted([text('before '), unknown, empty, text('after')])]))
  await client.initialize()
  const { result } = await client.say(await client.open(), 'go')
  expect(result).toMatchObject({ stopReason: 'end_turn' })
  expect(client.text).toBe('before after')
})
