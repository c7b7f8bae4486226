import { describe, expect, test } from 'vitest'
import { anthropic } from '../../src/providers/anthropic/index.ts'
import type { ToolResult } from '../../src/protocol/content.ts'
import { verifies } from '../support/verifies.ts'
import { after, ask, PIXEL, WEATHER } from './ask.ts'
import { BAD_KEY, startUpstream, type Upstream } from './upstream/index.ts'

const MODEL = 'claude-sonnet-5-5'
const TOOLS = { modalities: ['text'], tools: [WEATHER] }

const claude = ({ url }: Upstream, options: Partial<Parameters<typeof anthropic>[0]> = {}) =>
  anthropic({ apiKey: 'key', baseUrl: `${url}/anthropic`, retries: 0, ...options })

const ok = (call_id: string, result: string): ToolResult => ({ call_id, result, status: 'completed', is_error: false })

describe('an answer', () => {
  verifies(['anthropic.text', 'anthropic.version'], 'is told piece by piece, however it was sent', async () => {
    const upstream = await startUpstream()
    const whole = await ask(claude(upstream), { model: `${MODEL}@text`, messages: 'Hello' })
    expect(whole.error).toBeUndefined()
    expect(whole.text.length).toBeGreaterThan(10)
    expect(whole.drafts.filter(({ type }) => type === 'response.delta').length).toBeGreaterThan(1)
    expect(whole.stop).toBeUndefined()
    for (const delivery of ['burst', 'split', 'crlf', 'comments', 'crlf+split+comments']) {
      expect((await ask(claude(upstream), { model: `${MODEL}@text+${delivery}`, messages: 'Hello' })).text).toBe(whole.text)
    }
    expect(upstream.requests[0]?.headers).toMatchObject({ 'anthropic-version': '2026-10-21', 'x-api-key': 'key' })
    expect(upstream.requests[0]?.path).toBe('/anthropic/v1/messages')
  })

  test('comes from a base URL with its version too', async () => {
    const upstream = await startUpstream()
    const answer = await ask(claude(upstream, { baseUrl: `${upstream.url}/anthropic/v1/` }), { model: 'text', messages: 'Hello' })
    expect(answer.error).toBeUndefined()
  })

  verifies('anthropic.media', 'sees the picture that was sent', async () => {
    const upstream = await startUpstream()
    const content_items = [
      { type: 'text' as const, text: 'What is this?' },
      { type: 'image' as const, image: PIXEL },
    ]
    const { text } = await ask(claude(upstream), { model: `${MODEL}@image`, messages: [{ role: 'user', content_items }] })
    expect(text).toContain('image/png')
  })

  verifies('anthropic.schema', 'follows a schema', async () => {
    const upstream = await startUpstream()
    const schema = { type: 'object', properties: { name: { type: 'string', minLength: 1 }, age: { type: 'integer' } }, required: ['name'] }
    const response_format = { type: 'json_schema' as const, json_schema: { name: 'person', schema } }
    const { text, error } = await ask(claude(upstream), {
      model: `${MODEL}@json`,
      messages: 'Who is it?',
      config: { modalities: ['text'], response_format },
    })
    expect(error).toBeUndefined()
    expect(JSON.parse(text)).toHaveProperty('name')
    expect(upstream.requests[0]?.body).toMatchObject({ output_config: { format: { type: 'json_schema' } } })
  })

  verifies('anthropic.usage', 'says what it cost, the cache by itself', async () => {
    const upstream = await startUpstream()
    const { usage, drafts } = await ask(claude(upstream), { model: `${MODEL}@cached`, messages: 'Hello' })
    expect(usage).toMatchObject({
      input_tokens: 21,
      input_uncached: 21,
      cached_tokens: 1988,
      cache_read: 1800,
      cache_write: 188,
    })
    expect(usage?.output).toBe(usage?.output_tokens)
    expect(drafts.filter(({ type }) => type === 'usage.delta')).toHaveLength(1)
  })

  verifies('anthropic.stop', 'says why it stopped', async () => {
    const upstream = await startUpstream()
    expect((await ask(claude(upstream), { model: `${MODEL}@length`, messages: 'Count' })).stop).toBe('length')
    expect((await ask(claude(upstream), { model: `${MODEL}@refusal`, messages: 'Do harm' })).stop).toBe('content_filter')
  })
})

