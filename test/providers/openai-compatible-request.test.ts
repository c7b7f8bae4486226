import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, onTestFinished } from 'vitest'
import { deepseek, fireworks, ollama } from '../../src/providers/openai-compatible/index.ts'
import type { ContentItem } from '../../src/protocol/content.ts'
import type { Message } from '../../src/protocol/message.ts'
import { nodeHttp } from '../../src/server/node/http-client.ts'
import { verifies } from '../support/verifies.ts'
import { after, ask, WEATHER } from './ask.ts'
import { bodyOf, callsIn, ok, sent, some, TOOLS } from './chat.ts'
import { chunk, streamOf } from './scripted.ts'
import { startUpstream } from './upstream/index.ts'

const DONE = '[DONE]'

const thoughtsIn = (items: readonly ContentItem[]) => items.flatMap((item) => (item.type === 'thinking' ? [item.thinking] : [])).join('')

describe('thoughts', () => {
  verifies(
    ['compatible.reasoning-content', 'compatible.reasoning-back'],
    'are told, and go back with the calls in the field they came in',
    async () => {
      const upstream = await startUpstream()
      const asked = 'The weather in Paris?'
      for (const [model, field] of [
        ['thinking', 'reasoning_content'],
        ['thinking-reasoning', 'reasoning'],
      ] as const) {
        const provider = some(upstream)
        const first = await ask(provider, { model, messages: asked, config: TOOLS })
        const thought = thoughtsIn(first.items)
        expect(thought).toBe('I should ask the tool about “Paris”.')
        const messages = after(asked, first, [ok(callsIn(first.items)[0]?.id ?? '', 'sunny')])
        const second = await ask(provider, { model, messages, config: TOOLS })
        expect(second.text).toBe('After thinking: sunny')
        expect(sent(upstream).messages[1]).toMatchObject({ role: 'assistant', content: 'One moment.', [field]: thought })
      }
      const without: Message[] = [{ role: 'assistant', tool_calls: [{ id: 'a', name: 'weather', arguments: '{}' }] }]
      expect((await bodyOf(without)).messages[0]).not.toHaveProperty('reasoning_content')
      expect((await bodyOf(without, { reasoningField: 'reasoning_content' })).messages[0]).toHaveProperty('reasoning_content', '')
    },
  )

  verifies('compatible.think-tags', 'are found between tags', async () => {
    const upstream = await startUpstream()
    for (const model of ['thinking-tags', 'thinking-tags+split']) {
      const { items } = await ask(some(upstream), { model, messages: 'The weather in Paris?', config: TOOLS })
      expect(items.slice(0, 2)).toEqual([
        { type: 'thinking', thinking: 'I should ask the tool about “Paris”.' },
        { type: 'text', text: 'One moment.' },
      ])
    }
    const plain = await ask(some(upstream, { thinkTags: false }), { model: 'thinking-tags', messages: 'Paris?', config: TOOLS })
    expect(plain.text).toContain('<think>')
  })

  verifies('compatible.reasoning-details', 'with details go back as they came', async () => {
    const upstream = await startUpstream()
    const text = (piece: string) => ({ type: 'reasoning.text', text: piece, index: 0, format: 'anthropic-claude-v1' })
    const signed = { type: 'reasoning.text', signature: 'c2ln', index: 0 }
    const hidden = { type: 'reasoning.encrypted', data: 'ZGF0YQ==', index: 1, id: 'rs_1' }
    const call = { index: 0, id: 'a', function: { name: 'weather', arguments: '{}' } }
    upstream.script(
      'compatible',
      streamOf(
        chunk({ reasoning: 'I ', reasoning_details: [text('I ')] }),
        chunk({ reasoning: 'think', reasoning_details: [text('think')] }),
        chunk({ reasoning_details: [signed, hidden] }),
        chunk({ tool_calls: [call] }),
        chunk({}, 'tool_calls'),
        DONE,
      ),
    )
    const provider = some(upstream)
    const first = await ask(provider, { model: 'm', messages: 'Hi', config: TOOLS })
    expect(thoughtsIn(first.items)).toBe('I think')
    await ask(provider, { model: 'text', messages: after('Hi', first, [ok('a', 'sunny')]), config: TOOLS })
    expect(sent(upstream).messages[1]?.['reasoning_details']).toEqual([
      { type: 'reasoning.text', text: 'I think', index: 0, format: 'anthropic-claude-v1', signature: 'c2ln' },
      hidden,
    ])
    expect(sent(upstream).messages[1]).not.toHaveProperty('reasoning')
  })
})

