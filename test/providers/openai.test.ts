import { describe, expect, test } from 'vitest'
import { openai } from '../../src/providers/openai/index.ts'
import type { ContentItem } from '../../src/protocol/content.ts'
import type { Message } from '../../src/protocol/message.ts'
import type { SessionConfig } from '../../src/protocol/session-config.ts'
import { verifies } from '../support/verifies.ts'
import { after, ask, PIXEL, WEATHER } from './ask.ts'
import { callsIn, ok, TOOLS } from './chat.ts'
import { streamOf, wholeOf } from './scripted.ts'
import { startUpstream, type Upstream } from './upstream/index.ts'

const THINKS = 'gpt-5.1'
const PLAIN = 'gpt-4.1-mini'

const gpt = ({ url }: Upstream, options: Partial<Parameters<typeof openai>[0]> = {}) =>
  openai({ apiKey: 'key', baseUrl: `${url}/openai/v1`, retries: 0, ...options })

type Body = { input: Record<string, unknown>[] } & Record<string, unknown>

function sent({ requests }: Upstream): Body {
  return requests.at(-1)?.body as Body
}

/** What becomes of a conversation on its way to OpenAI. */
async function bodyOf(messages: readonly Message[], config: Partial<SessionConfig> = {}, model = PLAIN): Promise<Body> {
  const upstream = await startUpstream()
  await ask(gpt(upstream), { model: `${model}@text`, messages, config: { modalities: ['text'], ...config } })
  return sent(upstream)
}

