import { describe, expect, test } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { startServer } from '../support/server.ts'
import { refusedUpgrade } from '../support/test-server.ts'
import { verifies } from '../support/verifies.ts'
import { OmniaClient, typesOf, type Heard } from './omnia-client.ts'
import { WebSocket } from 'ws'

const echo = (name: string) =>
  defineAgent(name, async function* ({ messages }) {
    yield { type: 'response.delta', delta: { type: 'text', text: `${name}: ${messages.at(-1)?.content}` } }
  })

describe('connecting', () => {
  verifies(
    ['omnia.connected', 'omnia.capabilities', 'omnia.timestamp'],
    'a client is greeted with its session and what is possible',
    async () => {
      const { url } = await startServer(demo())
      const client = await OmniaClient.open(url)
      const [greeting] = client.heard as Heard[]
      expect(greeting).toEqual({
        type: 'connected',
        session_id: expect.stringMatching(/./),
        connected: { capabilities: { binary_frames: true, max_payload_size: 16 * 1024 * 1024, protocol_version: 1 }, resumed: false },
        timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      })
    },
  )

  verifies(
    ['omnia.agent', 'omnia.namespace', 'omnia.paths'],
    'the query or the path names the agent, and a namespace stands before it',
    async () => {
      const { url } = await startServer([echo('one'), echo('two'), echo('prod.two')], { defaultAgent: 'one' })
      const paths = {
        '/omnia?agent=two': 'two',
        '/omnia?agent=two&namespace=default': 'two',
        '/omnia?agent=two&namespace=prod': 'prod.two',
        '/?agent=two&namespace=prod': 'prod.two',
        '/omnia': 'one',
        '/agents/two/omnia': 'two',
        '/api/agents/prod/two/ws?device_id=d': 'prod.two',
      }
      for (const [path, name] of Object.entries(paths)) {
        const client = await OmniaClient.open(url, { path })
        expect((await client.say('hi')).at(-1)?.['content']).toBe(`${name}: hi`)
      }
    },
  )

  verifies('omnia.unknown-agent', 'an agent that is not there is told, and the connection closed as an error', async () => {
    const { url } = await startServer(demo())
    const client = new OmniaClient(new WebSocket(`${url.replace('http', 'ws')}/omnia?agent=nobody`))
    expect((await client.next('error'))['error']).toMatchObject({ code: 'AGENT_UNAVAILABLE', details: { agents: ['demo'] } })
    expect((await client.closed).code).toBe(1011)
  })

  verifies('omnia.auth', 'who has no token is refused before the upgrade, in the form of Omnia', async () => {
    const { url } = await startServer(demo(), { tokens: { alice: 'secret-0123456789abcdef' } })
    const refused = await refusedUpgrade(new WebSocket(`${url.replace('http', 'ws')}/omnia?agent=demo`))
    expect(refused).toMatchObject({ status: 401, body: { error: { code: 'AGENT_UNAVAILABLE', details: { code: 'unauthorized' } } } })
    const client = await OmniaClient.open(url, { headers: { authorization: 'Bearer secret-0123456789abcdef' } })
    expect((await client.say('hi')).at(-1)?.['content']).toBe('You said: hi')
  })
})