describe('a request', () => {
  verifies('compatible.system', 'has one system message, at the beginning', async () => {
    const { messages } = await bodyOf(
      [
        { role: 'system', content: 'Be kind.' },
        { role: 'user', content: 'Hi', name: 'alice' },
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'Go on', name: 'not a name' },
      ],
      {},
      { modalities: ['text'], instructions: 'You are a parrot.' },
    )
    expect(messages).toEqual([
      { role: 'system', content: 'You are a parrot.\n\nBe kind.' },
      { role: 'user', content: 'Hi', name: 'alice' },
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'Go on' },
    ])
  })

  verifies('compatible.media', 'has what the server takes, and words for the rest', async () => {
    const items: ContentItem[] = [
      { type: 'image', image: { url: 'https://example.com/a.png' } },
      { type: 'image', image: { url: '/api/content/1' }, alt_text: 'A cat', content_id: '1' },
      { type: 'audio', audio: btoa('RIFF'), format: 'wav' },
      { type: 'audio', audio: btoa('....'), format: 'pcm16' },
      { type: 'audio', audio: { url: 'https://example.com/a.opus' }, transcript: 'Good day' },
      { type: 'file', file: btoa('a,b'), filename: 'a.csv', mime_type: 'text/csv' },
      { type: 'file', file: btoa('%PDF'), filename: 'a.pdf', mime_type: 'application/pdf' },
      { type: 'video', video: btoa('...'), description: 'A dog' },
    ]
    const { messages } = await bodyOf([{ role: 'user', content_items: items }])
    expect(messages[0]?.['content']).toEqual([
      { type: 'image_url', image_url: { url: 'https://example.com/a.png' } },
      { type: 'text', text: '[image "A cat", content_id 1: it cannot be shown here]' },
      { type: 'input_audio', input_audio: { data: btoa('RIFF'), format: 'wav' } },
      { type: 'input_audio', input_audio: { data: expect.stringMatching(/^UklGR/) as string, format: 'wav' } },
      { type: 'text', text: 'Good day' },
      { type: 'text', text: 'a.csv:\na,b' },
      { type: 'file', file: { filename: 'a.pdf', file_data: `data:application/pdf;base64,${btoa('%PDF')}` } },
      { type: 'text', text: '[video "A dog": it cannot be shown here]' },
    ])
    const plain = await bodyOf([{ role: 'user', content: 'Look', content_items: items.slice(0, 1) }], { input: [] })
    expect(plain.messages[0]?.['content']).toBe('Look\n\n[image: it cannot be shown here]')
    const said = await bodyOf([{ role: 'assistant', content_items: [{ type: 'text', text: 'Here:' }, ...items.slice(1, 2)] }])
    expect(said.messages[0]).toEqual({ role: 'assistant', content: 'Here:\n[image "A cat", content_id 1: it cannot be shown here]' })
  })

  verifies('compatible.settings', 'has the settings of the turn, and no others', async () => {
    const extensions = {
      openai: {
        model: 'my-agent',
        temperature: 0.1,
        max_completion_tokens: 5,
        stop: ['x'],
        seed: 1,
        reasoning: { effort: 'low' },
        user: 'u',
        odd: 1,
      },
      some: { model: 'other', temperature: 0.9, top_k: 4, hidden: true, tool_choice: { type: 'function', function: { name: 'weather' } } },
    }
    const body = await bodyOf(
      [{ role: 'user', content: 'Hi' }],
      { settings: ['top_k'], defaults: { top_p: 0.5 } },
      { ...TOOLS, extensions },
    )
    const { messages, tools, ...rest } = body
    expect([messages.length, tools]).toEqual([1, [WEATHER]])
    expect(rest).toEqual({
      model: 'other',
      stream: true,
      stream_options: { include_usage: true },
      temperature: 0.9,
      top_p: 0.5,
      max_tokens: 5,
      stop: ['x'],
      seed: 1,
      user: 'u',
      reasoning_effort: 'low',
      top_k: 4,
      tool_choice: { type: 'function', function: { name: 'weather' } },
    })
    const toolless = await bodyOf(
      [{ role: 'user', content: 'Hi' }],
      {},
      { modalities: ['text'], extensions: { openai: { tool_choice: 'required' } } },
    )
    expect(toolless).not.toHaveProperty('tool_choice')
  })
})

