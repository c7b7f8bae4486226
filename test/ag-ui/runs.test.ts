import { expect } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { state, text } from '../../src/core/agent-kit/drafts.ts'
import { mirror, scripted, type Mirrored } from '../support/agents.ts'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'
import { everything } from './agents.ts'
import { joins, post, refusal, run, user, type Heard } from './wire.ts'

/** One event as a line, without the ids that are new in every run. */
function line(event: Heard): string {
  const { type, messageId, toolCallId: _, parentMessageId: __, threadId: ___, runId: ____, metadata, ...rest } = event
  const uamp = metadata?.uamp as object | undefined
  const known = uamp && !('session_id' in uamp) ? { metadata: { uamp } } : {}
  const place = typeof messageId === 'string' ? messageId.replace(/^resp_[^.]+/, '') : ''
  const fields = { ...rest, ...known }
  return [type, place, Object.keys(fields).length > 0 ? short(fields) : ''].filter((part) => part !== '').join(' ')
}

function short(fields: object): string {
  return JSON.stringify(fields)
    .replaceAll(/(ask_)?resp_[0-9a-f-]{36}(_\d)?/g, 'id')
    .replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, 'uuid')
    .replaceAll(/"(audio|file|video|image)":"[^"]{20,}"/g, '"$1":"…"')
}

const words = (place: number, ...said: string[]) => [
  `TEXT_MESSAGE_START .${place} {"role":"assistant"}`,
  ...said.map((delta) => `TEXT_MESSAGE_CONTENT .${place} ${JSON.stringify({ delta })}`),
  `TEXT_MESSAGE_END .${place}`,
]
const ok = (input: number, output: number) => {
  const usage = [{ inputTokens: input, outputTokens: output, totalTokens: input + output }]
  return `RUN_FINISHED ${JSON.stringify({ outcome: { type: 'success' }, usage })}`
}

/** The whole of a run between its first event and its end. */
const TRANSCRIPTS: readonly { said: string; events: string[]; verifies: string }[] = [
  { verifies: 'ag-ui.text', said: 'Hello', events: [...words(0, 'You', ' said:', ' Hello'), ok(2, 3)] },
  { verifies: 'ag-ui.text', said: '/count 3', events: [...words(0, '1', ' 2', ' 3'), ok(2, 3)] },
  {
    verifies: 'ag-ui.reasoning',
    said: '/think it',
    events: [
      'REASONING_START .0',
      'REASONING_MESSAGE_START .0 {"role":"reasoning"}',
      'REASONING_MESSAGE_CONTENT .0 {"delta":"Someone wants me to think about"}',
      'REASONING_MESSAGE_CONTENT .0 {"delta":" \\"it\\"."}',
      'REASONING_MESSAGE_CONTENT .0 {"delta":" I have thought about it."}',
      'REASONING_MESSAGE_END .0',
      'REASONING_END .0',
      ...words(1, 'I', ' thought', ' about:', ' it'),
      ok(3, 4),
    ],
  },
  {
    verifies: 'ag-ui.tools',
    said: '/tool add {"a":1,"b":2}',
    events: [
      'TOOL_CALL_START {"toolCallName":"add"}',
      'TOOL_CALL_ARGS {"delta":"{\\"a\\":1,\\"b\\":2}"}',
      'TOOL_CALL_END',
      'TOOL_CALL_RESULT .1 {"content":"{\\"sum\\":3}","role":"tool"}',
      ...words(2, 'add', ' answered:', ' {"sum":3}'),
      ok(6, 3),
    ],
  },
  {
    verifies: 'ag-ui.state',
    said: '/state',
    events: [
      'STATE_SNAPSHOT {"snapshot":{"count":0,"items":[]}}',
      ...[1, 2, 3].map((n) => {
        const delta = [
          { op: 'replace', path: '/count', value: n },
          { op: 'add', path: '/items/-', value: `item ${n}` },
        ]
        return `STATE_DELTA ${JSON.stringify({ delta })}`
      }),
      ...words(0, 'The', ' state', ' went', ' from', ' 0', ' to', ' 3.'),
      ok(2, 7),
    ],
  },
  {
    verifies: 'ag-ui.activity',
    said: '/progress 1',
    events: [
      'ACTIVITY_SNAPSHOT .progress.response {"activityType":"uamp.progress","content":{"target":"response","stage":"working","message":"Step 1 of 1","percent":100,"step":1,"total_steps":1}}',
      ...words(0, 'Done', ' in', ' 1', ' steps.'),
      ok(3, 4),
    ],
  },
  {
    verifies: 'ag-ui.activity',
    said: '/image',
    events: [
      'ACTIVITY_SNAPSHOT .0 {"activityType":"uamp.content","content":{"item":{"type":"image","image":"…","format":"png","alt_text":"One orange pixel","content_id":"uuid","description":"One orange pixel"}}}',
      ...words(1, 'Here', ' is', ' an', ' image.'),
      ok(2, 4),
    ],
  },
  {
    verifies: 'ag-ui.activity',
    said: '/audio 0.1',
    events: [
      'CUSTOM {"name":"uamp.audio.delta","value":{"audio":"…","format":"pcm16"}}',
      'TEXT_MESSAGE_START .0 {"role":"assistant"}',
      'TEXT_MESSAGE_CONTENT .0 {"delta":"A"}',
      'CUSTOM {"name":"uamp.audio.done","value":{"duration_ms":100}}',
      'TEXT_MESSAGE_CONTENT .0 {"delta":" tone of 0.1 s."}',
      'TEXT_MESSAGE_END .0',
      'ACTIVITY_SNAPSHOT .1 {"activityType":"uamp.content","content":{"item":{"type":"audio","audio":"…","format":"pcm16","duration_ms":100,"transcript":"A tone of 0.1 s.","content_id":"uuid","description":"A tone"}}}',
      ok(3, 5),
    ],
  },
  {
    verifies: 'ag-ui.interrupt',
    said: '/approve it',
    events: [
      'RUN_FINISHED {"outcome":{"type":"interrupt","interrupts":[{"id":"id","reason":"confirmation","message":"it","responseSchema":{"type":"object","properties":{"approved":{"type":"boolean"},"option":{"type":"string"},"reason":{"type":"string"}},"required":["approved"]}}]}}',
    ],
  },
  {
    verifies: 'ag-ui.error',
    said: '/error teapot',
    events: ['RUN_ERROR {"message":"You asked me to fail with \\"teapot\\"","code":"teapot"}'],
  },
  {
    verifies: 'ag-ui.error',
    said: '/delegate x',
    events: ['RUN_ERROR {"message":"Delegation is not supported yet","code":"not_supported"}'],
  },
  {
    verifies: 'ag-ui.text',
    said: '/json',
    events: [...words(0, '{"answer":"demo"', ',"ok":true}'), 'RUN_FINISHED {"outcome":{"type":"success"}}'],
  },
]