describe('an answer', () => {
  verifies(['openai-model.text', 'openai-model.stateless'], 'is told piece by piece, however it was sent', async () => {
    const upstream = await startUpstream()
    const whole = await ask(gpt(upstream), { model: `${THINKS}@text`, messages: 'Hello' })
    expect(whole.error).toBeUndefined()
    expect(whole.text.length).toBeGreaterThan(10)
    expect(whole.drafts.filter(({ type }) => type === 'response.delta').length).toBeGreaterThan(1)
    for (const delivery of ['burst', 'split', 'crlf', 'comments', 'crlf+split+comments']) {
      expect((await ask(gpt(upstream), { model: `${THINKS}@text+${delivery}`, messages: 'Hello' })).text).toBe(whole.text)
    }
    expect(upstream.requests[0]).toMatchObject({ path: '/openai/v1/responses', body: { store: false, stream: true } })
    expect(sent(upstream)).not.toHaveProperty('previous_response_id')
  })

  verifies('openai-model.media', 'sees the picture that was sent', async () => {
    const upstream = await startUpstream()
    const content_items: ContentItem[] = [
      { type: 'text', text: 'What is this?' },
      { type: 'image', image: PIXEL },
    ]
    const { text } = await ask(gpt(upstream), { model: `${THINKS}@image`, messages: [{ role: 'user', content_items }] })
    expect(text).toContain('image/png')
  })

  verifies('openai-model.format', 'follows a schema', async () => {
    const upstream = await startUpstream()
    const schema = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'], additionalProperties: false }
    const response_format = { type: 'json_schema' as const, json_schema: { name: 'person', schema, strict: true } }
    const config = { modalities: ['text'], response_format }
    const { text, error } = await ask(gpt(upstream), { model: `${THINKS}@json`, messages: 'Who?', config })
    expect(error).toBeUndefined()
    expect(JSON.parse(text)).toBeTypeOf('object')
    expect(sent(upstream)['text']).toEqual({ format: { type: 'json_schema', name: 'person', schema, strict: true } })
    const loose = await bodyOf([{ role: 'user', content: 'Who?' }], { response_format: { type: 'json_object' } })
    expect(loose['text']).toEqual({ format: { type: 'json_object' } })
    expect(JSON.stringify(loose.input)).toContain('JSON')
  })

  verifies('openai-model.refusal', 'may be a refusal', async () => {
    const upstream = await startUpstream()
    const { items } = await ask(gpt(upstream), { model: `${PLAIN}@refusal`, messages: 'Bad things' })
    expect(items).toEqual([{ type: 'text', text: expect.stringMatching(/./) as string, refusal: true }])
    const said: Message[] = [
      { role: 'user', content: 'Bad things' },
      { role: 'assistant', content_items: [...items] },
      { role: 'user', content: 'Why?' },
    ]
    expect((await bodyOf(said)).input[1]).toMatchObject({ role: 'assistant', content: [{ type: 'refusal' }] })
  })

  verifies('openai-model.stop', 'says why it is not complete', async () => {
    const upstream = await startUpstream()
    expect((await ask(gpt(upstream), { model: `${PLAIN}@length`, messages: 'Hello' })).stop).toBe('length')
    expect((await ask(gpt(upstream), { model: `${PLAIN}@filter`, messages: 'Hello' })).stop).toBe('content_filter')
    expect((await ask(gpt(upstream), { model: `${PLAIN}@text`, messages: 'Hello' })).stop).toBeUndefined()
  })

  verifies('openai-model.usage', 'says what it cost, once', async () => {
    const upstream = await startUpstream()
    const { usage, drafts } = await ask(gpt(upstream), { model: `${PLAIN}@cached`, messages: 'Hello' })
    const { input_tokens = 0, cache_read = 0, cache_write = 0, input_uncached, output, output_tokens, cached_tokens } = usage ?? {}
    expect(cache_read).toBeGreaterThan(0)
    expect(cached_tokens).toBe(cache_read)
    expect(input_uncached).toBe(input_tokens - cache_read - cache_write)
    expect(output).toBe(output_tokens)
    expect(drafts.filter(({ type }) => type === 'usage.delta')).toHaveLength(1)
  })

  verifies('openai-model.whole', 'may come in one piece', async () => {
    const upstream = await startUpstream()
    const output = [
      { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'They greet.' }], encrypted_content: 'gAAAAx' },
      { type: 'message', id: 'msg_1', role: 'assistant', content: [{ type: 'output_text', text: 'Hello' }] },
      { type: 'function_call', id: 'fc_1', call_id: 'a', name: 'weather', arguments: '{"city":"Rome"}' },
    ]
    upstream.script(
      'responses',
      wholeOf({ object: 'response', status: 'completed', error: null, output, usage: { input_tokens: 5, output_tokens: 2 } }),
    )
    const answer = await ask(gpt(upstream), { model: THINKS, messages: 'Hello' })
    expect(answer.error).toBeUndefined()
    expect(answer.items).toEqual([
      { type: 'thinking', thinking: 'They greet.', signature: 'rs_1.gAAAAx' },
      { type: 'text', text: 'Hello' },
      { type: 'tool_call', tool_call: { id: 'a', name: 'weather', arguments: '{"city":"Rome"}' } },
    ])
    expect(answer.usage).toMatchObject({ input_tokens: 5, output_tokens: 2, input_uncached: 5 })
  })
})