describe('presets', () => {
  verifies('compatible.affinity', 'Fireworks gets a hash of the session', async () => {
    const upstream = await startUpstream()
    const provider = fireworks({ apiKey: 'key', baseUrl: `${upstream.url}/fireworks/v1` })
    for (const messages of ['Hi', 'Hi again']) await ask(provider, { model: 'text', messages })
    const hashes = upstream.requests.map(({ headers }) => headers['x-session-affinity'])
    expect(hashes[0]).toMatch(/^[0-9a-f]{64}$/)
    expect(hashes[1]).toBe(hashes[0])
    const config = { modalities: ['text'], extensions: { openai: { prompt_cache_key: 'mine' } } }
    await ask(provider, { model: 'text', messages: 'Hi', config })
    expect(upstream.requests[2]?.headers['x-session-affinity']).not.toBe(hashes[0])
  })

  verifies('compatible.deepseek', 'DeepSeek counts its cache, and can be told not to think', async () => {
    const upstream = await startUpstream()
    const provider = deepseek({ apiKey: 'key', baseUrl: `${upstream.url}/deepseek/v1` })
    const usage = { prompt_tokens: 100, completion_tokens: 9, prompt_cache_hit_tokens: 64, prompt_cache_miss_tokens: 36, total_tokens: 109 }
    upstream.script('compatible', streamOf({ ...chunk({ content: 'Hi' }, 'stop'), usage }, DONE))
    const config = { modalities: ['text'], extensions: { openai: { reasoning_effort: 'none' } } }
    const answer = await ask(provider, { model: 'deepseek-v4-pro', messages: 'Hi', config })
    expect(answer.usage).toMatchObject({ input_tokens: 100, cached_tokens: 64, cache_read: 64, input_uncached: 36, output: 9 })
    expect(sent(upstream)).toMatchObject({ thinking: { type: 'disabled' } })
    expect(sent(upstream)).not.toHaveProperty('reasoning_effort')
    const cached = await ask(provider, { model: 'cached', messages: 'Hi' })
    expect(cached.usage?.cache_read).toBeGreaterThan(0)
  })

  verifies('compatible.no-key', 'Ollama wants no key', async () => {
    const upstream = await startUpstream()
    const { text } = await ask(ollama({ baseUrl: `${upstream.url}/ollama/v1` }), { model: 'text', messages: 'Hi' })
    expect(text).not.toBe('')
    expect(upstream.requests[0]?.headers).not.toHaveProperty('authorization')
  })

  verifies('compatible.capabilities', 'know their models, and ask the server for others', async () => {
    const upstream = await startUpstream()
    expect(await deepseek().capabilities('deepseek-v4-pro')).toMatchObject({
      provider: 'deepseek',
      context_window: 1_048_576,
      supports_thinking: true,
    })
    expect(await ollama().capabilities('llava')).toMatchObject({ id: 'llava', modalities: ['text', 'image'] })
    const http = nodeHttp()
    const asked = await some(upstream, { http }).capabilities('text')
    expect(asked).toMatchObject({ id: 'text', provider: 'some', supports_streaming: true })
    expect(upstream.answers).toBe(1)
    const data = [
      {
        id: 'a/router',
        context_length: 9,
        top_provider: { max_completion_tokens: 4 },
        architecture: { input_modalities: ['text', 'image', 'file'] },
      },
      { id: 'fire', context_length: 8, supports_image_input: false, supports_tools: false },
      { id: 'vllm', max_model_len: 7 },
    ]
    const server = createServer((_, response) => void response.end(JSON.stringify({ object: 'list', data })))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void server.close())
    const listed = some(upstream, { http, baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}` })
    expect(await listed.capabilities('a/router')).toMatchObject({
      context_window: 9,
      max_output_tokens: 4,
      modalities: ['text', 'image', 'file'],
    })
    expect(await listed.capabilities('fire')).toMatchObject({ context_window: 8, modalities: ['text'], tools: { supports_tools: false } })
    expect(await listed.capabilities('vllm')).toMatchObject({ context_window: 7 })
    http.close()
  })
})
