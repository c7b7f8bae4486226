import { APIError as AnthropicError } from '@anthropic-ai/sdk'
import type { ContentBlock } from '@anthropic-ai/sdk/resources/messages'
import { ApiError as GoogleError } from '@google/genai'
import { OpenAI, APIError as OpenAIError } from 'openai7'
import type { ResponseInput, ResponseInputItem } from 'openai7/resources/responses/responses'
import { describe, expect, test } from 'vitest'
import { BAD_KEY } from '../../providers/upstream/index.ts'
import { collect, deliveries, officialClients, SAID, weather } from './clients.ts'

const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const ask = [{ role: 'user' as const, content: 'The weather?' }]

describe('openai, chat completions', () => {
  const tools = [{ type: 'function' as const, function: { name: 'weather', parameters: weather } }]

  test('gets text, usage and the models', async () => {
    const { openai } = await officialClients()
    const completion = await openai.chat.completions.create({ model: 'text', messages: ask })
    expect(completion.choices[0]?.message.content).toBe(SAID)
    expect(completion.usage?.total_tokens).toBe(31)
    expect((await openai.models.list()).data.map(({ id }) => id)).toContain('text')
    const cached = await openai.chat.completions.create({ model: 'cached', messages: ask })
    expect(cached.usage?.prompt_tokens_details?.cached_tokens).toBe(1536)
  })

  test.each(deliveries)('streams %s', async (model) => {
    const { openai } = await officialClients()
    const stream = openai.chat.completions.stream({ model, messages: ask, stream_options: { include_usage: true } })
    expect((await stream.finalMessage()).content).toBe(SAID)
    expect((await stream.totalUsage()).total_tokens).toBe(31)
  })

  test('runs parallel tools with streamed arguments', async () => {
    const { openai, upstream } = await officialClients()
    const cities: string[] = []
    const run = ({ city }: { city: string }) => (cities.push(city), `sunny in ${city}`)
    const runner = openai.chat.completions.runTools({
      model: 'tools',
      stream: true,
      messages: ask,
      tools: [
        {
          type: 'function',
          function: { name: 'weather', description: 'The weather', parameters: weather, parse: JSON.parse, function: run },
        },
      ],
    })
    expect(await runner.finalContent()).toBe('The tools said: sunny in Paris | sunny in Rome, Ünïted 世界')
    expect(cities).toEqual(['Paris', 'Rome, Ünïted 世界'])
    expect(upstream.requests).toHaveLength(2)
  })

  test('sees images, schemas, refusals and why it stopped', async () => {
    const { openai } = await officialClients()
    const image = { type: 'image_url' as const, image_url: { url: `data:image/png;base64,${png}` } }
    const seen = await openai.chat.completions.create({ model: 'image', messages: [{ role: 'user', content: [image] }] })
    expect(seen.choices[0]?.message.content).toBe('I see image/png 70 bytes.')
    const schema = { ...weather, properties: { name: { type: 'string' } }, required: ['name'] }
    const format = { type: 'json_schema' as const, json_schema: { name: 'person', strict: true, schema } }
    const json = await openai.chat.completions.parse({ model: 'json', messages: ask, response_format: format })
    expect(JSON.parse(json.choices[0]?.message.content ?? '')).toEqual({ name: 'Ada Lovelace', age: 36 })
    const refused = await openai.chat.completions.create({ model: 'refusal', messages: ask })
    expect(refused.choices[0]?.message.refusal).toBe('I cannot help with that.')
    const long = await openai.chat.completions.create({ model: 'length', messages: ask })
    expect(long.choices[0]?.finish_reason).toBe('length')
  })

  test.each([400, 401, 403, 404, 408, 429, 500, 503, 529])('knows its error %i', async (status) => {
    const { openai } = await officialClients()
    const error = await openai.chat.completions.create({ model: `error-${status}`, messages: ask }).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(OpenAIError)
    expect(error).toMatchObject({ status, type: expect.any(String), requestID: expect.stringMatching(/^req_/) })
  })

  test('is refused what OpenAI refuses', async () => {
    const { openai } = await officialClients()
    const orphan = { role: 'tool' as const, tool_call_id: 'x', content: 'y' }
    await expect(openai.chat.completions.create({ model: 'text', messages: [...ask, orphan] })).rejects.toThrow(
      /preceeding message with 'tool_calls'/,
    )
    await expect(openai.chat.completions.create({ model: 'gpt-5@text', messages: ask, temperature: 0.5 })).rejects.toThrow(
      /'temperature' does not/,
    )
    await expect(openai.chat.completions.create({ model: 'tools', messages: ask })).rejects.toThrow(/needs the tool 'weather'/)
    const call = { id: 'c1', type: 'function' as const, function: { name: 'weather', arguments: '{}' } }
    const open = [...ask, { role: 'assistant' as const, tool_calls: [call] }]
    await expect(openai.chat.completions.create({ model: 'text', messages: open, tools })).rejects.toThrow(
      /did not have response messages: c1/,
    )
    const wrong = await officialClients(BAD_KEY)
    await expect(wrong.openai.models.list()).rejects.toMatchObject({ status: 401, code: 'invalid_api_key' })
  })

  test('notices an error in the stream, and its own leaving is noticed', async () => {
    const { openai, upstream } = await officialClients()
    const failing = await openai.chat.completions.create({ model: 'text+failing', messages: ask, stream: true })
    await expect(collect(failing)).rejects.toThrow(/Overloaded/)
    for await (const _ of await openai.chat.completions.create({ model: 'text+stall', messages: ask, stream: true })) break
    await upstream.until(() => upstream.aborts === 1)
  })
})

