import { describe, expect, test } from 'vitest'
import { google } from '../../src/providers/google/index.ts'
import type { ToolResult } from '../../src/protocol/content.ts'
import { verifies } from '../support/verifies.ts'
import { after, ask, PIXEL, WEATHER } from './ask.ts'
import { BAD_KEY, startUpstream, type Upstream } from './upstream/index.ts'

const MODEL = 'gemini-3.5-flash'
const TOOLS = { modalities: ['text'], tools: [WEATHER] }

const gemini = ({ url }: Upstream, options: Partial<Parameters<typeof google>[0]> = {}) =>
  google({ apiKey: 'key', baseUrl: `${url}/google`, retries: 0, ...options })

const ok = (call_id: string, result: string): ToolResult => ({ call_id, result, status: 'completed', is_error: false })

interface Body {
  readonly contents: { readonly role: string; readonly parts: Record<string, unknown>[] }[]
}

describe('an answer', () => {
  verifies('google.stream', 'is told piece by piece, however it was sent', async () => {
    const upstream = await startUpstream()
    const whole = await ask(gemini(upstream), { model: `${MODEL}@text`, messages: 'Hello' })
    expect(whole.error).toBeUndefined()
    expect(whole.text.length).toBeGreaterThan(10)
    expect(whole.drafts.filter(({ type }) => type === 'response.delta').length).toBeGreaterThan(1)
    expect(whole.stop).toBeUndefined()
    for (const delivery of ['burst', 'split', 'crlf', 'comments', 'crlf+split+comments']) {
      expect((await ask(gemini(upstream), { model: `${MODEL}@text+${delivery}`, messages: 'Hello' })).text).toBe(whole.text)
    }
    expect(upstream.requests[0]?.headers).toMatchObject({ 'x-goog-api-key': 'key' })
  })

  test('comes from a base URL with its version too', async () => {
    const upstream = await startUpstream()
    const answer = await ask(gemini(upstream, { baseUrl: `${upstream.url}/google/v1beta/` }), { model: 'text', messages: 'Hello' })
    expect(answer.error).toBeUndefined()
    expect(upstream.requests[0]?.path).toBe('/google/v1beta/models/text:streamGenerateContent')
  })

  verifies('google.media', 'sees the picture that was sent', async () => {
    const upstream = await startUpstream()
    const content_items = [
      { type: 'text' as const, text: 'What is this?' },
      { type: 'image' as const, image: PIXEL },
    ]
    const { text } = await ask(gemini(upstream), { model: `${MODEL}@image`, messages: [{ role: 'user', content_items }] })
    expect(text).toContain('image/png')
  })

  verifies('google.schema', 'follows a schema', async () => {
    const upstream = await startUpstream()
    const schema = { type: 'object', properties: { name: { type: 'string' }, age: { type: 'integer' } }, required: ['name'] }
    const response_format = { type: 'json_schema' as const, json_schema: { name: 'person', schema } }
    const { text, error } = await ask(gemini(upstream), {
      model: `${MODEL}@json`,
      messages: 'Who is it?',
      config: { modalities: ['text'], response_format },
    })
    expect(error).toBeUndefined()
    expect(JSON.parse(text)).toHaveProperty('name')
    expect(upstream.requests[0]?.body).toMatchObject({
      generationConfig: { responseMimeType: 'application/json', responseJsonSchema: schema },
    })
  })

  verifies('google.usage', 'says what it cost, cache and thoughts by themselves', async () => {
    const upstream = await startUpstream()
    const { usage, drafts } = await ask(gemini(upstream), { model: `${MODEL}@cached`, messages: 'Hello' })
    expect(usage?.cache_read).toBeGreaterThan(0)
    expect(usage?.cached_tokens).toBe(usage?.cache_read)
    expect(usage?.input_tokens).toBe((usage?.input_uncached ?? 0) + (usage?.cache_read ?? 0))
    expect(drafts.filter(({ type }) => type === 'usage.delta')).toHaveLength(1)
    const thinking = await ask(gemini(upstream), { model: `${MODEL}@thinking-only`, messages: 'Think' })
    expect(thinking.usage).toMatchObject({ input_tokens: 19, output_tokens: 76, output: 76, reasoning: 64, total_tokens: 95 })
  })

  verifies(['google.finish', 'google.blocked'], 'says why it stopped', async () => {
    const upstream = await startUpstream()
    expect((await ask(gemini(upstream), { model: `${MODEL}@length`, messages: 'Count' })).stop).toBe('length')
    const filtered = await ask(gemini(upstream), { model: `${MODEL}@filter`, messages: 'Hm' })
    expect(filtered).toMatchObject({ text: 'It', stop: 'content_filter', error: undefined })
    const blocked = await ask(gemini(upstream), { model: `${MODEL}@refusal`, messages: 'Do harm' })
    expect(blocked.items).toEqual([{ type: 'text', text: 'The prompt was blocked: PROHIBITED_CONTENT', refusal: true }])
    expect(blocked.stop).toBe('content_filter')
  })
})

