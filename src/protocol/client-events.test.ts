import { describe, expect, test } from 'vitest'
import { eventCases, type EventCase } from '../../test/support/event-cases.ts'
import { verifies } from '../../test/support/verifies.ts'
import { parseClientEvent } from './parse.ts'

const search = {
  type: 'function',
  function: {
    name: 'find_trains',
    description: 'Trains between two places',
    parameters: { type: 'object', properties: { to: { type: 'string', default: null } }, required: ['to'] },
    strict: true,
  },
}
const browser = {
  id: 'browser',
  provider: 'acme',
  modalities: ['text', 'hologram'],
  supports_streaming: true,
  supports_thinking: true,
  supports_caching: false,
  supports_rich_display: true,
  context_window: 1000,
  max_output_tokens: 100,
  image: { formats: ['png'], max_size_bytes: 10, detail_levels: ['low'], max_images_per_request: 2 },
  audio: { input_formats: ['pcm16'], output_formats: ['mp3'], sample_rates: [24000], supports_realtime: true, voices: ['nova'] },
  file: { supported_mime_types: ['text/plain'], supports_pdf: false, supports_code: true, supports_structured_data: true },
  tools: {
    supports_tools: true,
    supports_parallel_tools: true,
    supports_streaming_tools: false,
    max_tools_per_request: 8,
    built_in_tools: ['clock'],
  },
  provides: ['charts'],
  widgets: ['table'],
  endpoints: ['/ws'],
  extensions: { uamp: { events: ['x.plan'] }, none: null },
}
const config = {
  modalities: ['text', 'audio'],
  instructions: 'Answer in rhyme.',
  tools: [search],
  voice: { provider: 'acme', voice_id: 'v1', name: 'Vera', speed: 1.5, pitch: 0, language: 'de-DE', extensions: { warm: null } },
  input_audio_format: 'pcm16',
  output_audio_format: 'opus',
  turn_detection: { type: 'server_vad', threshold: 0.4, silence_duration_ms: 300, prefix_padding_ms: 100 },
  response_format: { type: 'json_schema', json_schema: { name: 'trip', description: 'A trip', schema: { const: null }, strict: true } },
  extensions: { acme: null },
}
const slots = { extensions: { acme: { trace: [1, { a: null }] } }, metadata: { from: null } }
const url = { url: 'https://example.com/a' }
const handle = { content_id: '0f8fad5b-d9cb-469f-a165-70867728950e', description: 'A cat' }

