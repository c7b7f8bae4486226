import { describe, expect, test } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { endless } from '../support/agents.ts'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'
import { BOTH, connect, DIALECTS, says, typesOf } from './realtime-wire.ts'

const start = () => startServer(demo())
const message = (content: unknown, role = 'user') => ({ type: 'conversation.item.create', item: { type: 'message', role, content } })
const nested = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels)

/** What is sent, and what the error says of it: its code and its field. */
const frames: readonly [string, object | string | Uint8Array, string, string | null][] = [
  ['truncated JSON', '{"type":"response.create"', 'invalid_json', null],
  ['no JSON', 'hello', 'invalid_json', null],
  ['an empty frame', '', 'invalid_json', null],
  ['an array', '[]', 'invalid_json', null],
  ['null', 'null', 'invalid_json', null],
  ['depth', `{"type":"session.update","session":{"prompt":${nested(5000)}}}`, 'invalid_json', null],
  ['a binary frame', new Uint8Array([1, 2, 3]), 'invalid_frame', null],
  ['no type', {}, 'missing_required_parameter', 'type'],
  ['a type that is no string', { type: 7 }, 'invalid_type', 'type'],
  ['an unknown type', { type: 'response.text.delta' }, 'invalid_value', 'type'],
  ['a type that objects have', { type: 'constructor' }, 'invalid_value', 'type'],
  ['an event_id that is no string', { type: 'response.create', event_id: 7 }, 'invalid_type', 'event_id'],
  ['an event_id without end', { type: 'response.create', event_id: 'x'.repeat(10_000) }, 'invalid_value', 'event_id'],
  ['no session', { type: 'session.update' }, 'missing_required_parameter', 'session'],
  ['a session that is no object', { type: 'session.update', session: 'text' }, 'invalid_type', 'session'],
  ['instructions that are no text', { type: 'session.update', session: { instructions: 7 } }, 'invalid_type', 'session.instructions'],
  [
    'a tool without a name',
    { type: 'session.update', session: { tools: [{ type: 'function' }] } },
    'missing_required_parameter',
    'session.tools[0].name',
  ],
  [
    'a tool of another kind',
    { type: 'session.update', session: { tools: [{ type: 'mcp', server_label: 'x' }] } },
    'invalid_value',
    'session.tools[0].type',
  ],
  ['no audio', { type: 'input_audio_buffer.append' }, 'missing_required_parameter', 'audio'],
  ['audio that is no text', { type: 'input_audio_buffer.append', audio: [1, 2] }, 'invalid_type', 'audio'],
  ['no item', { type: 'conversation.item.create' }, 'missing_required_parameter', 'item'],
  ['an unknown kind of item', { type: 'conversation.item.create', item: { type: 'thing' } }, 'invalid_value', 'item.type'],
  ['an unknown role', message([], 'robot'), 'invalid_value', 'item.role'],
  ['content that is no list', message('hi'), 'invalid_type', 'item.content'],
  ['a part of another role', message([{ type: 'output_text', text: 'x' }]), 'invalid_value', 'item.content[0].type'],
  ['a text that is none', message([{ type: 'input_text', text: 7 }]), 'invalid_type', 'item.content[0].text'],
  ['audio that is not base64', message([{ type: 'input_audio', audio: '%%%' }]), 'invalid_base64', 'item.content[0].audio'],
  [
    'an image that is no URL',
    message([{ type: 'input_image', image_url: 'file:///etc/passwd' }]),
    'invalid_image_url',
    'item.content[0].image_url',
  ],
  [
    'an output without its call',
    { type: 'conversation.item.create', item: { type: 'function_call_output', output: 'x' } },
    'missing_required_parameter',
    'item.call_id',
  ],
  [
    'a negative place',
    { type: 'conversation.item.truncate', item_id: 'x', content_index: -1, audio_end_ms: 0 },
    'invalid_value',
    'content_index',
  ],
  ['a response that is no object', { type: 'response.create', response: [] }, 'invalid_type', 'response'],
  ['a payment without a scheme', { type: 'payment.submit', payment: {} }, 'missing_required_parameter', 'payment.scheme'],
  ['a payment that nobody asked for', { type: 'payment.submit', payment: { scheme: 'token' } }, 'not_found', null],
]

const OWN = {
  ga: [
    [
      'an unknown modality',
      { type: 'session.update', session: { output_modalities: ['smell'] } },
      'invalid_value',
      'session.output_modalities[0]',
    ],
    [
      'an unknown format',
      { type: 'session.update', session: { audio: { input: { format: { type: 'audio/mp3' } } } } },
      'invalid_value',
      'session.audio.input.format.type',
    ],
    [
      'another rate',
      { type: 'session.update', session: { audio: { input: { format: { type: 'audio/pcm', rate: 8000 } } } } },
      'invalid_value',
      'session.audio.input.format.rate',
    ],
    [
      'a threshold beyond 1',
      { type: 'session.update', session: { audio: { input: { turn_detection: { type: 'server_vad', threshold: 2 } } } } },
      'invalid_value',
      'session.audio.input.turn_detection.threshold',
    ],
    ['another kind of session', { type: 'session.update', session: { type: 'transcription' } }, 'invalid_value', 'session.type'],
    ['no tokens', { type: 'response.create', response: { max_output_tokens: 0 } }, 'invalid_value', 'response.max_output_tokens'],
  ],
  beta: [
    ['an unknown modality', { type: 'session.update', session: { modalities: ['smell'] } }, 'invalid_value', 'session.modalities[0]'],
    [
      'an unknown format',
      { type: 'session.update', session: { input_audio_format: 'mp3' } },
      'invalid_value',
      'session.input_audio_format',
    ],
    [
      'an unknown detection',
      { type: 'session.update', session: { turn_detection: { type: 'telepathy' } } },
      'invalid_value',
      'session.turn_detection.type',
    ],
    ['no tokens', { type: 'response.create', response: { max_output_tokens: 0 } }, 'invalid_value', 'response.max_output_tokens'],
  ],
} as const