describe('tools', () => {
  for (const scenario of ['tools', 'tools-without-ids']) {
    verifies(['google.calls', 'google.tool-pairs'], `are called in parallel, and go on with their results (${scenario})`, async () => {
      const upstream = await startUpstream()
      const asked = 'The weather in Paris and Rome?'
      const first = await ask(gemini(upstream), { model: `${MODEL}@${scenario}`, messages: asked, config: TOOLS })
      const calls = first.items.flatMap((item) => (item.type === 'tool_call' ? [item.tool_call] : []))
      expect(calls.map((call) => call.name)).toEqual(['weather', 'weather'])
      expect(JSON.parse(calls[0]?.arguments ?? '')).toEqual({ city: 'Paris' })
      const [paris, rome] = calls
      expect(paris?.id).not.toBe(rome?.id)
      const messages = after(asked, first, [ok(rome?.id ?? '', '"rain"'), ok(paris?.id ?? '', '"sun"')])
      const second = await ask(gemini(upstream), { model: `${MODEL}@${scenario}`, messages, config: TOOLS })
      expect(second.error).toBeUndefined()
      expect(second.text).toContain('sun')
      expect(second.text).toContain('rain')
      const { contents } = upstream.requests[1]?.body as unknown as Body
      const ids = contents.flatMap(({ parts }) => parts.map((part) => (part['functionCall'] as { id?: string } | undefined)?.id ?? ''))
      expect(ids.some((id) => id !== '')).toBe(scenario === 'tools')
    })
  }

  verifies(['google.signatures', 'google.thoughts'], 'keep the signature that they came with, and so does what follows', async () => {
    const upstream = await startUpstream()
    const asked = 'The weather in Paris?'
    const model = `${MODEL}@thinking`
    const first = await ask(gemini(upstream), { model, messages: asked, config: TOOLS })
    expect(first.items[0]).toMatchObject({ type: 'thinking', thinking: expect.stringContaining('I should ask the') })
    const call = first.items.find((item) => item.type === 'tool_call')?.tool_call
    const second = await ask(gemini(upstream), { model, messages: after(asked, first, [ok(call?.id ?? '', '"sun"')]), config: TOOLS })
    expect(second.error).toBeUndefined()
    expect(second.text).toContain('After thinking: ')
    const { contents } = upstream.requests[1]?.body as unknown as Body
    const signed = contents[1]?.parts.find((part) => part['functionCall'])
    expect(signed?.['thoughtSignature']).toEqual(expect.stringMatching(/^CiQB/))

    const history = [
      ...after(asked, first, [ok(call?.id ?? '', '"sun"')]),
      { role: 'assistant' as const, content_items: [...second.items] },
      { role: 'user' as const, content: 'Thanks' },
    ]
    const third = await ask(gemini(upstream), { model: `${MODEL}@text`, messages: history })
    expect(third.error).toBeUndefined()
    const later = upstream.requests[2]?.body as unknown as Body
    expect(later.contents[3]?.parts.at(-1)).toEqual({ text: '', thoughtSignature: 'CiQB0e2Kb+upstream/thoughtSignature/final03==' })
  })

  verifies('google.unsigned', 'of another model, or of a client that dropped the signature, are taken too', async () => {
    const upstream = await startUpstream()
    const call = { id: 'toolu_1', name: 'weather', arguments: '{"city":"Paris"}' }
    const messages = [
      { role: 'user' as const, content: 'The weather in Paris?' },
      {
        role: 'assistant' as const,
        content_items: [
          { type: 'thinking' as const, thinking: 'Hm', signature: 'EqQBanother/vendors==' },
          { type: 'tool_call' as const, tool_call: call },
        ],
      },
      { role: 'tool' as const, tool_call_id: 'toolu_1', content: '"sun"' },
    ]
    expect((await ask(gemini(upstream), { model: `${MODEL}@tools`, messages, config: TOOLS })).error).toBeUndefined()
    const { contents } = upstream.requests[0]?.body as unknown as Body
    expect(contents[1]?.parts).toEqual([
      { functionCall: { id: 'toolu_1', name: 'weather', args: { city: 'Paris' } }, thoughtSignature: 'skip_thought_signature_validator' },
    ])
  })
})