for (const { said, events, verifies: id } of TRANSCRIPTS) {
  for (const protocolVersion of ['1.0', undefined]) {
    verifies(id as 'ag-ui.text', `${protocolVersion ?? '0.0.x'}: ${said}`, async () => {
      const { url } = await startServer(demo())
      const heard = await run(url, said, { input: { threadId: 't', runId: 'r', protocolVersion } })
      const uamp = { session_id: expect.stringMatching(/^sess_/), response_id: expect.stringMatching(/^resp_/) }
      const version = protocolVersion === undefined ? {} : { protocolVersion }
      expect(heard.events[0]).toEqual({ type: 'RUN_STARTED', threadId: 't', runId: 'r', ...version, metadata: { uamp } })
      expect(heard.events.slice(1).map(line)).toEqual(events)
    })
  }
}

verifies('ag-ui.tools', 'a tool that fails says so', async () => {
  const { url } = await startServer(demo())
  const { events } = await run(url, '/tool add {"a":1}')
  const result = events.find(({ type }) => type === 'TOOL_CALL_RESULT')
  expect(result).toMatchObject({
    content: expect.stringContaining('"b" is missing'.replaceAll('"', '\\"')),
    metadata: { uamp: { is_error: true } },
  })
})

verifies(
  ['ag-ui.order', 'ag-ui.activity', 'ag-ui.subagents', 'ag-ui.reasoning', 'ag-ui.usage'],
  'an agent that says everything',
  async () => {
    const { url } = await startServer(everything)
    const { events } = await run(url, 'go')
    expect(events.slice(1).map(line)).toEqual([
      'STEP_STARTED {"stepName":"think"}',
      'REASONING_START .0',
      'REASONING_MESSAGE_START .0 {"role":"reasoning"}',
      'REASONING_MESSAGE_CONTENT .0 {"delta":"Let me see"}',
      'REASONING_ENCRYPTED_VALUE {"subtype":"message","entityId":"id.0","encryptedValue":"signed"}',
      'REASONING_MESSAGE_END .0',
      'REASONING_END .0',
      'STEP_FINISHED {"stepName":"think"}',
      'STATE_SNAPSHOT {"snapshot":{"count":0}}',
      'STATE_DELTA {"delta":[{"op":"replace","path":"/count","value":1},{"op":"add","path":"/items","value":[]}]}',
      'ACTIVITY_SNAPSHOT search-1 {"activityType":"SEARCH","content":{"query":"x"}}',
      'ACTIVITY_DELTA search-1 {"activityType":"SEARCH","patch":[{"op":"add","path":"/found","value":2}]}',
      'ACTIVITY_SNAPSHOT .plan {"activityType":"PLAN","content":{"entries":[{"content":"one","status":"pending"}]}}',
      'SUBAGENT_STARTED {"subagentRunId":"sub-1","name":"helper"}',
      'SUBAGENT_FINISHED {"subagentRunId":"sub-1","result":{"ok":true},"outcome":{"type":"success"}}',
      'CUSTOM {"name":"mine","value":{"a":null}}',
      'RAW {"event":{"from":"elsewhere"},"source":"other"}',
      'MESSAGES_SNAPSHOT {"messages":[{"id":"id.1","role":"user","content":"earlier"},{"id":"id.2","role":"assistant","content":"answered"}]}',
      'TOOL_CALL_START {"toolCallName":"look"}',
      'TOOL_CALL_ARGS {"delta":"{\\"a\\":"}',
      'TOOL_CALL_ARGS {"delta":"1}"}',
      'ACTIVITY_SNAPSHOT .progress.c1 {"activityType":"uamp.tool_progress","content":{"call_id":"c1","text":"half"}}',
      'TOOL_CALL_END',
      'TOOL_CALL_RESULT .4 {"content":[{"type":"text","text":"seen"},{"type":"image","source":{"type":"data","value":"aGk=","mimeType":"image/png"}}],"role":"tool"}',
      ...words(5, 'Done.'),
      'TEXT_MESSAGE_START .6 {"role":"assistant","metadata":{"uamp":{"refusal":true}}}',
      'TEXT_MESSAGE_CONTENT .6 {"delta":" But not that."}',
      'TEXT_MESSAGE_END .6',
      'RUN_FINISHED {"outcome":{"type":"success"},"usage":[{"inputTokens":110,"outputTokens":5,"totalTokens":115,"reasoningTokens":2,"cachedInputTokens":100}]}',
    ])
  },
)

