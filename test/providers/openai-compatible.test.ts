import { describe, expect } from 'vitest'
import type { ContentItem } from '../../src/protocol/content.ts'
import type { Message } from '../../src/protocol/message.ts'
import { verifies } from '../support/verifies.ts'
import { after, ask, PIXEL } from './ask.ts'
import { bodyOf, callsIn, ok, sent, some, strict, TOOLS } from './chat.ts'
import { chunk, streamOf, wholeOf } from './scripted.ts'
import { startUpstream } from './upstream/index.ts'

const DONE = '[DONE]'

describe('an answer', () => {
  verifies('compatible.text', 'is told piece by piece, however it was sent', async () => {
    const upstream = await startUpstream()
    const whole = await ask(strict(upstream), { model: 'text', messages: 'Hello' })
    expect(whole.error).toBeUndefined()
    expect(whole.text.length).toBeGreaterThan(10)
    expect(whole.drafts.filter(({ type }) => type === 'response.delta').length).toBeGreaterThan(1)
    for (const delivery of ['burst', 'split', 'crlf', 'comments', 'crlf+split+comments']) {
      expect((await ask(strict(upstream), { model: `text+${delivery}`, messages: 'Hello' })).text).toBe(whole.text)
    }
  })

  verifies('compatible.media', 'sees the picture that was sent', async () => {
    const upstream = await startUpstream()
    const content_items: ContentItem[] = [
      { type: 'text', text: 'What is this?' },
      { type: 'image', image: PIXEL, detail: 'low' },
    ]
    const { text } = await ask(strict(upstream), { model: 'image', messages: [{ role: 'user', content_items }] })
    expect(text).toContain('image/png')
    expect(sent(upstream).messages[0]?.['content']).toEqual([
      { type: 'text', text: 'What is this?' },
      { type: 'image_url', image_url: { url: `data:image/png;base64,${PIXEL}`, detail: 'low' } },
    ])
  })

  verifies('compatible.format', 'follows a schema', async () => {
    const upstream = await startUpstream()
    const schema = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'], additionalProperties: false }
    const response_format = { type: 'json_schema' as const, json_schema: { name: 'person', schema, strict: true } }
    const config = { modalities: ['text'], response_format }
    const { text, error } = await ask(strict(upstream), { model: 'json', messages: 'Who?', config })
    expect(error).toBeUndefined()
    expect(JSON.parse(text)).toBeTypeOf('object')
    expect(sent(upstream)['response_format']).toEqual(response_format)
    const wordy = await bodyOf([{ role: 'user', content: 'Who?' }], { jsonSchema: false }, config)
    expect(wordy['response_format']).toEqual({ type: 'json_object' })
    expect(wordy.messages[0]?.['content']).toContain(JSON.stringify(schema))
    const loose = await bodyOf([{ role: 'user', content: 'Who?' }], {}, { modalities: ['text'], response_format: { type: 'json_object' } })
    expect(loose['response_format']).toEqual({ type: 'json_object' })
    expect(loose.messages[0]?.['content']).toContain('JSON')
  })

  verifies('compatible.refusal', 'may be a refusal', async () => {
    const upstream = await startUpstream()
    const { items } = await ask(strict(upstream), { model: 'refusal', messages: 'Bad things' })
    expect(items).toEqual([{ type: 'text', text: expect.stringMatching(/./) as string, refusal: true }])
  })

  verifies('compatible.stop', 'says why it is not complete', async () => {
    const upstream = await startUpstream()
    expect((await ask(strict(upstream), { model: 'length', messages: 'Hello' })).stop).toBe('length')
    expect((await ask(strict(upstream), { model: 'filter', messages: 'Hello' })).stop).toBe('content_filter')
    expect((await ask(strict(upstream), { model: 'text', messages: 'Hello' })).stop).toBeUndefined()
    upstream.script('compatible', streamOf(chunk({ content: 'So' }), chunk({}, 'insufficient_system_resource'), DONE))
    const broken = await ask(some(upstream), { model: 'm', messages: 'Hello' })
    expect(broken).toMatchObject({ text: 'So', error: { code: 'overloaded' } })
  })

  verifies('compatible.usage', 'says what it cost, once', async () => {
    const upstream = await startUpstream()
    const { usage, drafts } = await ask(strict(upstream), { model: 'cached', messages: 'Hello' })
    const { input_tokens = 0, cache_read = 0, input_uncached, output, output_tokens, cached_tokens } = usage ?? {}
    expect(cache_read).toBeGreaterThan(0)
    expect(cached_tokens).toBe(cache_read)
    expect(input_uncached).toBe(input_tokens - cache_read)
    expect(output).toBe(output_tokens)
    expect(drafts.filter(({ type }) => type === 'usage.delta')).toHaveLength(1)
    expect(sent(upstream)['stream_options']).toEqual({ include_usage: true })
  })

  verifies('compatible.whole', 'may come in one piece', async () => {
    const upstream = await startUpstream()
    const message = {
      role: 'assistant',
      content: 'Hello',
      reasoning_content: 'They greet.',
      tool_calls: [{ id: 'a', type: 'function', function: { name: 'weather', arguments: { city: 'Rome' } } }],
    }
    const usage = { prompt_tokens: 5, completion_tokens: 2, total_tokens: 7 }
    upstream.script('compatible', wholeOf({ object: 'chat.completion', choices: [{ index: 0, message, finish_reason: 'stop' }], usage }))
    const answer = await ask(some(upstream), { model: 'm', messages: 'Hello' })
    expect(answer.error).toBeUndefined()
    expect(answer.items).toEqual([
      { type: 'thinking', thinking: 'They greet.' },
      { type: 'text', text: 'Hello' },
      { type: 'tool_call', tool_call: { id: 'a', name: 'weather', arguments: '{"city":"Rome"}' } },
    ])
    expect(answer.usage).toMatchObject({ input_tokens: 5, output_tokens: 2, input_uncached: 5 })
  })

  verifies('compatible.images', 'may hold images', async () => {
    const upstream = await startUpstream()
    const images = [{ type: 'image_url', image_url: { url: `data:image/png;base64,${PIXEL}` } }]
    upstream.script('compatible', streamOf(chunk({ content: 'Look', images }), chunk({}, 'stop'), DONE))
    const { items } = await ask(some(upstream, { newId: () => 'id' }), { model: 'm', messages: 'Draw' })
    expect(items).toEqual([
      { type: 'text', text: 'Look' },
      { type: 'image', image: PIXEL, format: 'png', content_id: 'id' },
    ])
  })

  verifies('compatible.audio', 'may be spoken', async () => {
    const upstream = await startUpstream()
    const first = { id: 'audio_1', data: btoa('ab'), transcript: 'Good ' }
    upstream.script(
      'compatible',
      streamOf(chunk({ audio: first }), chunk({ audio: { data: btoa('cd'), transcript: 'day' } }), chunk({}, 'stop'), DONE),
    )
    const config = { modalities: ['text', 'audio'], voice: { name: 'verse' } }
    const { drafts, items } = await ask(some(upstream, { speech: true, newId: () => 'id' }), { model: 'm', messages: 'Speak', config })
    expect(sent(upstream)).toMatchObject({ modalities: ['text', 'audio'], audio: { voice: 'verse', format: 'pcm16' } })
    expect(drafts.map(({ type }) => type)).toEqual([
      'transcript.delta',
      'audio.delta',
      'transcript.delta',
      'audio.delta',
      'audio.done',
      'transcript.done',
      'response.delta',
    ])
    expect(items).toEqual([
      { type: 'audio', audio: btoa('abcd'), format: 'pcm16', duration_ms: 0, content_id: 'id', transcript: 'Good day' },
    ])
    expect(await bodyOf([{ role: 'user', content: 'Speak' }], {}, config)).not.toHaveProperty('audio')
  })
})

