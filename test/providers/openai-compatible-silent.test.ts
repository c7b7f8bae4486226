import { describe, expect, test } from 'vitest'
import { llmAgent } from '../../src/agents/llm/index.ts'
import { nodeHttp } from '../../src/server/node/http-client.ts'
import { ask as post, stream, user } from '../openai/support.ts'
import { startServer } from '../support/server.ts'
import { say } from '../support/talk.ts'
import { verifies } from '../support/verifies.ts'
import { overWebSocket } from '../support/wire.ts'
import { ask, toRequest } from './ask.ts'
import { sent, some, strict, TOOLS } from './chat.ts'
import { startUpstream } from './upstream/index.ts'

const silent = { silent: true }
const SCENARIOS = ['text', 'tools', 'thinking', 'thinking-only', 'length', 'filter', 'refusal', 'cached', 'bad-arguments', 'json', 'echo']
const OF_SOME = ['thinking-reasoning', 'thinking-tags', 'tools-whole', 'cached']

describe('an answer that nobody sees before its end', () => {
  for (const [make, scenarios] of [[strict, SCENARIOS] as const, [some, OF_SOME] as const])
    for (const model of scenarios)
      verifies('compatible.silent', `is the same in one piece: ${make.name} ${model}`, async () => {
        const upstream = await startUpstream()
        const asked = { model, messages: 'The weather in Paris?', config: TOOLS }
        const streamed = await ask(make(upstream), asked)
        expect(sent(upstream)).toMatchObject({ stream: true, stream_options: { include_usage: true } })
        const whole = await ask(make(upstream), asked, silent)
        expect(sent(upstream)).not.toHaveProperty('stream')
        expect(sent(upstream)).not.toHaveProperty('stream_options')
        const bare = (value: unknown) => JSON.stringify(value).replaceAll(/call_[\w-]+/g, 'call')
        for (const field of ['items', 'usage', 'stop', 'error'] as const) expect(bare([whole[field]])).toBe(bare([streamed[field]]))
        expect(whole.drafts.length).toBeLessThanOrEqual(streamed.drafts.length)
      })

  test.each(['error-400', 'error-401', 'error-404', 'error-429', 'error-500', 'error-503', 'html', 'html-200', 'error-in-200', 'not-json'])(
    'fails in the same way: %s',
    async (model) => {
      const upstream = await startUpstream()
      const [streamed, whole] = [
        await ask(strict(upstream), { model, messages: 'Hi' }),
        await ask(strict(upstream), { model, messages: 'Hi' }, silent),
      ]
      expect(whole.error?.code).toBe(streamed.error?.code)
      expect(whole.error?.details).toEqual(streamed.error?.details)
    },
  )

  test.each(['cut', 'half', 'short'])('fails where it is cut: %s', async (delivery) => {
    const upstream = await startUpstream()
    const { error, text } = await ask(strict(upstream), { model: `text+${delivery}`, messages: 'Hi' }, silent)
    expect([text, error?.code]).toEqual(['', 'provider_error'])
  })

  test('keeps calls apart that have neither an index nor an id', async () => {
    const upstream = await startUpstream()
    const tool_calls = ['Paris', 'Rome'].map((city) => ({ function: { name: 'weather', arguments: { city } } }))
    const body = JSON.stringify({ choices: [{ message: { tool_calls }, finish_reason: 'tool_calls' }] })
    upstream.script('compatible', { status: 200, headers: { 'content-type': 'application/json' }, body })
    const { items } = await ask(some(upstream), { model: 'm', messages: 'Hi', config: TOOLS }, silent)
    expect(items).toMatchObject([{ tool_call: { arguments: '{"city":"Paris"}' } }, { tool_call: { arguments: '{"city":"Rome"}' } }])
  })

  test('is asked for as a stream of a model that refuses it otherwise, from then on at once', async () => {
    const upstream = await startUpstream()
    const refusal = { error: { message: 'Requests with max_tokens > 4096 must have stream=true' } }
    upstream.script('compatible', { status: 400, headers: { 'content-type': 'application/json' }, body: JSON.stringify(refusal) })
    const provider = some(upstream)
    for (const requests of [2, 3]) {
      expect(await ask(provider, { model: 'text', messages: 'Hi' }, silent)).toMatchObject({ error: undefined })
      expect(upstream.requests).toHaveLength(requests)
      expect(sent(upstream)).toMatchObject({ stream: true })
    }
  })

  test('is a stream where that is what a server sends all the same', async () => {
    const upstream = await startUpstream()
    const body = 'data: {"choices":[{"delta":{"content":"So"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
    upstream.script('compatible', { status: 200, headers: { 'content-type': 'text/event-stream' }, body })
    expect(await ask(some(upstream), { model: 'm', messages: 'Hi' }, silent)).toMatchObject({ text: 'So', error: undefined })
  })

  test('is asked for as a stream where the wait for its first byte is bounded', async () => {
    const upstream = await startUpstream()
    await ask(some(upstream, { timeouts: { firstByteMs: 10_000 } }), { model: 'text', messages: 'Hi' }, silent)
    expect(sent(upstream)).toMatchObject({ stream: true })
  })

  test('must come within the total time', async () => {
    const upstream = await startUpstream()
    const { error } = await ask(some(upstream, { timeouts: { totalMs: 100 } }), { model: 'silent', messages: 'Hi' }, silent)
    expect(error?.code).toBe('timeout')
  })

  test.each(['silent', 'text+stall'])('is given up by a cancel, which closes the connection: %s', async (model) => {
    const upstream = await startUpstream()
    const http = nodeHttp()
    const controller = new AbortController()
    const context = { http, signal: controller.signal, sessionId: 's', silent: true }
    const first = some(upstream)
      .generate(toRequest({ model, messages: 'Hi' }), context)
      [Symbol.asyncIterator]()
      .next()
    await upstream.until(() => upstream.requests.length === 1)
    controller.abort()
    await expect(first).rejects.toThrow()
    await upstream.until(() => upstream.aborts === 1)
    http.close()
  })
})