verifies(['ag-ui.profile', 'ag-ui.subagents'], 'an agent that says everything, to a client of 0.0.x', async () => {
  const { url } = await startServer(everything)
  const { events, types } = await run(url, 'go', { input: { protocolVersion: undefined } })
  expect(types.filter((type) => type.startsWith('SUBAGENT'))).toEqual([])
  const lines = events.map(line)
  expect(lines).toContain('ACTIVITY_SNAPSHOT sub-1 {"activityType":"uamp.subagent","content":{"name":"helper","status":"working"}}')
  const result = events.find(({ type }) => type === 'TOOL_CALL_RESULT')
  expect(result).toMatchObject({ content: 'seen', metadata: { uamp: { content: [{ type: 'text' }, { type: 'image' }] } } })
})

verifies('ag-ui.sse', 'a text with line breaks stays in one line of data', async () => {
  const { url } = await startServer(scripted([text('a\r\nb\n\nc\u2028'), text('')]))
  const { said, text: wire, types } = await run(url, 'go')
  expect(said).toBe('a\r\nb\n\nc\u2028')
  expect(types.filter((type) => type === 'TEXT_MESSAGE_CONTENT')).toHaveLength(1)
  expect(wire).not.toContain('[DONE]')
})

verifies('ag-ui.order', 'an agent that only tells its whole output with its end', async () => {
  const output = [{ type: 'text' as const, text: 'All at once' }]
  const { url } = await startServer(scripted([{ type: 'response.done', response: { id: '', status: 'completed', output } }]))
  expect((await run(url, 'go')).said).toBe('All at once')
})

verifies(['ag-ui.order', 'ag-ui.profile'], 'an agent that was cancelled elsewhere', async () => {
  const { url } = await startServer(scripted([text('so far'), { type: 'x.step.started', name: 'a' }, { type: 'response.cancelled' }]))
  const { events } = await run(url, 'go')
  expect(events.slice(-2).map(line)).toEqual(['STEP_FINISHED {"stepName":"a"}', 'RUN_FINISHED {"outcome":{"type":"cancelled"}}'])
  const { end } = await run(url, 'go', { input: { protocolVersion: undefined } })
  expect(end).toMatchObject({ type: 'RUN_FINISHED', metadata: { uamp: { cancelled: true } } })
  expect(end).not.toHaveProperty('outcome')
})