test.each(['thinking', 'thinking-reasoning', 'thinking-tags'])('openai, on a server that thinks aloud as %s', async (model) => {
  const { upstream } = await officialClients()
  const openai = new OpenAI({ apiKey: 'key', baseURL: `${upstream.url}/compatible/v1`, maxRetries: 0 })
  const tools = [{ type: 'function' as const, function: { name: 'weather', parameters: weather } }]
  const chunks = await collect(await openai.chat.completions.create({ model, messages: ask, tools, stream: true }))
  expect(JSON.stringify(chunks.map(({ choices }) => choices[0]?.delta))).toContain('ask the')
  const whole = await openai.chat.completions.create({ model, messages: ask, tools })
  expect(whole.choices[0]).toMatchObject({
    finish_reason: 'tool_calls',
    message: { tool_calls: [{ function: { arguments: '{"city":"Paris"}' } }] },
  })
})

describe('openai, responses', () => {
  const tools = [{ type: 'function' as const, name: 'weather', parameters: weather, strict: true }]

  test.each(deliveries)('streams %s', async (model) => {
    const { openai } = await officialClients()
    const final = await openai.responses.stream({ model, input: 'Hello' }).finalResponse()
    expect(final).toMatchObject({ status: 'completed', output_text: SAID, usage: { total_tokens: 31 } })
  })

  test('gets text at once, and why it stopped', async () => {
    const { openai } = await officialClients()
    expect(await openai.responses.create({ model: 'echo', input: 'Grüße "x"' })).toMatchObject({ output_text: 'You said: Grüße "x"' })
    const long = await openai.responses.create({ model: 'length', input: 'Count' })
    expect(long).toMatchObject({ status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } })
  })

  test('thinks, calls a tool and gets its thoughts back', async () => {
    const { openai } = await officialClients()
    const request = { model: 'thinking', store: false, include: ['reasoning.encrypted_content' as const], tools }
    const input = [{ role: 'user' as const, content: 'The weather in Paris?' }]
    const first = await openai.responses.stream({ ...request, input }).finalResponse()
    expect(first.output.map(({ type }) => type)).toEqual(['reasoning', 'function_call'])
    const call = first.output.find((item) => item.type === 'function_call')
    const result = { type: 'function_call_output' as const, call_id: call?.call_id ?? '', output: 'sunny' }
    const again: ResponseInput = [...input, ...(first.output as ResponseInputItem[]), result]
    const second = await openai.responses.create({ ...request, input: again })
    expect(second.output_text).toBe('After thinking: sunny')

    const forgotten = again.filter((item) => !('type' in item && item.type === 'reasoning'))
    await expect(openai.responses.create({ ...request, input: forgotten })).rejects.toThrow(/without its required 'reasoning' item/)
    const forged = again.map((item) => ('encrypted_content' in item ? { ...item, encrypted_content: 'forged' } : item))
    await expect(openai.responses.create({ ...request, input: forged })).rejects.toMatchObject({ code: 'invalid_encrypted_content' })
  })

  test('runs parallel tools', async () => {
    const { openai } = await officialClients()
    const first = await openai.responses.stream({ model: 'tools', input: 'Weather?', tools }).finalResponse()
    const calls = first.output.filter((item) => item.type === 'function_call')
    expect(calls.map((call) => JSON.parse(call.arguments))).toEqual([{ city: 'Paris' }, { city: 'Rome, Ünïted 世界' }])
    const results = calls.map(({ call_id }, n) => ({ type: 'function_call_output' as const, call_id, output: `${n}` }))
    const input: ResponseInput = [{ role: 'user', content: 'Weather?' }, ...(first.output as ResponseInputItem[]), ...results]
    expect((await openai.responses.create({ model: 'tools', input, tools })).output_text).toBe('The tools said: 0 | 1')
  })

  test('notices an error in the stream', async () => {
    const { openai } = await officialClients()
    await expect(openai.responses.stream({ model: 'text+failing', input: 'x' }).finalResponse()).rejects.toThrow(/Overloaded/)
  })
})