describe('tools', () => {
  verifies('openai-model.arguments', 'are called in parallel, their arguments told as they come', async () => {
    const upstream = await startUpstream()
    const asked = 'The weather in Paris and Rome?'
    const first = await ask(gpt(upstream), { model: `${PLAIN}@tools`, messages: asked, config: TOOLS })
    const calls = callsIn(first.items)
    expect(calls.map(({ name }) => name)).toEqual(['weather', 'weather'])
    for (const { arguments: args } of calls) expect(JSON.parse(args)).toHaveProperty('city')
    const pieces = first.drafts.filter((draft) => draft.type === 'response.delta' && draft.delta.type === 'tool_call')
    expect(pieces.length).toBeGreaterThan(calls.length)
    const results = calls.map(({ id }, index) => ok(id, `sunny ${index}`))
    const second = await ask(gpt(upstream), { model: `${PLAIN}@tools`, messages: after(asked, first, results), config: TOOLS })
    expect(second.error).toBeUndefined()
    expect(second.text).toContain('sunny 0 | sunny 1')
  })

  test('may bring their arguments only in the end', async () => {
    const upstream = await startUpstream()
    const item = { type: 'function_call', id: 'fc_1', call_id: 'a', name: 'weather', arguments: '' }
    const response = { status: 'completed', output: [] }
    upstream.script(
      'responses',
      streamOf(
        { type: 'response.output_item.added', item },
        { type: 'response.function_call_arguments.delta', item_id: 'fc_1', delta: '{"city":' },
        { type: 'response.output_item.done', item: { ...item, arguments: '{"city":"Rome"}' } },
        { type: 'response.completed', response },
      ),
    )
    const { items } = await ask(gpt(upstream), { model: PLAIN, messages: 'Hi', config: TOOLS })
    expect(callsIn(items)).toEqual([{ id: 'a', name: 'weather', arguments: '{"city":"Rome"}' }])
  })

  verifies('openai-model.tool-pairs', 'are answered, each call once', async () => {
    const upstream = await startUpstream()
    const messages: Message[] = [
      { role: 'tool', tool_call_id: 'never made', content: 'lost' },
      { role: 'user', content: 'Weather?' },
      { role: 'assistant', content: '', tool_calls: [{ id: 'a', name: 'weather', arguments: '' }] },
      { role: 'user', content: 'Hurry!' },
    ]
    const { error } = await ask(gpt(upstream), { model: `${PLAIN}@echo`, messages, config: TOOLS })
    expect(error).toBeUndefined()
    expect(sent(upstream).input).toEqual([
      { role: 'user', content: [{ type: 'input_text', text: 'Weather?' }] },
      { type: 'function_call', call_id: 'a', name: 'weather', arguments: '{}' },
      { type: 'function_call_output', call_id: 'a', output: 'This call was not carried out.' },
      { role: 'user', content: [{ type: 'input_text', text: 'Hurry!' }] },
    ])
  })

  verifies('openai-model.tool-output', 'give text and media', async () => {
    const { input } = await bodyOf([
      { role: 'assistant', tool_calls: [{ id: 'a', name: 'shot', arguments: '{}' }] },
      { role: 'tool', tool_call_id: 'a', content: 'done', content_items: [{ type: 'image', image: PIXEL, format: 'png', detail: 'high' }] },
    ])
    expect(input[1]?.['output']).toEqual([
      { type: 'input_text', text: 'done' },
      { type: 'input_image', image_url: `data:image/png;base64,${PIXEL}`, detail: 'high' },
    ])
  })

  verifies('openai-model.tools', 'are strict where it was asked for, and chosen where they are there', async () => {
    const strict = { ...WEATHER, function: { ...WEATHER.function, name: 'exact', strict: true } }
    const choice = (name: string) => ({ openai: { tool_choice: { type: 'function', name }, parallel_tool_calls: false } })
    const messages: Message[] = [{ role: 'user', content: 'Hi' }]
    const body = await bodyOf(messages, { tools: [WEATHER, strict], extensions: choice('exact') })
    expect(body['tools']).toMatchObject([
      { type: 'function', name: 'weather', strict: false },
      { type: 'function', name: 'exact', strict: true },
    ])
    expect(body).toMatchObject({ tool_choice: { type: 'function', name: 'exact' }, parallel_tool_calls: false })
    expect(await bodyOf(messages, { tools: [WEATHER], extensions: choice('gone') })).not.toHaveProperty('tool_choice')
    const toolless = await bodyOf(messages, { extensions: choice('weather') })
    for (const field of ['tools', 'tool_choice', 'parallel_tool_calls']) expect(toolless).not.toHaveProperty(field)
  })
})

