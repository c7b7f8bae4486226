import { describe, expect, onTestFinished, test } from 'vitest'
import { WebSocket } from 'ws'
import { llmAgent } from '../../src/agents/llm/index.ts'
import { modelOf } from '../../src/agents/llm/model.ts'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { text } from '../../src/core/agent-kit/drafts.ts'
import type { Provider } from '../../src/core/ports/provider.ts'
import { anthropic } from '../../src/providers/anthropic/index.ts'
import { google } from '../../src/providers/google/index.ts'
import { openaiCompatible } from '../../src/providers/openai-compatible/index.ts'
import { openai } from '../../src/providers/openai/index.ts'
import { startUpstream, type Upstream } from '../providers/upstream/index.ts'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'
import { connect } from './realtime-wire.ts'
import { user, type Wire } from './support.ts'

const MESSAGES = { model: 'm', messages: [user('Hi')] }
const INPUT = { model: 'm', input: 'Hi' }

const post = (path: string, body: object) => async (url: string) => {
  const response = await fetch(url + path, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })
  return { status: response.status, headers: response.headers, text: await response.text() }
}

/** Every way to ask over HTTP. */
const WAYS: [name: string, send: ReturnType<typeof post>][] = [
  ['completions', post('/v1/chat/completions', MESSAGES)],
  ['completions, streamed', post('/v1/chat/completions', { ...MESSAGES, stream: true })],
  ['completions, two choices, streamed', post('/v1/chat/completions', { ...MESSAGES, n: 2, stream: true })],
  ['responses', post('/v1/responses', INPUT)],
  ['responses, streamed', post('/v1/responses', { ...INPUT, stream: true })],
  ['responses, not stored', post('/v1/responses', { ...INPUT, store: false })],
  ['responses, streamed, not stored', post('/v1/responses', { ...INPUT, stream: true, store: false })],
]

const PROVIDERS: [name: string, make: (upstream: Upstream) => Provider][] = [
  ['responses', ({ url }) => openai({ apiKey: 'k', baseUrl: `${url}/openai/v1` })],
  ['compatible', ({ url }) => openaiCompatible({ name: 'compatible', baseUrl: `${url}/compatible/v1` })],
  ['anthropic', ({ url }) => anthropic({ apiKey: 'k', baseUrl: `${url}/anthropic` })],
  ['google', ({ url }) => google({ apiKey: 'k', baseUrl: `${url}/google` })],
]

const TOO_MANY = { status: 429, headers: { 'content-type': 'application/json', 'retry-after': '7' }, body: '{"error":{"message":"slow"}}' }

