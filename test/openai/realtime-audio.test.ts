import { describe, expect } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { text } from '../../src/core/agent-kit/drafts.ts'
import type { AgentPort } from '../../src/core/ports/agent.ts'
import { alaw, ulaw } from '../../src/transports/realtime/audio/g711.ts'
import { endless } from '../support/agents.ts'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'
import { BOTH, connect, DIALECTS, says, typesOf, type Heard, type RealtimeWire } from './realtime-wire.ts'

const MS = 24
const pcm = (samples: Int16Array): Buffer => Buffer.from(samples.buffer, samples.byteOffset, samples.byteLength)
const silence = (ms: number): Buffer => pcm(new Int16Array(ms * MS))
const speech = (ms: number, loud = 8000): Buffer =>
  pcm(Int16Array.from({ length: ms * MS }, (_, at) => Math.round(loud * Math.sin(at / 9))))
const append = (...bytes: readonly Uint8Array[]) => ({ type: 'input_audio_buffer.append', audio: Buffer.concat(bytes).toString('base64') })
const COMMIT = { type: 'input_audio_buffer.commit' }
const MANUAL = { turn_detection: null }

/** Tells how much of which audio it was given last. */
const listener = defineAgent('listener', async function* ({ messages }) {
  const heard = messages.at(-1)?.content_items?.find((item) => item.type === 'audio')
  yield text(heard ? `${heard.format} ${Buffer.from(heard.audio as string, 'base64').length / 2 / MS} ms` : 'nothing')
})

async function open(agent: AgentPort, dialect: (typeof BOTH)[number] = 'ga', settings: object = {}): Promise<RealtimeWire> {
  const { url } = await startServer(agent)
  const wire = await connect(url, DIALECTS[dialect].options)
  await wire.ask(DIALECTS[dialect].session({ ...settings }), 'session.updated')
  return wire
}
const textOf = (done: Heard | undefined): string => done?.['response'].output[0].content[0].text as string

describe.each(BOTH)('%s: the buffer', (dialect) => {
  const words = DIALECTS[dialect]

  verifies('openai-realtime.buffer-commit', 'a commit makes a message of it and no answer', async () => {
    const wire = await open(listener, dialect, MANUAL)
    const { item: before } = await wire.ask(says('hi'), words.added.at(-1) as string)
    wire.send(append(speech(100)))
    wire.send(append(silence(50)))
    const committed = await wire.ask(COMMIT, 'input_audio_buffer.committed')
    expect(committed).toMatchObject({ previous_item_id: before.id, item_id: expect.stringMatching(/^item_/) })
    const item = { id: committed['item_id'], role: 'user', status: 'completed', content: [{ type: 'input_audio', transcript: null }] }
    for (const type of words.added) expect(await wire.next(() => true)).toMatchObject({ type, previous_item_id: before.id, item })
    const events = await wire.respond()
    expect(typesOf(wire.heard.slice(wire.heard.indexOf(committed) + 1 + words.added.length))[0]).toBe('response.created')
    expect(textOf(events.at(-1))).toBe('pcm16 150 ms')
  })

  verifies(['openai-realtime.buffer-commit-empty', 'openai-realtime.buffer-clear'], 'empty it cannot be committed', async () => {
    const wire = await open(listener, dialect, MANUAL)
    wire.send({ ...COMMIT, event_id: 'e1' })
    expect((await wire.next('error'))['error']).toMatchObject({ code: 'input_audio_buffer_commit_empty', event_id: 'e1' })
    wire.send(append(speech(100)))
    await wire.ask({ type: 'input_audio_buffer.clear' }, 'input_audio_buffer.cleared')
    wire.send({ ...COMMIT, event_id: 'e2' })
    expect((await wire.next('error'))['error']).toMatchObject({ code: 'input_audio_buffer_commit_empty', event_id: 'e2' })
  })

  verifies('openai-realtime.buffer-bad', 'what is no audio is refused and leaves it as it was', async () => {
    const wire = await open(listener, dialect, MANUAL)
    wire.send(append(speech(20)))
    for (const [audio, code] of [
      ['no base64!', 'invalid_base64'],
      [Buffer.from([1, 2, 3]).toString('base64'), 'invalid_audio'],
    ] as const) {
      wire.send({ type: 'input_audio_buffer.append', event_id: 'bad', audio })
      expect((await wire.next('error'))['error']).toMatchObject({ type: 'invalid_request_error', code, param: 'audio', event_id: 'bad' })
    }
    expect(textOf((await wire.respond(COMMIT)).at(-1))).toBe('pcm16 20 ms')
  })

  verifies('openai-realtime.output-buffer', 'that of the output may be cleared', async () => {
    const wire = await open(demo(), dialect)
    await wire.ask({ type: 'output_audio_buffer.clear' }, 'output_audio_buffer.cleared')
  })
})