describe('thoughts', () => {
  verifies(
    ['openai-model.thoughts', 'openai-model.reasoning-kept'],
    'are told, and what was encrypted goes back before what it led to',
    async () => {
      const upstream = await startUpstream()
      const asked = 'The weather in Paris?'
      const first = await ask(gpt(upstream), { model: `${THINKS}@thinking`, messages: asked, config: TOOLS })
      expect(first.items[0]).toMatchObject({
        type: 'thinking',
        thinking: expect.stringMatching(/Paris/) as string,
        signature: expect.stringMatching(/^rs_\w+\.gAAAA/) as string,
      })
      const [call] = callsIn(first.items)
      const messages = after(asked, first, [ok(call?.id ?? '', 'sunny')])
      const second = await ask(gpt(upstream), { model: `${THINKS}@thinking`, messages, config: TOOLS })
      expect(second.error).toBeUndefined()
      expect(second.text).toBe('After thinking: sunny')
      const { input } = sent(upstream)
      const at = input.findIndex(({ type }) => type === 'reasoning')
      expect(input[at]).toMatchObject({ id: expect.stringMatching(/^rs_/) as string, summary: [{ type: 'summary_text' }] })
      expect(at).toBe(1)
    },
  )

  test('have parts, and several in a row are all kept', async () => {
    const upstream = await startUpstream()
    const delta = (item_id: string, summary_index: number, text: string) => ({
      type: 'response.reasoning_summary_text.delta',
      item_id,
      summary_index,
      delta: text,
    })
    const done = (id: string) => ({
      type: 'response.output_item.done',
      item: { type: 'reasoning', id, summary: [], encrypted_content: `gAAAA-${id}` },
    })
    const said = { type: 'response.output_text.delta', item_id: 'msg_1', delta: 'Hi' }
    const end = { type: 'response.completed', response: { status: 'completed' } }
    upstream.script(
      'responses',
      streamOf(delta('rs_1', 0, 'One.'), delta('rs_1', 1, 'Two.'), done('rs_1'), delta('rs_2', 0, 'Three.'), done('rs_2'), said, end),
    )
    const { items } = await ask(gpt(upstream), { model: THINKS, messages: 'Hi' })
    expect(items).toEqual([
      { type: 'thinking', thinking: 'One.\n\nTwo.', signature: 'rs_1.gAAAA-rs_1' },
      { type: 'thinking', thinking: 'Three.', signature: 'rs_2.gAAAA-rs_2' },
      { type: 'text', text: 'Hi' },
    ])
    const { input } = await bodyOf([{ role: 'assistant', content_items: [...items] }], {}, THINKS)
    expect(input.map(({ type, id, encrypted_content }) => [type, id, encrypted_content])).toEqual([
      ['reasoning', 'rs_1', 'gAAAA-rs_1'],
      ['reasoning', 'rs_2', 'gAAAA-rs_2'],
      ['message', undefined, undefined],
    ])
  })

  verifies('openai-model.reasoning-foreign', 'of others, and those that led to nothing, stay here', async () => {
    const kinds = async (items: ContentItem[], model = THINKS) =>
      (
        await bodyOf(
          [
            { role: 'assistant', content_items: items },
            { role: 'user', content: 'Go on' },
          ],
          {},
          model,
        )
      ).input.map(({ type, role }) => type ?? role)
    const text: ContentItem = { type: 'text', text: 'Hi' }
    const thought = (signature?: string): ContentItem => ({ type: 'thinking', thinking: 'Hm', ...(signature && { signature }) })
    expect(await kinds([thought(), text])).toEqual(['message', 'user'])
    expect(await kinds([thought('EqQBCkYIAxgCIkD'), text])).toEqual(['message', 'user'])
    expect(await kinds([thought('reasoning_details:[]'), text])).toEqual(['message', 'user'])
    expect(await kinds([text, thought('rs_1.gAAAAx')])).toEqual(['message', 'user'])
    expect(await kinds([thought('gAAAAx'), text])).toEqual(['reasoning', 'message', 'user'])
    expect(await kinds([thought('rs_1.gAAAAx'), text], PLAIN)).toEqual(['message', 'user'])
  })

  verifies('openai-model.reasoning-settings', 'are asked of models that have them', async () => {
    const messages: Message[] = [{ role: 'user', content: 'Hi' }]
    const extensions = { openai: { temperature: 0.5, reasoning_effort: 'high' } }
    const thinks = await bodyOf(messages, { extensions }, THINKS)
    expect(thinks).toMatchObject({ reasoning: { effort: 'high', summary: 'auto' }, include: ['reasoning.encrypted_content'] })
    expect(thinks).not.toHaveProperty('temperature')
    const plain = await bodyOf(messages, { extensions }, PLAIN)
    expect(plain).toMatchObject({ temperature: 0.5 })
    for (const field of ['reasoning', 'include']) expect(plain).not.toHaveProperty(field)
    const off = await bodyOf(messages, { extensions: { openai: { temperature: 0.5, reasoning: { effort: 'none' } } } }, THINKS)
    expect(off).toMatchObject({ temperature: 0.5, reasoning: { effort: 'none' } })
    const detailed = await bodyOf(messages, { extensions: { openai: { reasoning: { summary: 'detailed' } } } }, THINKS)
    expect(detailed['reasoning']).toEqual({ summary: 'detailed' })
  })
})