describe.each(PROVIDERS)('a 429 of %s', (vendor, make) => {
  async function refusing() {
    const upstream = await startUpstream()
    upstream.script(vendor as never, TOO_MANY, TOO_MANY)
    const { url } = await startServer(llmAgent({ name: 'm', model: modelOf(make(upstream), 'text') }))
    return { url, upstream }
  }

  verifies('openai-completions.upstream-429', 'is the status of every answer that has not begun, with when to come again', async () => {
    for (const [name, send] of WAYS) {
      const { url } = await refusing()
      const answer = await send(url)
      const error = { type: 'rate_limit_error', code: 'rate_limit_exceeded' }
      expect([name, answer.status, answer.headers.get('retry-after'), answer.headers.get('retry-after-ms')]).toEqual([
        name,
        429,
        '7',
        '7000',
      ])
      expect(JSON.parse(answer.text)).toMatchObject({ error })
      expect(answer.headers.get('x-should-retry')).toBe(null)
    }
  })

  test('is told over sockets', async () => {
    const { url } = await refusing()
    const socket = new WebSocket(`${url.replace('http', 'ws')}/v1/responses`)
    onTestFinished(() => socket.terminate())
    const told = new Promise<Wire>((resolve) => socket.on('message', (data: Buffer) => resolve(JSON.parse(data.toString()))))
    socket.on('open', () => socket.send(JSON.stringify({ type: 'response.create', ...INPUT })))
    expect(await told).toMatchObject({
      type: 'error',
      status: 429,
      error: { type: 'rate_limit_error', code: 'rate_limit_exceeded' },
      headers: { 'retry-after': '7', 'retry-after-ms': '7000' },
    })

    const again = await refusing()
    const wire = await connect(again.url)
    const ended = (
      await wire.respond({
        type: 'conversation.item.create',
        item: { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Hi' }] },
      })
    ).at(-1)
    expect(ended).toMatchObject({
      response: { status: 'failed', status_details: { error: { type: 'rate_limit_error', code: 'rate_limit_exceeded' } } },
    })
  })
})

describe('a model that hangs', () => {
  test.each(WAYS.slice(0, 2).concat(WAYS.slice(3, 5)))('gives way to its fallback after `timeouts.firstByteMs`: %s', async (_, send) => {
    const upstream = await startUpstream()
    const hung = openaiCompatible({ name: 'hung', baseUrl: `${upstream.url}/compatible/v1`, timeouts: { firstByteMs: 50 } })
    const models = {
      model: modelOf(hung, 'silent'),
      fallbacks: [modelOf(openaiCompatible({ name: 'other', baseUrl: `${upstream.url}/compatible/v1` }), 'text')],
    }
    const { url } = await startServer(llmAgent({ name: 'm', ...models }))
    expect((await send(url)).status).toBe(200)
    expect(upstream.requests.map(({ body }) => body['model'])).toEqual(['silent', 'text'])
  })

  test('is asked for a stream if it has a fallback, as an answer in one piece may take an hour', async () => {
    const upstream = await startUpstream()
    const provider = openaiCompatible({ name: 'some', baseUrl: `${upstream.url}/compatible/v1` })
    const { url } = await startServer(
      llmAgent({ name: 'm', model: modelOf(provider, 'error-500'), fallbacks: [modelOf(provider, 'text')] }),
    )
    expect((await WAYS[0]?.[1](url))?.status).toBe(200)
    expect(upstream.requests.map(({ body }) => [body['model'], body['stream']]).at(0)).toEqual(['error-500', true])
    expect(upstream.requests.map(({ body }) => [body['model'], body['stream']]).at(-1)).toEqual(['text', undefined])
  })
})

describe('an answer that is too large for us', () => {
  const wordy = defineAgent('m', async function* () {
    for (let piece = 0; piece < 100; piece++) yield text('x'.repeat(1000))
  })

  verifies('openai-completions.answer-too-large', 'is not the fault of the request', async () => {
    const { url } = await startServer(wordy, { limits: { outputBytes: 10_000 } })
    for (const [name, send] of [WAYS[0], WAYS[3]] as typeof WAYS) {
      const answer = await send(url)
      expect([name, answer.status]).toEqual([name, 502])
      expect(JSON.parse(answer.text)).toMatchObject({ error: { type: 'server_error', code: 'answer_too_large' } })
      expect(answer.headers.get('x-should-retry')).toBe('false')
    }
    const streamed = await WAYS[1]?.[1](url)
    expect(streamed?.text ?? '').toContain('"type":"server_error","code":"answer_too_large"')
    expect((await WAYS[4]?.[1](url))?.text ?? '').toContain('"code":"answer_too_large"')
  })

  test('but a request that the provider finds too large is', async () => {
    const upstream = await startUpstream()
    upstream.script('compatible', { status: 413, headers: {}, body: '' })
    const provider = openaiCompatible({ name: 'some', baseUrl: `${upstream.url}/compatible/v1` })
    const { url } = await startServer(llmAgent({ name: 'm', model: modelOf(provider, 'text') }))
    const answer = await WAYS[0]?.[1](url)
    expect(answer?.status).toBe(413)
    expect(JSON.parse(answer?.text ?? '')).toMatchObject({ error: { type: 'invalid_request_error', code: 'request_too_large' } })
  })
})

test.each([
  ['anthropic', (upstream: Upstream) => anthropic({ name: 'mine', apiKey: 'k', baseUrl: `${upstream.url}/anthropic`, retries: 0 })],
  ['google', (upstream: Upstream) => google({ name: 'mine', apiKey: 'k', baseUrl: `${upstream.url}/google`, retries: 0 })],
  ['openai', (upstream: Upstream) => openai({ name: 'mine', apiKey: 'k', baseUrl: `${upstream.url}/openai/v1`, retries: 0 })],
])('errors name a provider of %s as its user does', async (vendor, make) => {
  for (const model of ['error-500', 'text+cut']) {
    const upstream = await startUpstream()
    const provider = make(upstream)
    const { url } = await startServer(llmAgent({ name: 'm', model: modelOf(provider, model) }))
    const { text: told } = (await WAYS[0]?.[1](url)) ?? { text: '' }
    expect(told).toMatch(/\bmine\b/)
    expect(told).not.toContain(vendor)
    expect((await provider.capabilities(model)).provider).toBe('mine')
  }
})