verifies('openai-realtime.buffer-full', 'append without end is refused, and the buffer can be cleared', async () => {
  const wire = await open(listener, 'ga', MANUAL)
  const minute = append(silence(30_000))
  for (let half = 0; half < 6; half++) wire.send({ ...minute, event_id: `half ${half}` })
  expect((await wire.next('error'))['error']).toMatchObject({ code: 'input_audio_buffer_full', event_id: 'half 5' })
  await wire.ask({ type: 'input_audio_buffer.clear' }, 'input_audio_buffer.cleared')
  wire.send(minute)
  expect(textOf((await wire.respond(COMMIT)).at(-1))).toBe('pcm16 30000 ms')
})

describe.each([
  ['g711_ulaw', ulaw],
  ['g711_alaw', alaw],
] as const)('%s', (format, law) => {
  const narrow = Int16Array.from({ length: 800 }, (_, at) => Math.round(6000 * Math.sin(at / 5)))
  const encoded = law.encode(narrow)

  describe.each(BOTH)('%s', (dialect) => {
    const words = DIALECTS[dialect]

    verifies('openai-realtime.formats', 'comes to the agent as pcm16 and back in its own form', async () => {
      const wire = await open(demo(), dialect, { ...MANUAL, format, outputFormat: format })
      wire.send(append(encoded))
      const events = await wire.respond(COMMIT)
      const deltas = events.filter(({ type }) => type === `${words.audio}.delta`)
      const heard = law.decode(Buffer.concat(deltas.map(({ delta }) => Buffer.from(delta as string, 'base64'))))
      // The demo repeats it: three times as many samples in between, and the mean of each three comes back.
      expect(heard).toHaveLength(narrow.length)
      const decoded = law.decode(encoded)
      for (let at = 1; at < heard.length; at++) {
        const mean = ((decoded[at] as number) * 2 + (decoded[at - 1] as number)) / 3
        expect(Math.abs((heard[at] as number) - mean)).toBeLessThanOrEqual(Math.abs(mean) / 16 + 16)
      }
      const user = wire.heard.find(({ type }) => type === 'input_audio_buffer.committed')?.['item_id'] as string
      const { item } = await wire.ask({ type: 'conversation.item.retrieve', item_id: user }, 'conversation.item.retrieved')
      expect(Buffer.from(item.content[0].audio as string, 'base64')).toHaveLength(encoded.length)
    })
  })

  verifies('openai-realtime.formats', 'in an item comes to the agent as pcm16', async () => {
    const wire = await open(listener, 'ga', { ...MANUAL, format })
    const content = [{ type: 'input_audio', audio: Buffer.from(encoded).toString('base64') }]
    const events = await wire.respond({ type: 'conversation.item.create', item: { type: 'message', role: 'user', content } })
    expect(textOf(events.at(-1))).toBe('pcm16 100 ms')
  })
})