describe('a failure', () => {
  verifies('google.stream-error', 'in the stream is told after what was said and spent', async () => {
    const upstream = await startUpstream()
    const { text, usage, error } = await ask(gemini(upstream), { model: `${MODEL}@text+failing`, messages: 'Hello' })
    expect(text).not.toBe('')
    expect(usage?.input_tokens).toBeGreaterThan(0)
    expect(error?.message).toContain('google')
    expect(error?.code).toMatch(/provider_error|overloaded/)
  })

  verifies('google.cut', 'is any end before the end', async () => {
    const upstream = await startUpstream()
    for (const how of ['cut', 'short', 'half']) {
      const { error, usage } = await ask(gemini(upstream), { model: `${MODEL}@text+${how}`, messages: 'Hello' })
      expect(error, how).toMatchObject({ code: 'provider_error' })
      expect(usage?.input_tokens, how).toBeGreaterThan(0)
    }
  })

  verifies('google.refused', 'is told in the vendor’s words, and one that may pass is tried again', async () => {
    const upstream = await startUpstream()
    const refused = await ask(gemini(upstream), { model: `${MODEL}@error-400`, messages: 'Hello' })
    expect(refused.error).toMatchObject({ code: 'invalid_request', message: expect.stringMatching(/^google answered 400: ./) })
    const key = await ask(gemini(upstream, { apiKey: BAD_KEY }), { model: `${MODEL}@text`, messages: 'Hello' })
    expect(key.error).toMatchObject({ code: 'provider_error', message: 'google answered 400: the key was refused' })
    expect((await ask(gemini(upstream), { model: `${MODEL}@error-503`, messages: 'Hello' })).error?.code).toBe('overloaded')
    const flaky = await ask(gemini(upstream, { retries: 1 }), { model: `${MODEL}@text+flaky`, messages: 'Hello' })
    expect(flaky.error).toBeUndefined()
    expect(flaky.text).not.toBe('')
  })

  verifies('google.not-a-stream', 'is a page, an error or a silence under 200', async () => {
    const upstream = await startUpstream()
    for (const scenario of ['html-200', 'error-in-200', 'empty', 'not-json']) {
      const { error, drafts } = await ask(gemini(upstream), { model: `${MODEL}@${scenario}`, messages: 'Hello' })
      expect(error?.code, scenario).toBe(scenario === 'error-in-200' ? 'invalid_request' : 'provider_error')
      expect(drafts, scenario).toEqual([])
    }
  })

  test('is a stream that falls silent', async () => {
    const upstream = await startUpstream()
    const provider = gemini(upstream, { timeouts: { idleMs: 50 } })
    expect((await ask(provider, { model: `${MODEL}@text+stall`, messages: 'Hello' })).error?.code).toBe('timeout')
  })
})

verifies('google.abort', 'a cancel closes the connection', async () => {
  const upstream = await startUpstream()
  const cancel = new AbortController()
  const answering = ask(gemini(upstream), { model: `${MODEL}@text+stall`, messages: 'Hello' }, cancel)
  await upstream.until(() => upstream.answers === 1)
  cancel.abort(new Error('cancelled'))
  await upstream.until(() => upstream.aborts === 1)
  expect((await answering).error?.message).toBe('cancelled')
})