const cases: EventCase[] = [
  {
    verifies: 'uamp:events:session.create',
    event: {
      type: 'session.create',
      ...slots,
      uamp_version: '1.0',
      session: config,
      agent: 'trains',
      chat: 'chat_1',
      token: 'jwt',
      payment_token: 'ptok',
      client_capabilities: browser,
    },
    forgiven: ['uamp_version', 'session'],
  },
  {
    verifies: 'uamp:events:session.update',
    event: { type: 'session.update', ...slots, token: 'jwt2', payment_token: 'ptok2', session: { instructions: 'Be brief.' } },
  },
  { verifies: 'uamp:events:session.end', event: { type: 'session.end', ...slots, reason: 'gone fishing' } },
  { verifies: 'uamp:events:capabilities.query', event: { type: 'capabilities.query', ...slots, model: 'm-1' } },
  {
    verifies: 'uamp:events:client.capabilities',
    event: { type: 'client.capabilities', ...slots, capabilities: browser },
    required: ['capabilities'],
  },
  {
    verifies: 'uamp:events:input.text',
    event: {
      type: 'input.text',
      ...slots,
      text: 'When does it leave?',
      role: 'user',
      messages: [
        { role: 'system', content: 'You know trains.' },
        { role: 'user', content: 'When does it leave?', name: 'ann' },
      ],
      payment_token: 'ptok',
      context: { chat_id: 'c', nested: { deep: [null] } },
    },
    required: ['text'],
  },
  {
    verifies: 'uamp:events:input.audio',
    event: { type: 'input.audio', ...slots, audio: 'AAAA', format: 'pcm16', is_final: false, ...handle },
    required: ['audio', 'format'],
  },
  {
    verifies: 'uamp:events:input.image',
    event: { type: 'input.image', ...slots, image: url, format: 'png', detail: 'high', ...handle },
    required: ['image'],
  },
  {
    verifies: 'uamp:events:input.video',
    event: { type: 'input.video', ...slots, video: url, format: 'webm', ...handle },
    required: ['video'],
  },
  {
    verifies: 'uamp:events:input.file',
    event: { type: 'input.file', ...slots, file: 'JVBERi0=', filename: 'a.pdf', mime_type: 'application/pdf', ...handle },
    required: ['file', 'filename', 'mime_type'],
  },
  {
    verifies: 'uamp:events:input.typing',
    event: { type: 'input.typing', ...slots, is_typing: true, chat_id: 'c' },
    required: ['is_typing'],
  },
  {
    verifies: 'uamp:events:response.create',
    event: {
      type: 'response.create',
      ...slots,
      response: { modalities: ['text'], instructions: 'One word.', tools: [search], extensions: { acme: null } },
      response_format: { type: 'json_object' },
    },
  },
  { verifies: 'uamp:events:response.cancel', event: { type: 'response.cancel', ...slots, response_id: 'resp_1' } },
  {
    verifies: 'uamp:events:tool.result',
    event: {
      type: 'tool.result',
      ...slots,
      call_id: 'call_1',
      result: '{"at":"09:12"}',
      is_error: false,
      content_items: [{ type: 'tool_result', tool_result: { call_id: 'c', result: '', data: { a: null } } }],
    },
    required: ['call_id', 'result'],
  },
  {
    verifies: 'uamp:events:payment.submit',
    event: {
      type: 'payment.submit',
      ...slots,
      payment: { scheme: 'ap2', network: 'acme', token: 't', proof: { signed: null }, amount: '1.00', ap2_credential: { vct: null } },
    },
    required: ['payment'],
  },
  {
    verifies: 'uamp:events:voice.invite',
    event: { type: 'voice.invite', ...slots, voice: config.voice, offer: { type: 'offer', sdp: null } },
  },
  {
    verifies: 'uamp:events:voice.accept',
    event: { type: 'voice.accept', ...slots, voice: { voice_id: 'v1' }, answer: { type: 'answer', sdp: null } },
  },
  { verifies: 'uamp:events:voice.decline', event: { type: 'voice.decline', ...slots, reason: 'busy' } },
  { verifies: 'uamp:events:voice.end', event: { type: 'voice.end', ...slots, reason: 'completed', duration_ms: 1200 } },
  { verifies: 'uamp:events:ping', event: { type: 'ping', ...slots } },
  {
    verifies: 'uamp:events:message.read',
    event: { type: 'message.read', ...slots, chat_id: 'c', user_id: 'u', last_read_at: 1704067200 },
    required: ['chat_id'],
  },
  {
    event: { type: 'x.approval.response', approval_id: 'a', approved: true, option: 'once', reason: 'fine' },
    required: ['approval_id', 'approved'],
  },
]

function read(event: unknown): unknown {
  const parsed = parseClientEvent(event, () => 'new')
  return parsed.kind === 'event' ? parsed.event : parsed
}

describe('client events', () => {
  eventCases(cases, read)

  test.each(cases.map(({ event }) => [event.type, event] as const))(
    '%s with a null for what it leaves out keeps the nulls of its slots',
    (_, event) => {
      expect(read({ event_id: 'e', ...event, timestamp: null, session_id: null })).toEqual({ event_id: 'e', ...event })
    },
  )
})