describe('tools', () => {
  verifies('compatible.arguments', 'are called in parallel, their arguments told as they come', async () => {
    const upstream = await startUpstream()
    const asked = 'The weather in Paris and Rome?'
    const first = await ask(strict(upstream), { model: 'tools', messages: asked, config: TOOLS })
    const calls = callsIn(first.items)
    expect(calls.map(({ name }) => name)).toEqual(['weather', 'weather'])
    for (const { arguments: args } of calls) expect(JSON.parse(args)).toHaveProperty('city')
    const pieces = first.drafts.filter((draft) => draft.type === 'response.delta' && draft.delta.type === 'tool_call')
    expect(pieces.length).toBeGreaterThan(calls.length)
    const results = calls.map(({ id }, index) => ok(id, `sunny ${index}`))
    const second = await ask(strict(upstream), { model: 'tools', messages: after(asked, first, results), config: TOOLS })
    expect(second.error).toBeUndefined()
    expect(second.text).toContain('sunny 0 | sunny 1')
    const whole = await ask(some(upstream), { model: 'tools-whole', messages: asked, config: TOOLS })
    expect(callsIn(whole.items).map(({ arguments: args }) => Object.keys(JSON.parse(args) as object))).toEqual([['city'], ['city']])
  })

  verifies('compatible.tool-ids', 'have ids of their own', async () => {
    const upstream = await startUpstream()
    const call = (id: string | undefined, city: string) => ({
      ...(id && { id }),
      index: 0,
      function: { name: 'weather', arguments: `"${city}"` },
    })
    upstream.script(
      'compatible',
      streamOf(chunk({ tool_calls: [call('call_0', 'Rome')] }), chunk({ tool_calls: [call('call_1', 'Paris')] }), chunk({}, 'tool_calls')),
      streamOf(chunk({ tool_calls: [{ function: { name: 'weather', arguments: '{}' } }] }), chunk({}, 'tool_calls')),
    )
    const history: Message[] = [{ role: 'assistant', tool_calls: [{ id: 'call_0', name: 'weather', arguments: '{}' }] }]
    let count = 0
    const provider = some(upstream, { newId: () => `new${++count}` })
    expect(callsIn((await ask(provider, { model: 'm', messages: history, config: TOOLS })).items)).toEqual([
      { id: 'call_new1', name: 'weather', arguments: '"Rome"' },
      { id: 'call_1', name: 'weather', arguments: '"Paris"' },
    ])
    expect(callsIn((await ask(provider, { model: 'm', messages: 'Hi', config: TOOLS })).items).map(({ id }) => id)).toEqual(['call_new2'])
  })

  verifies('compatible.tool-pairs', 'are answered, each call once and at once', async () => {
    const upstream = await startUpstream()
    const call = (id: string) => ({ id, name: 'weather', arguments: '{}' })
    const messages: Message[] = [
      { role: 'tool', tool_call_id: 'never made', content: 'lost' },
      { role: 'user', content: 'Weather?' },
      { role: 'assistant', content: 'Wait.', tool_calls: [call('a'), call('b')] },
      { role: 'user', content: 'Hurry!' },
      { role: 'tool', tool_call_id: 'a', content: 'sunny' },
    ]
    const { error } = await ask(strict(upstream), { model: 'echo', messages, config: TOOLS })
    expect(error).toBeUndefined()
    expect(sent(upstream).messages.map(({ role, content }) => [role, content])).toEqual([
      ['user', 'Weather?'],
      ['assistant', 'Wait.'],
      ['tool', 'sunny'],
      ['tool', 'This call was not carried out.'],
      ['user', 'Hurry!'],
    ])
  })

  verifies('compatible.tool-media', 'show what they gave beside their text', async () => {
    const image: ContentItem = { type: 'image', image: PIXEL, format: 'png' }
    const { messages } = await bodyOf([
      { role: 'assistant', tool_calls: [{ id: 'a', name: 'shot', arguments: '' }] },
      { role: 'tool', tool_call_id: 'a', content: 'done', content_items: [image] },
    ])
    expect(messages.map(({ role }) => role)).toEqual(['assistant', 'tool', 'user'])
    expect(messages[0]?.['tool_calls']).toEqual([{ id: 'a', type: 'function', function: { name: 'shot', arguments: '{}' } }])
    expect(messages[2]?.['content']).toContainEqual({ type: 'image_url', image_url: { url: `data:image/png;base64,${PIXEL}` } })
  })

  verifies('compatible.invalid-arguments', 'whose arguments were no JSON do not fail what follows', async () => {
    const upstream = await startUpstream()
    const first = await ask(strict(upstream), { model: 'bad-arguments', messages: 'Hi', config: TOOLS })
    const [call] = callsIn(first.items)
    expect(() => JSON.parse(call?.arguments ?? '') as unknown).toThrow()
    const messages = after('Hi', first, [ok(call?.id ?? '', 'not JSON')])
    expect((await ask(strict(upstream), { model: 'text', messages, config: TOOLS })).error).toBeUndefined()
    const [told] = sent(upstream).messages[1]?.['tool_calls'] as { function: { arguments: string } }[]
    expect(JSON.parse(told?.function.arguments ?? '')).toEqual({ invalid_json: call?.arguments })
  })
})
