import { createAnthropic } from '@ai-sdk/anthropic'
import { createGoogleGenerativeAI } from '@ai-sdk/google'
import { createOpenAI } from '@ai-sdk/openai'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { createOpenAI as createOpenAI2 } from 'ai-sdk-openai2'
import { createOpenAICompatible as createOpenAICompatible1 } from 'ai-sdk-openai-compatible1'
import { describe, expect, test } from 'vitest'
import { llmAgent } from '../../../src/agents/llm/index.ts'
import type { Tool } from '../../../src/core/ports/skill.ts'
import type { ContentItem } from '../../../src/protocol/content.ts'
import { fromAiSdk, type AiSdkModel, type AiSdkOptions } from '../../../src/providers/ai-sdk/index.ts'
import { after, ask, PIXEL } from '../../providers/ask.ts'
import { callsIn, ok, TOOLS } from '../../providers/chat.ts'
import { startUpstream, type Upstream } from '../../providers/upstream/index.ts'
import { startServer } from '../../support/server.ts'
import { say, textOf } from '../../support/talk.ts'
import { overWebSocket } from '../../support/wire.ts'
import { SAID } from './clients.ts'

interface Row {
  readonly name: string
  readonly version: 'v2' | 'v3'
  readonly modelOf: (url: string) => (model: string) => AiSdkModel
  readonly model?: (scenario: string) => string
  readonly options?: AiSdkOptions
  /** A model that counts cached tokens as the SDK expects it. */
  readonly cached?: (url: string) => AiSdkModel
  /** What the next request must hold of a thought. */
  readonly kept: RegExp
  /** A tool's result with a picture, as the vendor is sent it. */
  readonly picture: RegExp
}

const THOUGHT = /"reasoning_content":"I should ask the tool/
const REASONING = /"type":"reasoning","id":"rs_\w+","encrypted_content":"gAAAA/
const COMPATIBLE = { name: 'some', apiKey: 'key', includeUsage: true, supportsStructuredOutputs: true }
const IN_USER = /"role":"user","content":\[[^\]]*Beside the result[^\]]*"image_url":\{"url":"data:image\/png;base64,/
const IN_OUTPUT = /"type":"function_call_output"[^\]]*"type":"input_image","image_url":"data:image\/png;base64,/
/** The SDK asks for it by itself, but does not know the names of our models. */
const ENCRYPTED: AiSdkOptions = { providerOptions: { openai: { include: ['reasoning.encrypted_content'] } } }
const THINKS: AiSdkOptions = { providerOptions: { anthropic: { thinking: { type: 'enabled', budgetTokens: 1024 } } } }