describe('their parts', () => {
  const inSession = (session: object) => () => read({ type: 'session.create', event_id: 'e', session })

  verifies('uamp:events:session-config', 'each setting of a session is refused by name when its type is wrong', () => {
    for (const name of Object.keys(config)) expect(inSession({ ...config, [name]: 7 }), name).toThrow(`"session.${name}"`)
    expect(inSession({ modalities: ['smell'] })()).toMatchObject({ session: { modalities: ['smell'] } })
    expect(inSession({ turn_detection: { type: 'telepathy' } })).toThrow('"session.turn_detection.type" must be one of "server_vad"')
  })

  verifies('uamp:events:audio-format', 'audio formats are open names', () => {
    expect(read({ type: 'input.audio', audio: 'AA', format: 'flac' })).toMatchObject({ format: 'flac' })
    expect(inSession({ input_audio_format: 'speex', output_audio_format: 'aac' })()).toMatchObject({
      session: { input_audio_format: 'speex' },
    })
  })

  verifies('uamp:events:response-format', 'a response format is one of three', () => {
    for (const type of ['text', 'json_object']) expect(inSession({ response_format: { type } })).not.toThrow()
    expect(inSession({ response_format: { type: 'xml' } })).toThrow('"session.response_format.type" must be one of "text", "json_object"')
    expect(inSession({ response_format: { type: 'json_schema' } })).toThrow('"session.response_format.json_schema" must be an object')
    expect(inSession({ response_format: { type: 'json_schema', json_schema: {} } })).toThrow('json_schema.name')
  })

  verifies('uamp:events:tool-definition', 'a tool is a function with a name', () => {
    const tools = (tool: unknown) => inSession({ tools: [tool] })
    expect(tools({ type: 'function', function: { name: 'a' } })).not.toThrow()
    expect(tools({ type: 'function', function: {} })).toThrow('"session.tools[0].function.name" must be a string, but is missing')
    expect(tools({ type: 'web_search' })).toThrow('"session.tools[0].type" must be "function"')
    expect(tools({ type: 'function', function: { name: 'a', parameters: [] } })).toThrow('parameters" must be an object')
  })

  verifies('uamp:capabilities:unified', 'capabilities are one structure, and each part of it is checked', () => {
    const announce = (capabilities: object) => () => read({ type: 'client.capabilities', capabilities })
    expect(announce(browser)()).toMatchObject({ capabilities: browser })
    for (const [name, value] of Object.entries(browser)) {
      expect(announce({ ...browser, [name]: typeof value === 'number' ? 'x' : 7 }), name).toThrow(`"capabilities.${name}"`)
    }
  })

  verifies('uamp:version:new-values', 'names to which a minor version may add are not refused', () => {
    expect(read({ type: 'input.image', image: 'AA', format: 'avif', detail: 'ultra' })).toMatchObject({ format: 'avif', detail: 'ultra' })
    expect(read({ type: 'input.text', text: 'a', role: 'boss' })).toMatchObject({ role: 'user' })
    const items = [
      { type: 'hologram', of: 'cat' },
      { type: 'text', text: 'b' },
    ]
    const messages = [
      { role: 'developer', content: 'Rule.' },
      { role: 'narrator', content: 'Once.', content_items: items },
    ]
    expect(read({ type: 'input.text', text: 'c', messages, context: { null: null } })).toMatchObject({
      messages: [
        { role: 'system', content: 'Rule.' },
        { role: 'user', content: 'Once.', content_items: [{ type: 'text', text: 'b' }] },
      ],
      context: { null: null },
    })
    expect(read({ type: 'tool.result', call_id: 'c', result: '1', content_items: items })).toMatchObject({
      content_items: [{ type: 'text', text: 'b' }],
    })
    expect(read({ type: 'session.end', reason: 'daemon_takeover' })).toMatchObject({ reason: 'daemon_takeover' })
    expect(read({ type: 'payment.submit', payment: { scheme: 'barter' } })).toMatchObject({ payment: { scheme: 'barter' } })
  })

  test('flags that a client leaves out of its capabilities stay unsaid', () => {
    const capabilities = { id: 'a', provider: 'b', modalities: [], supports_thinking: false }
    const event = read({ type: 'client.capabilities', capabilities }) as { capabilities: object }
    expect(event.capabilities).toEqual(capabilities)
  })

  test('a change of configuration brings no defaults with it', () => {
    expect(read({ type: 'session.update', event_id: 'e', session: { instructions: 'x' } })).toEqual({
      type: 'session.update',
      event_id: 'e',
      session: { instructions: 'x' },
    })
  })

  test('defaults are not shared between events', () => {
    const [one, two] = [read({ type: 'session.create' }), read({ type: 'session.create' })] as { session: { modalities: string[] } }[]
    one?.session.modalities.push('audio')
    expect(two?.session.modalities).toEqual(['text'])
  })
})