describe('anthropic, messages', () => {
  const base = { max_tokens: 4096, messages: ask }
  const tools = [{ name: 'weather', input_schema: weather }]

  test('gets text, usage and the models', async () => {
    const { anthropic } = await officialClients()
    const message = await anthropic.messages.create({ ...base, model: 'text' })
    expect(message).toMatchObject({
      content: [{ type: 'text', text: SAID }],
      stop_reason: 'end_turn',
      usage: { input_tokens: 25, output_tokens: 12 },
    })
    expect((await anthropic.models.list()).data.map(({ id }) => id)).toContain('text')
    const cached = await anthropic.messages.create({ ...base, model: 'cached' })
    expect(cached.usage).toMatchObject({ input_tokens: 21, cache_read_input_tokens: 1800, cache_creation_input_tokens: 188 })
  })

  test.each(deliveries)('streams %s', async (model) => {
    const { anthropic } = await officialClients()
    const stream = anthropic.messages.stream({ ...base, model })
    expect(await stream.finalText()).toBe(SAID)
    expect((await stream.finalMessage()).usage.output_tokens).toBe(12)
  })

  test('thinks, calls a tool and gets its thoughts back', async () => {
    const { anthropic } = await officialClients()
    const request = { ...base, model: 'thinking', tools, thinking: { type: 'adaptive' as const } }
    const first = await anthropic.messages.stream(request).finalMessage()
    expect(first.content.map(({ type }) => type)).toEqual(['thinking', 'redacted_thinking', 'text', 'tool_use'])
    expect(first).toEqual(expect.objectContaining(await withoutIds(anthropic.messages.create(request))))
    const use = first.content.find((block) => block.type === 'tool_use')
    expect(use?.input).toEqual({ city: 'Paris' })
    const answer = (content: ContentBlock[]) => [
      ...ask,
      { role: 'assistant' as const, content },
      { role: 'user' as const, content: [{ type: 'tool_result' as const, tool_use_id: use?.id ?? '', content: 'sunny' }] },
    ]
    const second = await anthropic.messages.stream({ ...request, messages: answer(first.content) }).finalText()
    expect(second).toBe('After thinking: sunny')

    const forgotten = first.content.filter(({ type }) => !type.endsWith('thinking'))
    await expect(anthropic.messages.create({ ...request, messages: answer(forgotten) })).rejects.toThrow(/Expected `thinking`/)
    const forged = first.content.map((block) => (block.type === 'thinking' ? { ...block, signature: 'forged' } : block))
    await expect(anthropic.messages.create({ ...request, messages: answer(forged) })).rejects.toThrow(/Invalid `signature`/)
  })

  test('runs parallel tools with streamed arguments', async () => {
    const { anthropic } = await officialClients()
    const first = await anthropic.messages.stream({ ...base, model: 'tools', tools }).finalMessage()
    const uses = first.content.filter((block) => block.type === 'tool_use')
    expect(uses.map(({ input }) => input)).toEqual([{ city: 'Paris' }, { city: 'Rome, Ünïted 世界' }])
    const results = uses.map(({ id }, n) => ({ type: 'tool_result' as const, tool_use_id: id, content: `${n}` }))
    const messages = [...ask, { role: 'assistant' as const, content: first.content }, { role: 'user' as const, content: results }]
    expect(await anthropic.messages.stream({ ...base, model: 'tools', tools, messages }).finalText()).toBe('The tools said: 0 | 1')
    const half = [...messages.slice(0, 2), { role: 'user' as const, content: results.slice(1) }]
    await expect(anthropic.messages.create({ ...base, model: 'tools', tools, messages: half })).rejects.toThrow(
      /without `tool_result` blocks/,
    )
  })

  test('sees images and schemas', async () => {
    const { anthropic } = await officialClients()
    const image = { type: 'image' as const, source: { type: 'base64' as const, media_type: 'image/png' as const, data: png } }
    const seen = await anthropic.messages.create({ ...base, model: 'image', messages: [{ role: 'user', content: [image] }] })
    expect(seen.content).toMatchObject([{ text: 'I see image/png 70 bytes.' }])
    const format = { type: 'json_schema' as const, schema: weather }
    const json = await anthropic.messages.create({ ...base, model: 'json', output_config: { format } })
    expect(json.content).toMatchObject([{ text: '{"name":"Ada Lovelace","age":36}' }])
  })

  test.each([400, 401, 403, 404, 413, 429, 500, 529])('knows its error %i', async (status) => {
    const { anthropic } = await officialClients()
    const error = await anthropic.messages.create({ ...base, model: `error-${status}` }).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(AnthropicError)
    expect(error).toMatchObject({ status, error: { type: 'error', error: { type: expect.stringMatching(/_error$|too_large/) } } })
  })

  test('is refused what Anthropic refuses, and notices an error in the stream', async () => {
    const { anthropic } = await officialClients()
    // The type has no `temperature` any more: this version of the API refuses it.
    const warm = { ...base, model: 'text', temperature: 0.5 }
    await expect(anthropic.messages.create(warm)).rejects.toThrow(/temperature/)
    await expect(anthropic.messages.stream({ ...base, model: 'text+failing' }).finalText()).rejects.toThrow(/Overloaded/)
    const wrong = await officialClients(BAD_KEY)
    await expect(wrong.anthropic.messages.create({ ...base, model: 'text' })).rejects.toMatchObject({ status: 401 })
  })
})