const rows: readonly Row[] = [
  {
    name: '@ai-sdk/openai-compatible 2',
    version: 'v3',
    modelOf: (url) => createOpenAICompatible({ ...COMPATIBLE, baseURL: `${url}/compatible/v1` }),
    cached: (url) => createOpenAICompatible({ ...COMPATIBLE, baseURL: `${url}/openai/v1` })('cached'),
    kept: THOUGHT,
    picture: IN_USER,
  },
  {
    name: '@ai-sdk/openai 3, responses',
    version: 'v3',
    modelOf: (url) => createOpenAI({ apiKey: 'key', baseURL: `${url}/openai/v1` }),
    model: (scenario) => `gpt-5.1@${scenario}`,
    options: ENCRYPTED,
    kept: REASONING,
    picture: IN_OUTPUT,
  },
  {
    name: '@ai-sdk/openai 3, chat',
    version: 'v3',
    modelOf: (url) => createOpenAI({ apiKey: 'key', baseURL: `${url}/openai/v1` }).chat,
    kept: /"tool_calls":/,
    picture: IN_USER,
  },
  {
    name: '@ai-sdk/anthropic 3',
    version: 'v3',
    modelOf: (url) => createAnthropic({ apiKey: 'key', baseURL: `${url}/anthropic/v1` }),
    model: (scenario) => `claude-sonnet-4-5@${scenario}`,
    options: THINKS,
    kept: /"type":"thinking","thinking":"[^"]+","signature":"[^"]+"/,
    picture: /"type":"tool_result"[^}]*"content":\[[^\]]*"type":"image","source":\{"type":"base64"/,
  },
  {
    name: '@ai-sdk/google 3',
    version: 'v3',
    modelOf: (url) => createGoogleGenerativeAI({ apiKey: 'key', baseURL: `${url}/google/v1beta` }),
    model: (scenario) => `gemini-3-pro@${scenario}`,
    kept: /"thoughtSignature":"[^"]+"/,
    picture: /"inlineData":\{"mimeType":"image\/png"|"inlineData":\{"data"/,
  },
  {
    name: '@ai-sdk/openai-compatible 1',
    version: 'v2',
    modelOf: (url) => createOpenAICompatible1({ ...COMPATIBLE, baseURL: `${url}/compatible/v1` }),
    cached: (url) => createOpenAICompatible1({ ...COMPATIBLE, baseURL: `${url}/openai/v1` })('cached'),
    kept: THOUGHT,
    picture: IN_USER,
  },
  {
    name: '@ai-sdk/openai 2, responses',
    version: 'v2',
    modelOf: (url) => createOpenAI2({ apiKey: 'key', baseURL: `${url}/openai/v1` }),
    model: (scenario) => `gpt-5.1@${scenario}`,
    options: ENCRYPTED,
    kept: REASONING,
    picture: IN_OUTPUT,
  },
]

const weather: Tool = {
  name: 'weather',
  parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  run: ({ city }) => `sunny in ${String(city)}`,
}

const bodyOf = (upstream: Upstream): string => JSON.stringify(upstream.requests.at(-1)?.body)

describe.each(rows)('$name, specification $version', (row) => {
  const { version, modelOf, model = (scenario) => scenario, options, kept, picture } = row

  async function start(scenario: string, more: AiSdkOptions = {}) {
    const upstream = await startUpstream()
    const sdk = modelOf(upstream.url)(model(scenario))
    expect(sdk.specificationVersion).toBe(version)
    return { upstream, provider: fromAiSdk(sdk, { retries: 0, ...options, ...more }) }
  }

  async function serve(scenario: string) {
    const { upstream, provider } = await start(scenario)
    const server = await startServer(llmAgent({ name: 'bot', model: provider, tools: [weather] }))
    const wire = await overWebSocket(server.url)
    await wire.open({ session: { modalities: ['text'] } })
    return { upstream, wire }
  }

  test('streams text and tells the usage', async () => {
    const { provider } = await start('text')
    const { text, drafts, usage, error } = await ask(provider, { model: provider.model, messages: 'Hello' })
    expect(error).toBeUndefined()
    expect(text).toBe(SAID)
    expect(drafts.filter(({ type }) => type === 'response.delta').length).toBeGreaterThan(1)
    expect(usage?.input_tokens).toBeGreaterThan(0)
    expect(usage?.output).toBeGreaterThan(0)
  })

  test('tells cached tokens', async () => {
    const { upstream, provider: usual } = await start('cached')
    const provider = row.cached ? fromAiSdk(row.cached(upstream.url)) : usual
    const { usage } = await ask(provider, { model: provider.model, messages: 'Hello' })
    expect(usage?.cache_read).toBeGreaterThan(0)
    expect(usage?.cached_tokens).toBe(usage?.cache_read)
    expect(usage?.input_uncached).toBeGreaterThanOrEqual(0)
  })

  test('runs parallel tools whose arguments come in pieces, through a server', async () => {
    const { upstream, wire } = await serve('tools')
    const heard = await say(wire, 'The weather in Paris and Rome?')
    expect(heard.at(-1)).toMatchObject({ type: 'response.done', response: { usage: { output: expect.any(Number) as number } } })
    expect(textOf(heard)).toMatch(/sunny in Paris.* \| .*sunny in Rome/)
    expect(upstream.requests).toHaveLength(2)
  })

  test('keeps its thoughts over a tool round, and over the next turn', async () => {
    const { upstream, wire } = await serve('thinking')
    const heard = await say(wire, 'The weather in Paris?')
    expect(heard.at(-1)).toMatchObject({ type: 'response.done' })
    expect(textOf(heard)).toContain('sunny in Paris')
    expect((await say(wire, 'And now?')).at(-1)).toMatchObject({ type: 'response.done' })
    for (const at of [1, 3]) expect(JSON.stringify(upstream.requests[at]?.body)).toMatch(kept)
  })

  test('sees pictures, also in the results of tools', async () => {
    const seen = await start('image')
    const content_items: ContentItem[] = [
      { type: 'text', text: 'What is this?' },
      { type: 'image', image: PIXEL },
    ]
    const { text } = await ask(seen.provider, { model: seen.provider.model, messages: [{ role: 'user', content_items }] })
    expect(text).toContain('image/png')
    const { upstream, provider } = await start('tools')
    const first = await ask(provider, { model: provider.model, messages: 'Weather?', config: TOOLS })
    const results = callsIn(first.items).map(({ id }) => ({ ...ok(id, 'look'), content_items: [{ type: 'image' as const, image: PIXEL }] }))
    await ask(provider, { model: provider.model, messages: after('Weather?', first, results), config: TOOLS })
    expect(bodyOf(upstream)).toMatch(picture)
    expect(bodyOf(upstream)).not.toContain('\\"data\\":')
  })

  test('follows a schema', async () => {
    const { upstream, provider } = await start('json')
    const schema = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'], additionalProperties: false }
    const response_format = { type: 'json_schema' as const, json_schema: { name: 'person', schema } }
    const config = { modalities: ['text'], response_format }
    const { text, error } = await ask(provider, { model: provider.model, messages: 'Who?', config })
    expect(error).toBeUndefined()
    expect(JSON.parse(text)).toMatchObject({ name: 'Ada Lovelace' })
    expect(bodyOf(upstream)).toContain('name')
  })

  test('says why it stopped', async () => {
    const { provider } = await start('length')
    expect((await ask(provider, { model: provider.model, messages: 'Hello' })).stop).toBe('length')
  })

  test.each([
    ['error-400', 'invalid_request'],
    ['error-401', 'provider_error'],
    ['error-404', 'not_found'],
    ['error-429', 'rate_limited'],
    ['error-500', 'provider_error'],
    ['error-503', 'overloaded'],
    ['html', 'provider_error'],
    ['text+cut', 'provider_error'],
    ['text+short', 'provider_error'],
    ['text+failing', expect.stringMatching(/provider_error|overloaded/)],
  ])('tells %s as %s', async (scenario, code) => {
    const { provider } = await start(scenario)
    const { error } = await ask(provider, { model: provider.model, messages: 'Hello' })
    expect(error?.code).toEqual(code)
    expect(error?.message).not.toMatch(/undefined|\[object/)
    if (scenario !== 'error-429') return
    // Google has no header for it.
    expect(error?.details).toMatchObject({ status: 429, ...(provider.name !== 'google' && { retry_after: expect.any(Number) as number }) })
  })

  test('tries again what may pass', async () => {
    const { upstream, provider } = await start('text+flaky', { retries: 1 })
    expect((await ask(provider, { model: provider.model, messages: 'Hello' })).text).toBe(SAID)
    expect(upstream.requests).toHaveLength(2)
  })

  test('gives up a model that falls silent', async () => {
    const { upstream, provider } = await start('text+stall', { timeouts: { idleMs: 100 } })
    const { error } = await ask(provider, { model: provider.model, messages: 'Hello' })
    expect(error).toMatchObject({ code: 'timeout', message: expect.stringContaining('100 ms') as string })
    await upstream.until(() => upstream.aborts === 1)
  })

  test('lets go of the connection on a cancel', async () => {
    const { upstream, wire } = await serve('text+stall')
    await wire.send({ type: 'input.text', text: 'Hello' })
    await wire.send({ type: 'response.create' })
    await wire.next('response.delta')
    await wire.send({ type: 'response.cancel' })
    await wire.next('response.cancelled')
    await upstream.until(() => upstream.aborts === 1)
  })
})

test('a model that takes no schema is told of it in words, and one that takes no file of its name', async () => {
  const upstream = await startUpstream()
  const provider = fromAiSdk(createOpenAICompatible({ name: 'some', apiKey: 'key', baseURL: `${upstream.url}/compatible/v1` })('text'))
  const schema = { type: 'object', properties: { age: { type: 'number' } } }
  const response_format = { type: 'json_schema' as const, json_schema: { name: 'person', schema } }
  const content_items: ContentItem[] = [
    { type: 'image', image: PIXEL },
    { type: 'file', file: 'UEsDBA==', filename: 'all.zip', mime_type: 'application/zip' },
  ]
  const messages = [{ role: 'user' as const, content_items }]
  const { error, text } = await ask(provider, { model: 'text', messages, config: { modalities: ['text'], response_format } })
  expect(error).toBeUndefined()
  expect(text).toBe(SAID)
  const body = bodyOf(upstream)
  expect(body).toContain(JSON.stringify(JSON.stringify(schema)).slice(1, -1))
  expect(body).toContain('"image_url":{"url":"data:image/png;base64,')
  expect(body).toContain('all.zip')
  expect(body).not.toContain('UEsDBA==')
})

test('settings of the client and options of the operator reach the vendor', async () => {
  const upstream = await startUpstream()
  const model = createOpenAI({ apiKey: 'key', baseURL: `${upstream.url}/openai/v1` })('text')
  const provider = fromAiSdk(model, { providerOptions: { openai: { serviceTier: 'default' } } })
  const extensions = {
    openai: { temperature: 0.5, max_tokens: 99, top_p: 0.9, tool_choice: 'required', user: 'ada', parallel_tool_calls: false },
  }
  await ask(provider, { model: 'text', messages: 'Hello', config: { ...TOOLS, instructions: 'Be brief.', extensions } })
  expect(upstream.requests[0]?.body).toMatchObject({
    temperature: 0.5,
    max_output_tokens: 99,
    top_p: 0.9,
    tool_choice: 'required',
    parallel_tool_calls: false,
    user: 'ada',
    service_tier: 'default',
    store: false,
  })
  expect(bodyOf(upstream)).toContain('Be brief.')
})

test('the vendor is asked with the id and the trace of the request', async () => {
  const upstream = await startUpstream()
  const provider = fromAiSdk(createOpenAI({ apiKey: 'key', baseURL: `${upstream.url}/openai/v1` })('text'))
  const { url } = await startServer(llmAgent({ name: 'bot', model: provider }))
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
  const headers = { 'content-type': 'application/json', 'x-request-id': 'mine', traceparent }
  const body = JSON.stringify({ model: 'bot', messages: [{ role: 'user', content: 'Hello' }] })
  await (await fetch(`${url}/v1/chat/completions`, { method: 'POST', headers, body })).text()
  expect(upstream.requests[0]?.headers).toMatchObject({ 'x-request-id': 'mine', traceparent })
})

test('a model of another specification, and another model, are refused', async () => {
  const upstream = await startUpstream()
  const model = createOpenAI({ apiKey: 'key', baseURL: `${upstream.url}/openai/v1` })('text')
  expect(() => fromAiSdk({ ...model, specificationVersion: 'v1', provider: 'old.chat', modelId: 'm', doStream: model.doStream })).toThrow(
    /version v1/,
  )
  const { error } = await ask(fromAiSdk(model), { model: 'gpt-4', messages: 'Hello' })
  expect(error).toMatchObject({ code: 'not_found', message: expect.stringContaining('"text"') as string })
  expect(upstream.requests).toHaveLength(0)
})

test('a server that cannot be reached is a failure of the provider, which names no address', async () => {
  const model = createOpenAI({ apiKey: 'secret-key', baseURL: 'http://127.0.0.1:9/v1' })('text')
  const { error } = await ask(fromAiSdk(model, { retries: 0 }), { model: 'text', messages: 'Hello' })
  expect(error).toMatchObject({ code: 'provider_error', message: 'openai cannot be reached' })
})