describe('chat', () => {
  verifies(['omnia.chunk', 'omnia.done'], 'an answer comes in chunks, and then whole', async () => {
    const { url } = await startServer(demo())
    const client = await OmniaClient.open(url)
    const answer = await client.say('Hello "there"\n')
    expect(typesOf(answer)).toEqual(['chunk', 'chunk', 'chunk', 'chunk', 'done'])
    const done = answer.at(-1) as Heard
    expect(answer.slice(0, -1).map(({ content }) => content as string)).toEqual(['You', ' said:', ' Hello', ' "there"\n'])
    expect(done).toMatchObject({ session_id: client.sessionId, content: 'You said: Hello "there"\n', timestamp: expect.any(String) })
    expect(done).not.toHaveProperty('parts')
    expect(done['ext']).toMatchObject({ status: 'completed', usage: { output_tokens: 4 } })
  })

  verifies('omnia.parts', 'parts win over content, and each becomes what it is', async () => {
    const seen: unknown[] = []
    const agent = defineAgent('demo', async function* ({ messages }) {
      seen.push(messages.at(-1)?.content_items)
    })
    const { url } = await startServer(agent)
    const client = await OmniaClient.open(url)
    const parts = [
      { type: 'text', text: 'Look' },
      { type: 'image', media: { url: 'https://example.com/photo.jpg', mime_type: 'image/jpeg', detail: 'low', width: 10 } },
      { type: 'image', media: { data: 'aGk=', mime_type: 'image/png' } },
      { type: 'audio', media: { data: 'aGk=', mime_type: 'audio/mp3', sample_rate: 8000 } },
      { type: 'audio', media: { data: 'aGk=', mime_type: 'audio/pcm', sample_rate: 24000, channels: 1 } },
      { type: 'video', media: { url: 'http://example.com/v', mime_type: 'video/mp4' } },
      { type: 'file', media: { data: 'aGk=', mime_type: 'text/plain', filename: 'a.txt' } },
    ]
    await client.say('not this', { parts })
    expect(seen).toEqual([
      [
        { type: 'text', text: 'Look' },
        expect.objectContaining({
          type: 'image',
          image: { url: 'https://example.com/photo.jpg' },
          format: 'jpeg',
          detail: 'low',
          width: 10,
        }),
        expect.objectContaining({ type: 'image', image: 'aGk=', format: 'png' }),
        expect.objectContaining({ type: 'audio', audio: 'aGk=', format: 'mp3', sample_rate: 8000 }),
        expect.objectContaining({ type: 'audio', audio: 'aGk=', format: 'pcm16' }),
        expect.objectContaining({ type: 'video', video: { url: 'http://example.com/v' }, format: 'mp4' }),
        expect.objectContaining({ type: 'file', file: 'aGk=', filename: 'a.txt', mime_type: 'text/plain' }),
      ],
    ])
  })

  verifies('omnia.metadata', 'metadata and consent reach the agent', async () => {
    const seen: unknown[] = []
    const agent = defineAgent('demo', async function* ({ config }) {
      seen.push(config.extensions?.['omnia'])
    })
    const { url } = await startServer(agent)
    const client = await OmniaClient.open(url)
    await client.say('hi', { metadata: { user_id: 'user-123' }, consent_grants: ['location'] })
    await client.say('hi', { consent_grants: ['location'], session_consent_grants: ['camera'] })
    expect(seen).toEqual([
      { metadata: { user_id: 'user-123' }, consent_grants: ['location'] },
      { consent_grants: ['location'], session_consent_grants: ['camera'] },
    ])
  })

  verifies('omnia.done-parts', 'an answer with media has parts, and its text among them', async () => {
    const { url } = await startServer(demo())
    const client = await OmniaClient.open(url)
    const done = (await client.say('/image')).at(-1)
    expect(done).toMatchObject({
      content: 'Here is an image.',
      parts: [
        { type: 'text', text: 'Here is an image.' },
        { type: 'image', media: { data: expect.stringMatching(/^iVBOR/), mime_type: 'image/png' } },
      ],
    })
    expect((await client.say('/file')).at(-1)?.['parts'].at(-1)).toMatchObject({
      type: 'file',
      media: { filename: 'demo.csv', mime_type: 'text/csv', size_bytes: 18, data: btoa('name,value\ndemo,1\n') },
    })
  })

  verifies('omnia.media-chunk', 'speech comes as chunks of media in order, the last one marked, with its words as text', async () => {
    const { url } = await startServer(demo())
    const client = await OmniaClient.open(url)
    const answer = await client.say('/audio 0.3')
    const chunks = answer.flatMap((message) => (message.type === 'media_chunk' ? [message['media_chunk']] : []))
    expect(chunks.map(({ sequence, is_last }) => [sequence, is_last])).toEqual([
      [0, false],
      [1, false],
      [2, true],
    ])
    expect(new Set(chunks.map(({ media_id, mime_type }) => `${media_id} ${mime_type}`)).size).toBe(1)
    expect(chunks[0].mime_type).toBe('audio/pcm;rate=24000')
    expect(Buffer.concat(chunks.map(({ data }) => Buffer.from(data, 'base64'))).length).toBe(0.3 * 24_000 * 2)
    expect(answer.at(-1)).toMatchObject({ type: 'done', content: 'A tone of 0.3 s.' })
  })

  verifies('omnia.errors', 'a failure is an error with a code of Omnia, and the next message is answered', async () => {
    const { url } = await startServer(demo())
    const client = await OmniaClient.open(url)
    const codes = {
      provider_error: 'PROVIDER_ERROR',
      rate_limited: 'RATE_LIMITED',
      tool_budget_exceeded: 'TOOL_ERROR',
      odd: 'INTERNAL_ERROR',
    }
    for (const [code, omnia] of Object.entries(codes)) {
      const error = await client.fails({ type: 'message', session_id: client.sessionId, content: `/error ${code}` })
      expect(error).toMatchObject({ code: omnia, message: expect.stringContaining(code), details: { code } })
    }
    expect((await client.say('hi')).at(-1)?.['content']).toBe('You said: hi')
  })
})

describe('limits', () => {
  verifies('omnia.in-flight', 'one message at a time: another is refused, and the first answered', async () => {
    const { url } = await startServer(demo())
    const client = await OmniaClient.open(url)
    await client.ask({ type: 'message', session_id: client.sessionId, content: '/count 1000000 5' }, 'chunk')
    const error = await client.fails({ type: 'message', session_id: client.sessionId, content: 'second' })
    expect(error).toMatchObject({ code: 'RATE_LIMITED', message: 'too many in-flight requests' })
    await client.next('chunk')
  })

  verifies('omnia.message-rate', 'messages beyond the burst are dropped, and told', async () => {
    const { url } = await startServer(demo(), { omnia: { limits: { messagesPerSecond: 1, messageBurst: 3 } } })
    const client = await OmniaClient.open(url)
    for (let count = 0; count < 100; count++) client.send({ type: 'tool_call_ack', tool_call_ack: { call_id: 'none' } })
    expect((await client.next('error'))['error']).toMatchObject({
      code: 'RATE_LIMITED',
      message: 'rate limit exceeded',
    })
  })

  verifies('omnia.message-size', 'a message may have 16 MiB; a larger one closes the connection with 1009', async () => {
    const { url } = await startServer(demo())
    const client = await OmniaClient.open(url)
    const most = 16 * 1024 * 1024
    const empty = JSON.stringify({ type: 'message', session_id: client.sessionId, content: '' })
    const content = 'x'.repeat(most - empty.length)
    // It came through: what refuses it is the bound on what an agent is handed.
    expect((await client.fails({ type: 'message', session_id: client.sessionId, content })).code).toBe('INVALID_MESSAGE')
    client.send({ type: 'message', session_id: client.sessionId, content: `${content}x` })
    expect((await client.closed).code).toBe(1009)
  })
})

test('a shutdown closes with 1001', async () => {
  const server = await startServer(demo())
  const client = await OmniaClient.open(server.url)
  await server.close({ graceMs: 0 })
  expect((await client.closed).code).toBe(1001)
  expect(server.logged.filter(({ level }) => level === 'error')).toEqual([])
})