describe.each(BOTH)('%s', (dialect) => {
  verifies('openai-realtime.error', 'whatever is wrong is told, and nothing else is touched', async () => {
    const { url, logged } = await start()
    const wire = await connect(url, DIALECTS[dialect].options)
    for (const [name, frame, code, param] of [...frames, ...OWN[dialect]]) {
      const named = typeof frame === 'string' || frame instanceof Uint8Array || 'event_id' in frame ? frame : { ...frame, event_id: name }
      wire.send(named)
      const event = await wire.next(
        (heard) => heard.type === 'error' || heard.type.endsWith('updated') || heard.type.startsWith('response'),
      )
      expect(event, name).toEqual({
        type: 'error',
        event_id: expect.any(String),
        error: { type: 'invalid_request_error', code, param, message: expect.any(String), event_id: named === frame ? null : name },
      })
    }
    const events = await wire.respond(says('still there?'))
    expect(events.at(-1)?.['response'].output[0].content[0].text).toBe('You said: still there?')
    expect(logged.filter(({ level }) => level === 'error')).toEqual([])
  })
})

verifies('openai-realtime.isolation', 'twenty connections at once, each with a conversation of its own', async () => {
  const { url } = await start()
  const answers = await Promise.all(
    Array.from({ length: 20 }, async (_, number) => {
      const wire = await connect(url, DIALECTS[number % 2 === 0 ? 'ga' : 'beta'].options)
      for (let round = 0; round < 3; round++) await wire.respond(says(`client ${number} round ${round}`))
      const events = await wire.respond(says('/history'))
      return events.at(-1)?.['response'].output[0].content[0].text as string
    }),
  )
  for (const [number, answer] of answers.entries()) {
    const lines = [0, 1, 2]
      .map((round) => `client ${number} round ${round}`)
      .flatMap((said) => [`user: ${said}`, `assistant: You said: ${said}`])
    expect(answer).toBe([...lines, 'user: /history'].join('\n'))
  }
})

test('a client that goes away stops the agent', async () => {
  const { agent, stopped } = endless()
  const { url } = await startServer(agent)
  const wire = await connect(url)
  wire.send({ type: 'response.create' })
  await wire.next('response.output_text.delta')
  wire.socket.terminate()
  await stopped
})

test('what is sent at once is dealt with in order', async () => {
  const { url } = await start()
  const wire = await connect(url)
  wire.send(says('a'))
  wire.send({ type: 'response.create' })
  wire.send({ type: 'response.cancel' })
  wire.send({ type: 'response.create' })
  const first = await wire.next('response.done')
  const second = await wire.next('response.done')
  expect(['cancelled', 'completed']).toContain(first['response'].status)
  expect(second['response'].status).toBe('completed')
  expect(typesOf(wire.heard).filter((type) => type === 'response.created')).toHaveLength(2)
})

const large = 'A'.repeat(400_000)
const item = (more: object) => ({ type: 'conversation.item.create', item: more })

test.each([
  ['items', says(large)],
  ['calls', item({ type: 'function_call', name: 'f', call_id: 'c', arguments: large })],
  ['many parts', message(Array.from({ length: 1000 }, () => ({ type: 'input_text', text: 'x'.repeat(300) })))],
  ['recordings', message([{ type: 'input_audio', audio: large }])],
  ['audio that is not committed', { type: 'input_audio_buffer.append', audio: large }],
])('of what its sockets keep, %s count against what a principal may hold', async (_, event) => {
  const { url } = await startServer(demo(), { limits: { heldBytesPerPrincipal: 1_000_000 } })
  const send = async () => {
    const wire = await connect(url)
    wire.send({ ...event, event_id: 'large' })
    wire.send({ type: 'nothing', event_id: 'after' })
    // While it comes in it counts, too: where there is no room for that, the socket is closed.
    const closed = (thrown: Error) => ({ error: { event_id: 'large', message: thrown.message } })
    const { error } = await wire.next('error').catch(closed)
    return { wire, refused: error.event_id === 'large' ? (error.message as string) : undefined }
  }
  const sent = [await send(), await send(), await send(), await send()]
  expect(sent[0]?.refused).toBe(undefined)
  expect(sent.at(-1)?.refused).toMatch(/too much in memory|1013 Too much is on its way/)
  // What they keep goes with them.
  for (const { wire } of sent) wire.socket.terminate()
  await expect.poll(async () => (await send()).refused).toBe(undefined)
})