test('who streams, stores or listens is answered by a stream, and who does not, by an answer in one piece', async () => {
  const upstream = await startUpstream()
  const server = await startServer(llmAgent({ name: 'bot', model: { provider: some(upstream), model: 'text' } }))
  const url = `${server.url}/v1`
  const messages = [user('Hi')]
  const asks: Readonly<Record<string, () => Promise<unknown>>> = {
    completion: () => post(`${url}/chat/completions`, { messages }),
    'stored completion': () => post(`${url}/chat/completions`, { messages, store: true }),
    'streamed completion': () => stream(`${url}/chat/completions`, { messages }),
    response: () => post(`${url}/responses`, { model: 'bot', input: 'Hi', store: false }),
    'stored response': () => post(`${url}/responses`, { model: 'bot', input: 'Hi' }),
    'streamed response': () => stream(`${url}/responses`, { model: 'bot', input: 'Hi', store: false }),
    session: async () => {
      const wire = await overWebSocket(server.url)
      await wire.open()
      await say(wire, 'Hi')
    },
  }
  const whole: string[] = []
  for (const [name, asking] of Object.entries(asks)) {
    await asking()
    if (sent(upstream)['stream'] !== true) whole.push(name)
  }
  expect(upstream.requests).toHaveLength(Object.keys(asks).length)
  expect(whole).toEqual(['completion', 'response'])
})

test('a client that leaves stops the request upstream', async () => {
  const upstream = await startUpstream()
  const server = await startServer(llmAgent({ name: 'bot', model: { provider: some(upstream), model: 'text+stall' } }))
  const leaving = new AbortController()
  const asking = fetch(`${server.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ messages: [user('Hi')] }),
    signal: leaving.signal,
  })
  await upstream.until(() => upstream.requests.length === 1)
  leaving.abort()
  await expect(asking).rejects.toThrow()
  await upstream.until(() => upstream.aborts === 1)
})