describe.each(BOTH)('%s: server_vad', (dialect) => {
  const words = DIALECTS[dialect]

  verifies(
    ['openai-realtime.vad', 'openai-realtime.vad-prefix', 'openai-realtime.vad-silence'],
    'notices speech, commits it and answers',
    async () => {
      const wire = await open(listener, dialect)
      const from = wire.heard.length
      wire.send(append(silence(1000), speech(600), silence(480)))
      const started = await wire.next('input_audio_buffer.speech_started')
      // Twenty more are needed, and the socket answers in order.
      await wire.ask({ type: 'session.update', session: {} }, 'session.updated')
      expect(typesOf(wire.heard)).not.toContain('input_audio_buffer.speech_stopped')
      wire.send(append(silence(20)))
      const done = await wire.next('response.done')
      const rest = wire.heard.slice(from).filter(({ type }) => type !== 'session.updated')
      expect(typesOf(rest).slice(0, 4 + words.added.length)).toEqual([
        'input_audio_buffer.speech_started',
        'input_audio_buffer.speech_stopped',
        'input_audio_buffer.committed',
        ...words.added,
        'response.created',
      ])
      expect(rest[0]).toMatchObject({ audio_start_ms: 700, item_id: started['item_id'] })
      expect(rest[1]).toMatchObject({ audio_end_ms: 2100, item_id: started['item_id'] })
      expect(rest[2]).toMatchObject({ item_id: started['item_id'], previous_item_id: null })
      expect(textOf(done)).toBe('pcm16 1400 ms')
    },
  )

  verifies('openai-realtime.barge-in', 'speech cancels the running answer', async () => {
    const { agent, stopped } = endless()
    const wire = await open(agent, dialect)
    wire.send({ type: 'response.create' })
    await wire.next(`${words.text}.delta`)
    wire.send(append(speech(100)))
    await wire.next('input_audio_buffer.speech_started')
    const { response } = await wire.next('response.done')
    expect(response).toMatchObject({ status: 'cancelled', status_details: { type: 'cancelled', reason: 'turn_detected' } })
    await stopped
    // The turn that interrupted is answered in its place.
    wire.send(append(silence(500)))
    await wire.next('input_audio_buffer.speech_stopped')
    const { response: next } = await wire.next('response.created')
    expect(next.id).not.toBe(response.id)
    await wire.next(`${words.text}.delta`)
  })
})

describe('turn detection', () => {
  const detect = (fields: object) => ({ turn_detection: { type: 'server_vad', ...fields } })
  /** Everything up to now was dealt with: what is asked last is answered last. */
  const settled = (wire: RealtimeWire) => wire.ask({ type: 'session.update', session: {} }, 'session.updated')

  verifies('openai-realtime.vad-threshold', 'needs speech as loud as the threshold', async () => {
    const wire = await open(listener, 'ga', detect({ threshold: 0.9 }))
    wire.send(append(speech(300, 2000)))
    await settled(wire)
    expect(typesOf(wire.heard)).not.toContain('input_audio_buffer.speech_started')
    wire.send(append(speech(300, 8000)))
    await wire.next('input_audio_buffer.speech_started')
  })

  verifies('openai-realtime.vad-manual', 'may leave the answer to the client', async () => {
    const wire = await open(listener, 'ga', detect({ create_response: false, silence_duration_ms: 200 }))
    wire.send(append(speech(300), silence(300)))
    await wire.next('input_audio_buffer.committed')
    await settled(wire)
    expect(typesOf(wire.heard)).not.toContain('response.created')
    expect(textOf((await wire.respond()).at(-1))).toBe('pcm16 500 ms')
  })

  verifies('openai-realtime.vad-none', 'may be off', async () => {
    const wire = await open(listener, 'ga', MANUAL)
    wire.send(append(speech(300), silence(1000)))
    await settled(wire)
    expect(wire.heard.filter(({ type }) => type.startsWith('input_audio_buffer.'))).toEqual([])
  })

  verifies('openai-realtime.no-barge-in', 'may leave the running answer alone, and answers next', async () => {
    let finish: () => void = () => undefined
    const finished = new Promise<void>((resolve) => (finish = resolve))
    const agent = defineAgent('patient', async function* ({ messages }) {
      yield text(`heard ${messages.length}`)
      if (messages.length === 1) await finished
    })
    const wire = await open(agent, 'ga', detect({ interrupt_response: false }))
    wire.send(says('go'))
    wire.send({ type: 'response.create' })
    await wire.next('response.output_text.delta')
    wire.send(append(speech(200), silence(500)))
    await wire.next('input_audio_buffer.committed')
    await settled(wire)
    finish()
    const first = await wire.next('response.done')
    expect(first['response']).toMatchObject({ status: 'completed', output: [{ content: [{ text: 'heard 1' }] }] })
    expect(textOf(await wire.next('response.done'))).toBe('heard 3')
  })
})

verifies('openai-realtime.audio', 'the demo answers audio with audio', async () => {
  const wire = await open(demo(), 'ga', MANUAL)
  const said = speech(250)
  wire.send(append(said))
  const events = await wire.respond(COMMIT)
  const audio = events
    .filter(({ type }) => type === 'response.output_audio.delta')
    .map(({ delta }) => Buffer.from(delta as string, 'base64'))
  expect(Buffer.concat(audio).equals(said)).toBe(true)
  expect(events.at(-1)?.['response'].output[0].content).toEqual([{ type: 'output_audio', transcript: expect.stringContaining('You') }])
})
