import { describe, expect, test } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { built } from '../../src/wire/audio/resample.ts'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'
import { flags, frame, OmniaClient, SOUND, type Heard, type HeardFrame } from './omnia-client.ts'

const path = '/omnia?agent=demo&binary=true'
const BYTES_PER_MS = 48

/** Sound of so many milliseconds: a tone that is loud, or next to nothing. */
function sound(ms: number, height: number): Buffer {
  const bytes = Buffer.alloc(ms * BYTES_PER_MS)
  for (let at = 0; at < bytes.length; at += 2) bytes.writeInt16LE(Math.round(height * Math.sin(at / 10)), at)
  return bytes
}

const pieces = (bytes: Buffer, size: number): Buffer[] =>
  Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) => bytes.subarray(index * size, (index + 1) * size))

const framesIn = (client: OmniaClient): HeardFrame[] => client.heard.filter((each): each is HeardFrame => each.type === 'binary')

describe('a call', () => {
  verifies(
    ['omnia.binary-in', 'omnia.binary-out', 'omnia.frame-flags'],
    'what is said comes back from the demo, byte by byte, as binary frames',
    async () => {
      const { url } = await startServer(demo())
      const client = await OmniaClient.open(url, { path })
      const said = sound(250, 3)
      const sent = pieces(said, 4096)
      for (const [sequence, payload] of sent.entries()) {
        client.send(frame({ sequence, payload, flags: sequence === sent.length - 1 ? flags.last : 0 }))
      }
      const done = await client.next('done')
      expect(done['content']).toMatch(/You said 0\.\d s of audio/)
      const frames = framesIn(client)
      expect(Buffer.concat(frames.map(({ payload }) => payload)).equals(said)).toBe(true)
      expect(frames.map(({ sequence }) => sequence)).toEqual([...frames.keys()])
      expect(frames.map((each) => each.flags)).toEqual([...frames.slice(1).map(() => 0), flags.last])
      expect(frames[0]?.mediaId).toMatch(/^\w{12}$/)
      expect(new Set(frames.map(({ mediaId }) => mediaId)).size).toBe(1)
      expect(frames[0]).toMatchObject({ kind: 1, meta: { session_id: client.sessionId, codec: 'pcm', sample_rate: 24_000, channels: 1 } })
      expect(frames[0]?.bytes.subarray(0, 8)).toEqual(Buffer.from([0x4f, 0x4d, 0x4e, 0x49, 1, 0, 0, 1]))
    },
  )

  verifies('omnia.frame-chunks', 'a long piece comes in chunks', async () => {
    const whole = sound(30_000, 100)
    const agent = defineAgent(
      'demo',
      async function* () {
        yield { type: 'audio.delta', audio: whole.toString('base64'), format: 'pcm16' }
        yield { type: 'audio.done' }
      },
      { capabilities: { modalities: ['text', 'audio'] } },
    )
    const { url } = await startServer(agent)
    const client = await OmniaClient.open(url, { path })
    await client.say('speak')
    const chunks = framesIn(client)
    expect(Buffer.concat(chunks.map(({ payload }) => payload)).equals(whole)).toBe(true)
    expect(chunks.map((each) => [each.flags, each.sequence, each.meta['total_chunks']])).toEqual(
      chunks.map((_, index) => [flags.chunked | (index === 21 ? flags.last : 0), index, 22]),
    )
  })

  verifies('omnia.binary-out', 'a piece that ends in the middle of a sample is completed by the next', async () => {
    const agent = defineAgent(
      'demo',
      async function* () {
        for (const piece of [[1, 2, 3], [4], [5, 6, 7], [8, 9]]) yield { type: 'audio.delta', audio: Buffer.from(piece).toString('base64') }
      },
      { capabilities: { modalities: ['text', 'audio'] } },
    )
    const { url } = await startServer(agent)
    const client = await OmniaClient.open(url, { path })
    await client.say('speak')
    expect(framesIn(client).map((each) => [...each.payload, each.flags])).toEqual([
      [1, 2, 0],
      [3, 4, 0],
      [5, 6, 0],
      [7, 8, flags.last],
    ])
  })

  verifies(
    'omnia.session-config',
    'begins with the format that sound had best have; what cannot be heard is refused, and the next frame heard',
    async () => {
      const { url } = await startServer(demo())
      const client = await OmniaClient.open(url, { path })
      client.send(frame({ payload: sound(20, 3), meta: { ...SOUND, sample_rate: 1_000 } }))
      expect((await client.next('session_config'))['session_config']).toEqual({ codec: 'pcm', sample_rate: 24_000, channels: 1 })
      expect((await client.next('error'))['error'].code).toBe('UNSATISFIABLE_FORMAT')
      expect((await client.fails(frame({ meta: { ...SOUND, codec: 'opus' } }))).code).toBe('UNSATISFIABLE_FORMAT')
      client.send(frame({ payload: sound(100, 3), flags: flags.last }))
      expect((await client.next('done'))['content']).toBe('You said 0.1 s of audio.')
      expect(client.heard.filter(({ type }) => type === 'session_config')).toHaveLength(1)
    },
  )

  for (const [rate, channels] of [
    [16_000, 1],
    [48_000, 2],
    [44_100, 1],
  ] as const) {
    verifies('omnia.resample', `sound of ${rate} Hz in ${channels} channels is heard as it was said`, async () => {
      const { url } = await startServer(demo())
      const client = await OmniaClient.open(url, { path })
      const said = Buffer.alloc(rate * channels * 2 * 0.2)
      for (let n = 0; n < said.length / 2; n++) {
        said.writeInt16LE(Math.round(8_000 * Math.sin((2 * Math.PI * 500 * Math.floor(n / channels)) / rate)), n * 2)
      }
      // Frames that end in the middle of a sample; later ones leave out what the first said.
      const sent = pieces(said, 1_001)
      for (const [sequence, payload] of sent.entries()) {
        const meta = sequence === 0 ? { ...SOUND, sample_rate: rate, channels } : {}
        client.send(frame({ sequence, payload, meta, flags: sequence === sent.length - 1 ? flags.last : 0 }))
      }
      await client.next('done')
      expect(client.heard.filter(({ type }) => type === 'error')).toEqual([])
      const bytes = Buffer.concat(framesIn(client).map(({ payload }) => payload))
      expect(bytes.length / BYTES_PER_MS).toBeCloseTo(200, 0)
      let crossings = 0
      for (let at = 2; at < bytes.length; at += 2) if (bytes.readInt16LE(at - 2) < 0 && bytes.readInt16LE(at) >= 0) crossings++
      expect(Math.abs(crossings - 100)).toBeLessThanOrEqual(2)
    })
  }

  verifies('omnia.pauses', 'needs no end: after a pause it is the agent’s turn, and then the next', async () => {
    const { url } = await startServer(demo())
    const client = await OmniaClient.open(url, { path })
    for (let turn = 1; turn <= 2; turn++) {
      for (const payload of pieces(Buffer.concat([sound(400, 8000), sound(720, 0)]), 256)) client.send(frame({ payload }))
      expect((await client.next('done'))['content']).toBe('You said 1.1 s of audio.')
    }
    // Silence alone is nothing that was said.
    client.send(frame({ payload: sound(500, 0), flags: flags.last }))
    expect((await client.say('/history')).at(-1)?.['content'].match(/user: \[audio/g)).toHaveLength(2)
  })

  verifies('omnia.interrupt', 'who speaks up interrupts what is spoken, and is answered', async () => {
    let runs = 0
    let stopped!: () => void
    const stop = new Promise<void>((resolve) => (stopped = resolve))
    const agent = defineAgent(
      'demo',
      async function* ({ signal, messages }) {
        if (++runs > 1)
          return yield { type: 'response.delta', delta: { type: 'text', text: `Yes? ${messages.at(-1)?.content_items?.[0]?.type}` } }
        for (let count = 0; count < 2; count++) yield { type: 'audio.delta', audio: sound(100, 100).toString('base64'), format: 'pcm16' }
        await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
        stopped()
      },
      { capabilities: { modalities: ['text', 'audio'] } },
    )
    const { url } = await startServer(agent)
    const client = await OmniaClient.open(url, { path })
    await client.ask({ type: 'message', content: 'tell me a story' }, 'binary')
    client.send(frame({ payload: sound(200, 8000) }))
    await client.next('interrupt')
    await stop
    expect((await client.next('done'))['ext'].status).toBe('cancelled')
    // Nothing of it is played after that.
    const types = client.heard.map(({ type }) => type)
    expect(types.slice(types.indexOf('interrupt'), types.indexOf('done'))).toEqual(['interrupt'])
    client.send(frame({ payload: sound(100, 8000), flags: flags.last }))
    expect((await client.next('done'))['content']).toBe('Yes? audio')
  })

  verifies('omnia.interrupt', 'who speaks up while an answer is played that was made long ago was not heard', async () => {
    const { url } = await startServer(demo())
    const client = await OmniaClient.open(url, { path })
    await client.say('/audio 2')
    client.send(frame({ payload: sound(200, 8000), flags: flags.last }))
    await client.next('interrupt')
    expect((await client.next('done'))['content']).toBe('You said 0.2 s of audio.')
    expect(client.heard.filter(({ type }) => type === 'interrupt')).toHaveLength(1)
  })

  verifies(['omnia.done', 'omnia.chunk'], 'what was only ever spoken ended without a word', async () => {
    const agent = defineAgent(
      'demo',
      async function* () {
        for (const word of ['Hello ', 'dear ']) {
          yield { type: 'transcript.delta', transcript: word }
          yield { type: 'audio.delta', audio: sound(10, 3).toString('base64'), format: 'pcm16' }
        }
        yield { type: 'audio.done' }
        yield { type: 'transcript.done', transcript: 'Hello dear world' }
      },
      { capabilities: { modalities: ['text', 'audio'] } },
    )
    const { url } = await startServer([agent, defineAgent('tones', demo().run)])
    const client = await OmniaClient.open(url, { path })
    const answers = [await client.say('hi'), await (await OmniaClient.open(url, { path: '/omnia?agent=tones' })).say('/audio 0.1')]
    for (const [index, content] of ['Hello dear world', 'A tone of 0.1 s.'].entries()) {
      const answer = answers[index] ?? []
      expect(answer.at(-1)?.['content']).toBe(content)
      expect(answer.map((each) => (each.type === 'chunk' ? (each['content'] as string) : '')).join('')).toBe(content)
    }
  })

  verifies('omnia.binary-in', 'what is said while an answer is given is answered after it', async () => {
    let go!: () => void
    const gate = new Promise<void>((resolve) => (go = resolve))
    const agent = defineAgent(
      'demo',
      async function* ({ messages }) {
        const text = messages
          .at(-1)
          ?.content_items?.map(({ type }) => type)
          .join()
        yield { type: 'response.delta', delta: { type: 'text', text: `${text}` } }
        await gate
      },
      { capabilities: { modalities: ['text', 'audio'] } },
    )
    const { url } = await startServer(agent)
    const client = await OmniaClient.open(url, { path })
    await client.ask({ type: 'message', content: 'hi' }, 'chunk')
    // Too quiet to interrupt, but sent to be heard.
    client.send(frame({ payload: sound(100, 3), flags: flags.last }))
    await client.next('session_config')
    go()
    expect((await client.next('done'))['content']).toBe('text')
    expect((await client.next('done'))['content']).toBe('audio')
  })

  verifies('omnia.no-audio', 'an agent that hears nothing is not called', async () => {
    const agent = defineAgent('demo', async function* () {
      yield { type: 'response.delta', delta: { type: 'text', text: 'text only' } }
    })
    const { url } = await startServer(agent)
    const client = await OmniaClient.open(url, { path })
    expect((await client.fails(frame({ payload: sound(20, 3) }))).code).toBe('MEDIA_NOT_ENABLED')
    expect((await client.say('hi')).at(-1)?.['content']).toBe('text only')
  })

  verifies('omnia.media-rate', 'is bounded by its bytes', async () => {
    const { url } = await startServer(demo(), {
      omnia: { limits: { mediaBytesPerSecond: 1, mediaBurstBytes: 25_000, messageBurst: 2, messagesPerSecond: 1 } },
    })
    const client = await OmniaClient.open(url, { path })
    for (let count = 0; count < 100; count++) client.send(frame({ payload: Buffer.alloc(128) }))
    client.send(frame({ payload: Buffer.alloc(4096) }))
    expect(await client.next('error')).toMatchObject({ error: { code: 'RATE_LIMITED', message: 'media rate limit exceeded' } })
    expect((await client.say('hi')).at(-1)?.['content']).toBe('You said: hi')
  })

  verifies('omnia.media-rate', 'may change its format a few times a second, and then goes on as it was', async () => {
    const { url } = await startServer(demo())
    const client = await OmniaClient.open(url, { path })
    const before = built.filters
    for (let n = 0; n < 400; n++) client.send(frame({ payload: Buffer.alloc(2), meta: { sample_rate: 100_000 + n * 7 } }))
    expect(await client.next('error')).toMatchObject({ error: { code: 'RATE_LIMITED' } })
    client.send({ type: 'message', content: 'hi' })
    await expect.poll(() => (client.heard as Heard[]).find(({ type }) => type === 'done')?.['content']).toBe('You said: hi')
    expect(client.heard.filter(({ type }) => type === 'error').length).toBeGreaterThan(300)
    expect(built.filters - before).toBeLessThan(2_000)
  })
})

test('a client that did not ask for binary frames gets none', async () => {
  const { url } = await startServer(demo())
  const client = await OmniaClient.open(url)
  client.send(frame({ payload: sound(100, 3), flags: flags.last }))
  await client.next('done')
  const chunks = (client.heard as Heard[]).flatMap((message) => (message.type === 'media_chunk' ? [message['media_chunk']] : []))
  expect(framesIn(client)).toEqual([])
  expect(Buffer.concat(chunks.map(({ data }) => Buffer.from(data as string, 'base64'))).equals(sound(100, 3))).toBe(true)
})