describe('tools', () => {
  verifies(['anthropic.arguments', 'anthropic.tool-pairs'], 'are called in parallel, and go on with their results', async () => {
    const upstream = await startUpstream()
    const asked = 'The weather in Paris and Rome?'
    const first = await ask(claude(upstream), { model: `${MODEL}@tools`, messages: asked, config: TOOLS })
    const calls = first.items.flatMap((item) => (item.type === 'tool_call' ? [item.tool_call] : []))
    expect(calls.map((call) => [call.name, JSON.parse(call.arguments)])).toEqual([
      ['weather', { city: 'Paris' }],
      ['weather', { city: 'Rome, Ünïted 世界' }],
    ])
    const pieces = first.drafts.flatMap((draft) =>
      draft.type === 'response.delta' && draft.delta.type === 'tool_call' ? [draft.delta.tool_call] : [],
    )
    expect(pieces.length).toBeGreaterThan(calls.length)
    expect(new Set(pieces.map(({ id }) => id)).size).toBe(2)

    // The later call's result comes first, as it may.
    const [paris, rome] = calls
    const messages = after(asked, first, [ok(rome?.id ?? '', '"rain"'), ok(paris?.id ?? '', '"sun"')])
    const second = await ask(claude(upstream), { model: `${MODEL}@tools`, messages, config: TOOLS })
    expect(second.error).toBeUndefined()
    expect(second.text).toContain('sun')
    expect(second.text).toContain('rain')
  })

  verifies(['anthropic.thinking-kept', 'anthropic.thoughts'], 'get back the thoughts that led to them, signed and redacted', async () => {
    const upstream = await startUpstream()
    const asked = 'The weather in Paris?'
    const config = { ...TOOLS, extensions: { openai: { reasoning_effort: 'medium' } } }
    const first = await ask(claude(upstream), { model: `${MODEL}@thinking`, messages: asked, config })
    const [thought, redacted] = first.items
    expect(thought).toMatchObject({ type: 'thinking', thinking: 'I should ask the tool about “Paris”.' })
    expect(redacted).toMatchObject({ type: 'thinking', thinking: '', redacted: true })
    const call = first.items.find((item) => item.type === 'tool_call')?.tool_call
    const second = await ask(claude(upstream), {
      model: `${MODEL}@thinking`,
      messages: after(asked, first, [ok(call?.id ?? '', '"sun"')]),
      config,
    })
    expect(second.error).toBeUndefined()
    expect(second.text).toContain('After thinking: ')
    const { messages } = upstream.requests[1]?.body as { messages: { content: { type: string }[] }[] }
    expect(messages[1]?.content.map(({ type }) => type)).toEqual(['thinking', 'redacted_thinking', 'text', 'tool_use'])
    expect(upstream.requests[1]?.body).toMatchObject({ thinking: { type: 'adaptive' }, output_config: { effort: 'medium' } })
  })

  verifies('anthropic.tool-input', 'that were called with something that is no JSON can be told so', async () => {
    const upstream = await startUpstream()
    const first = await ask(claude(upstream), { model: `${MODEL}@bad-arguments`, messages: 'Try', config: TOOLS })
    const call = first.items.find((item) => item.type === 'tool_call')?.tool_call
    expect(() => JSON.parse(call?.arguments ?? '') as unknown).toThrow()
    const messages = after('Try', first, [{ call_id: call?.id ?? '', result: 'not JSON', is_error: true }])
    expect((await ask(claude(upstream), { model: `${MODEL}@bad-arguments`, messages, config: TOOLS })).error).toBeUndefined()
  })
})

describe('a failure', () => {
  verifies('anthropic.stream-error', 'in the stream is told after what was said and spent', async () => {
    const upstream = await startUpstream()
    const { text, usage, error } = await ask(claude(upstream), { model: `${MODEL}@text+failing`, messages: 'Hello' })
    expect(text).not.toBe('')
    expect(usage?.input_tokens).toBeGreaterThan(0)
    expect(error?.message).toContain('anthropic')
    expect(error?.code).toMatch(/provider_error|overloaded/)
  })

  verifies('anthropic.cut', 'is any end before the end', async () => {
    const upstream = await startUpstream()
    for (const how of ['cut', 'short', 'half']) {
      const { error, usage } = await ask(claude(upstream), { model: `${MODEL}@text+${how}`, messages: 'Hello' })
      expect(error, how).toMatchObject({ code: 'provider_error' })
      expect(usage?.input_tokens, how).toBeGreaterThan(0)
    }
  })

  verifies('anthropic.refused', 'is told in the vendor’s words, but not that of the key; one that may pass is tried again', async () => {
    const upstream = await startUpstream()
    const refused = await ask(claude(upstream), { model: `${MODEL}@error-400`, messages: 'Hello' })
    expect(refused.error).toMatchObject({ code: 'invalid_request', message: expect.stringMatching(/^anthropic answered 400: ./) })
    const key = await ask(claude(upstream, { apiKey: BAD_KEY }), { model: `${MODEL}@text`, messages: 'Hello' })
    expect(key.error).toMatchObject({ code: 'provider_error', message: 'anthropic answered 401' })
    expect((await ask(claude(upstream), { model: `${MODEL}@error-529`, messages: 'Hello' })).error?.code).toBe('overloaded')
    const flaky = await ask(claude(upstream, { retries: 1 }), { model: `${MODEL}@text+flaky`, messages: 'Hello' })
    expect(flaky.error).toBeUndefined()
    expect(flaky.text).not.toBe('')
  })

  verifies('anthropic.not-a-stream', 'is a page, an error or a silence under 200', async () => {
    const upstream = await startUpstream()
    for (const scenario of ['html-200', 'error-in-200', 'empty', 'not-json']) {
      const { error, drafts } = await ask(claude(upstream), { model: `${MODEL}@${scenario}`, messages: 'Hello' })
      expect(error?.code, scenario).toBe(scenario === 'error-in-200' ? 'invalid_request' : 'provider_error')
      expect(drafts, scenario).toEqual([])
    }
  })

  test('is a stream that falls silent', async () => {
    const upstream = await startUpstream()
    const provider = claude(upstream, { timeouts: { idleMs: 50 } })
    expect((await ask(provider, { model: `${MODEL}@text+stall`, messages: 'Hello' })).error?.code).toBe('timeout')
  })
})

verifies('anthropic.abort', 'a cancel closes the connection', async () => {
  const upstream = await startUpstream()
  const cancel = new AbortController()
  const answering = ask(claude(upstream), { model: `${MODEL}@text+stall`, messages: 'Hello' }, cancel)
  await upstream.until(() => upstream.answers === 1)
  cancel.abort(new Error('cancelled'))
  await upstream.until(() => upstream.aborts === 1)
  expect((await answering).error?.message).toBe('cancelled')
})