verifies('ag-ui.context', 'state, context, properties and instructions reach the agent', async () => {
  const { url } = await startServer([mirror, stateful])
  const input = {
    state: { a: 1 },
    context: [{ description: 'Page', value: 'home' }],
    forwardedProps: { x: 1 },
    tools: [{ name: 'pick', description: 'Picks', parameters: { type: 'object' } }],
  }
  const messages = [
    { id: 's', role: 'system', content: 'Be kind.' },
    { id: 'd', role: 'developer', content: 'And short.' },
    user('u', 'hi'),
  ]
  const { said } = await run(`${url}/agents/mirror`, messages, { input })
  const { config, messages: given } = JSON.parse(said) as Mirrored
  expect(config.instructions).toBe('Be kind.\n\nAnd short.\n\nContext:\nPage: home')
  expect(config.tools).toMatchObject([{ function: { name: 'pick', description: 'Picks', parameters: { type: 'object' } } }])
  expect(config.extensions).toMatchObject({ 'ag-ui': { context: input.context, forwardedProps: { x: 1 } }, uamp: { state: { a: 1 } } })
  expect(given).toEqual([{ role: 'user', content: 'hi' }])
  expect((await run(`${url}/agents/stateful`, 'hi', { input })).events[1]).toEqual({
    type: 'STATE_DELTA',
    delta: [{ op: 'replace', path: '/a', value: 2 }],
  })
})

const stateful = defineAgent('stateful', async function* (turn) {
  const before = state.given(turn) as { a: number }
  yield state.change(before, { a: before.a + 1 })
})

verifies('ag-ui.multimodal', 'media reaches the agent in both spellings', async () => {
  const { url } = await startServer(mirror)
  const source = { type: 'data', value: 'aGk=', mimeType: 'image/png' }
  const content = [
    { type: 'text', text: 'see' },
    { type: 'image', source },
    { type: 'audio', source: { type: 'url', value: 'https://example.com/a.mp3', mimeType: 'audio/mp3' } },
    { type: 'video', source: { type: 'url', value: 'https://example.com/v.mp4' } },
    { type: 'document', source: { type: 'data', value: 'aGk=', mimeType: 'application/pdf' } },
    { type: 'binary', mimeType: 'image/jpeg', data: 'aGk=' },
    { type: 'binary', mimeType: 'text/csv', url: 'https://example.com/t.csv', filename: 't.csv' },
  ]
  const { messages } = JSON.parse((await run(url, [user('u', content)])).said) as Mirrored
  expect(messages[0]?.content_items).toMatchObject([
    { type: 'text', text: 'see' },
    { type: 'image', image: 'aGk=', format: 'png' },
    { type: 'audio', audio: { url: 'https://example.com/a.mp3' }, format: 'mp3' },
    { type: 'video', video: { url: 'https://example.com/v.mp4' } },
    { type: 'file', file: 'aGk=', mime_type: 'application/pdf' },
    { type: 'image', image: 'aGk=', format: 'jpeg' },
    { type: 'file', file: { url: 'https://example.com/t.csv' }, filename: 't.csv', mime_type: 'text/csv' },
  ])
})

verifies('ag-ui.capabilities', 'what an agent can do', async () => {
  const { url } = await startServer(demo())
  const capabilities = await (await fetch(`${url}/agents/demo/ag-ui/capabilities`)).json()
  expect(capabilities).toMatchObject({
    identity: { name: 'demo', provider: 'uamp' },
    transport: { streaming: true, resumable: true },
    tools: { supported: true, clientProvided: true },
    reasoning: { supported: true },
    multimodal: { input: { image: true, audio: true } },
    humanInTheLoop: { interrupts: true },
    custom: { uamp: { protocolVersions: ['1.0', '0.0'] } },
  })
})

verifies('ag-ui.sse', 'a run is a stream that no proxy holds back', async () => {
  const { url } = await startServer(demo())
  const response = await post(url, 'Hello')
  expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
  expect(response.headers.get('cache-control')).toBe('no-cache, no-transform')
  await response.text()
})

verifies(['ag-ui.profile', 'ag-ui.snapshot'], 'media in a conversation that a client of 0.0.x joins', async () => {
  const { url } = await startServer(demo())
  const picture = { type: 'image', source: { type: 'data', value: 'iVBORw==', mimeType: 'image/png' } }
  const input = { threadId: 'pictures', protocolVersion: undefined }
  await run(url, [user('u1', [{ type: 'text', text: 'see' }, picture])], { input })
  const { events } = await run(url, [user('u2', 'and?')], { input: { ...input, ...joins } })
  const snapshot = events.find(({ type }) => type === 'MESSAGES_SNAPSHOT') as Heard
  expect(snapshot['messages'][0].content).toEqual([
    { type: 'text', text: 'see' },
    { type: 'binary', mimeType: 'image/png', data: 'iVBORw==' },
  ])
})

verifies('ag-ui.input', 'what is no base64 is refused', async () => {
  const { url } = await startServer(demo())
  for (const part of [
    { type: 'image', source: { type: 'data', value: 'no base64!', mimeType: 'image/png' } },
    { type: 'binary', mimeType: 'image/png', data: '???' },
  ]) {
    expect(await refusal(await post(url, [user('u1', [part])]))).toMatchObject({ status: 400, message: expect.stringContaining('base64') })
  }
})