describe('a request', () => {
  verifies('openai-model.instructions', 'has instructions, and system messages in their place', async () => {
    const body = await bodyOf(
      [
        { role: 'user', content: 'Hi' },
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'Go on' },
      ],
      { instructions: 'You are a parrot.' },
    )
    expect(body['instructions']).toBe('You are a parrot.')
    expect(body.input[1]).toEqual({ role: 'developer', content: 'Be brief.' })
  })

  verifies('openai-model.media', 'has what OpenAI takes, and words for the rest', async () => {
    const { input } = await bodyOf([
      {
        role: 'user',
        content_items: [
          { type: 'image', image: { url: 'https://example.com/a.png' } },
          { type: 'image', image: '/9j/AAAA' },
          { type: 'image', image: { url: '/api/content/1' } },
          { type: 'file', file: btoa('%PDF'), filename: 'a.pdf', mime_type: 'application/pdf' },
          { type: 'file', file: { url: 'https://example.com/a.pdf' }, filename: 'a.pdf', mime_type: 'application/pdf' },
          { type: 'file', file: btoa('{}'), filename: 'a.json', mime_type: 'application/json' },
          { type: 'audio', audio: btoa('...'), transcript: 'Good day' },
          { type: 'video', video: btoa('...'), content_id: 'v1' },
        ],
      },
    ])
    expect(input[0]?.['content']).toEqual([
      { type: 'input_image', image_url: 'https://example.com/a.png', detail: 'auto' },
      { type: 'input_image', image_url: 'data:image/jpeg;base64,/9j/AAAA', detail: 'auto' },
      { type: 'input_text', text: '[image: it cannot be shown here]' },
      { type: 'input_file', filename: 'a.pdf', file_data: `data:application/pdf;base64,${btoa('%PDF')}` },
      { type: 'input_file', file_url: 'https://example.com/a.pdf' },
      { type: 'input_text', text: 'a.json:\n{}' },
      { type: 'input_text', text: 'Good day' },
      { type: 'input_text', text: '[video, content_id v1: it cannot be shown here]' },
    ])
  })

  verifies('openai-model.settings', 'has the settings of the turn, and no others', async () => {
    const settings = {
      model: 'my-agent',
      max_tokens: 5,
      verbosity: 'low',
      top_p: 0.5,
      service_tier: 'priority',
      prompt_cache_key: 'k',
      user: 'u',
      odd: 1,
      seed: 'no number',
    }
    const { input, ...body } = await bodyOf([{ role: 'user', content: 'Hi' }], { extensions: { openai: settings } })
    expect(input).toHaveLength(1)
    expect(body).toEqual({
      model: `${PLAIN}@text`,
      stream: true,
      store: false,
      prompt_cache_key: 'k',
      user: 'u',
      top_p: 0.5,
      max_output_tokens: 5,
      text: { verbosity: 'low' },
    })
  })
})

verifies('openai-model.capabilities', 'a model is known by its name', async () => {
  const provider = openai({ apiKey: 'key', models: { mine: { reasoning: true, context_window: 5 } } })
  expect(await provider.capabilities('gpt-5.1-2025-11-13')).toMatchObject({
    supports_thinking: true,
    context_window: 400_000,
    modalities: ['text', 'image', 'file'],
  })
  expect(await provider.capabilities('ft:gpt-4.1-mini:org::id')).toMatchObject({ supports_thinking: false, context_window: 1_047_576 })
  expect(await provider.capabilities('gpt-7')).toMatchObject({ supports_thinking: true })
  expect(await provider.capabilities('mine-2')).toMatchObject({ supports_thinking: true, context_window: 5 })
  expect(await provider.capabilities('unheard-of')).not.toHaveProperty('context_window')
})