/** Every answer has its own ids. */
async function withoutIds(message: Promise<{ id: string; content: unknown; _request_id?: string | null | undefined }>) {
  const { content } = await message
  return { content: JSON.parse(JSON.stringify(content).replace(/toolu_\d+/g, 'toolu_000001')) as unknown }
}

describe('google, generateContent', () => {
  const contents = [{ role: 'user', parts: [{ text: 'The weather?' }] }]
  const tools = [{ functionDeclarations: [{ name: 'weather', parametersJsonSchema: weather }] }]

  test('gets text, usage and the models', async () => {
    const { google } = await officialClients()
    const response = await google.models.generateContent({ model: 'text', contents })
    expect(response.text).toBe(SAID)
    expect(response.usageMetadata).toMatchObject({ promptTokenCount: 19, candidatesTokenCount: 12, totalTokenCount: 31 })
    const models = await collect(await google.models.list())
    expect(models.map(({ name }) => name)).toContain('models/text')
    const cached = await google.models.generateContent({ model: 'cached', contents })
    expect(cached.usageMetadata?.cachedContentTokenCount).toBe(1536)
  })

  test.each(deliveries)('streams %s', async (model) => {
    const { google } = await officialClients()
    const chunks = await collect(await google.models.generateContentStream({ model, contents }))
    expect(chunks.map(({ text }) => text ?? '').join('')).toBe(SAID)
    expect(chunks.at(-1)).toMatchObject({ candidates: [{ finishReason: 'STOP' }], usageMetadata: { totalTokenCount: 31 } })
  })

  test.each(['thinking', 'tools', 'tools-without-ids'])('in a chat gives back the signatures of %s', async (model) => {
    const { google, upstream } = await officialClients()
    const chat = google.chats.create({ model, config: { tools, thinkingConfig: { includeThoughts: true } } })
    const first = await collect(await chat.sendMessageStream({ message: 'The weather?' }))
    const calls = first.flatMap(({ functionCalls }) => functionCalls ?? [])
    expect(calls.map(({ args }) => args?.city)).toEqual(['Paris', 'Rome, Ünïted 世界'].slice(0, calls.length))
    const results = calls.map(({ id, name = '' }) => ({ functionResponse: { ...(id && { id }), name, response: { result: 'sunny' } } }))
    const second = await collect(await chat.sendMessageStream({ message: results }))
    expect(second.map(({ text }) => text ?? '').join('')).toContain('{"result":"sunny"}')
    expect(upstream.requests).toHaveLength(2)
  })

  test('is refused without the signature', async () => {
    const { google } = await officialClients()
    const call = { functionCall: { name: 'weather', args: { city: 'Paris' } } }
    const result = { role: 'user', parts: [{ functionResponse: { name: 'weather', response: { result: 'sunny' } } }] }
    const turn = (parts: object[]) => ({ model: 'tools', contents: [...contents, { role: 'model', parts }, result], config: { tools } })
    await expect(google.models.generateContent(turn([call]))).rejects.toThrow(/missing a thought_signature/)
    await expect(google.models.generateContent(turn([{ ...call, thoughtSignature: 'Zm9yZ2Vk' }]))).rejects.toThrow(/Corrupted/)
    await expect(google.models.generateContent(turn([call, call]))).rejects.toThrow(/number of function response parts/)
  })

  test('sees images, schemas and blocked prompts', async () => {
    const { google } = await officialClients()
    const image = { inlineData: { mimeType: 'image/png', data: png } }
    const seen = await google.models.generateContent({ model: 'image', contents: [{ role: 'user', parts: [image] }] })
    expect(seen.text).toBe('I see image/png 70 bytes.')
    const config = { responseMimeType: 'application/json', responseJsonSchema: weather }
    expect((await google.models.generateContent({ model: 'json', contents, config })).text).toBe('{"name":"Ada Lovelace","age":36}')
    const blocked = await google.models.generateContent({ model: 'refusal', contents })
    expect(blocked.promptFeedback?.blockReason).toBe('PROHIBITED_CONTENT')
  })

  test.each([400, 403, 404, 429, 500, 503])('knows its error %i', async (status) => {
    const { google } = await officialClients()
    const error = await google.models.generateContent({ model: `error-${status}`, contents }).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(GoogleError)
    expect(error).toMatchObject({ status })
  })

  test.each(['text+failing', 'text+failing-bare'])('notices the error in the stream %s', async (model) => {
    const { google } = await officialClients()
    const stream = await google.models.generateContentStream({ model, contents })
    await expect(collect(stream)).rejects.toThrow(/Overloaded in the middle/)
  })

  test('refuses a wrong key with 400', async () => {
    const { google } = await officialClients(BAD_KEY)
    await expect(google.models.generateContent({ model: 'text', contents })).rejects.toThrow(/API key not valid/)
  })
})
