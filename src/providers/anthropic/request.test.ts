import { describe, expect, test } from 'vitest'
import type { ModelRequest } from '../../core/ports/provider.ts'
import type { ContentItem } from '../../protocol/content.ts'
import type { Message } from '../../protocol/message.ts'
import type { SessionConfig } from '../../protocol/session-config.ts'
import { verifies } from '../../../test/support/verifies.ts'
import { capabilitiesOf, traitsOf } from './models.ts'
import { outputSchema } from './output-schema.ts'
import { toRequest } from './request.ts'
import { JSON_TOOL } from './tools.ts'

const HELLO: readonly Message[] = [{ role: 'user', content: 'Hello' }]
const TOOL = { type: 'function' as const, function: { name: 'look', parameters: { type: 'object', properties: {} } } }

type Body = Record<string, unknown> & { messages: { role: string; content: Record<string, unknown>[] }[] }

function built(
  given: Partial<ModelRequest> & { settings?: Partial<SessionConfig> } = {},
  pinned?: string,
): { version: string; body: Body } {
  const { settings, ...request } = given
  const config = { modalities: ['text'], ...settings }
  return toRequest({ model: 'claude-opus-5', messages: HELLO, config, ...request }, { pinned }) as { version: string; body: Body }
}

const said = (content_items: ContentItem[]): Message => ({ role: 'assistant', content_items })

describe('settings', () => {
  verifies(['anthropic.sampling', 'anthropic.version'], 'sampling goes where it is taken, under the version that has it', () => {
    const settings = { extensions: { openai: { temperature: 1.6, top_p: 0.5 } } }
    const old = built({ model: 'claude-haiku-4-5-20251001', settings })
    expect(old).toMatchObject({ version: '2023-06-01', body: { temperature: 1 } })
    expect(old.body).not.toHaveProperty('top_p')
    for (const model of ['claude-opus-5-5', 'claude-sonnet-5', 'claude-opus-4-7', 'claude-mythos-preview']) {
      const { version, body } = built({ model, settings })
      expect(version).toBe('2026-10-21')
      expect(body).not.toHaveProperty('temperature')
    }
    expect(built({ model: 'deepseek-v4', settings })).toMatchObject({ version: '2023-06-01', body: { temperature: 1 } })
    expect(built({ model: 'claude-haiku-4-5' }).version).toBe('2026-10-21')
    const pinned = built({ model: 'claude-haiku-4-5', settings }, '2026-10-21')
    expect(pinned.version).toBe('2026-10-21')
    expect(pinned.body).not.toHaveProperty('temperature')
  })

  verifies('anthropic.max-tokens', 'max_tokens is always there, and larger than the budget to think with', () => {
    expect(built().body['max_tokens']).toBe(32_000)
    expect(built({ model: 'claude-3-haiku-20240307' }).body['max_tokens']).toBe(4_096)
    const settings = { extensions: { openai: { max_completion_tokens: 1_000, reasoning_effort: 'medium' } } }
    const { body } = built({ model: 'claude-sonnet-4-5', settings })
    expect(body).toMatchObject({ thinking: { type: 'enabled', budget_tokens: 8_192 }, max_tokens: 9_192 })
  })

  verifies('uamp:session:provider-extensions', 'thinking: true switches it on, and false off', () => {
    const switched = (thinking: boolean, model = 'claude-sonnet-5') =>
      built({ model, settings: { extensions: { anthropic: { thinking } } } }).body
    expect(switched(true)).toMatchObject({ thinking: { type: 'adaptive' }, output_config: { effort: 'medium' } })
    expect(switched(true, 'claude-sonnet-4-5')).toMatchObject({ thinking: { type: 'enabled', budget_tokens: 8_192 } })
    expect(switched(false)).toMatchObject({ thinking: { type: 'disabled' } })
  })

  verifies('anthropic.thinking-settings', 'an effort becomes what the model wants', () => {
    const effort = (model: string, reasoning_effort: string) =>
      built({ model, settings: { extensions: { openai: { reasoning_effort } } } }).body
    expect(effort('claude-sonnet-5-5', 'minimal')).toMatchObject({ thinking: { type: 'adaptive' }, output_config: { effort: 'low' } })
    expect(effort('claude-opus-4-6', 'xhigh')).toMatchObject({ output_config: { effort: 'high' } })
    expect(effort('claude-opus-5', 'xhigh')).toMatchObject({ output_config: { effort: 'xhigh' } })
    expect(effort('claude-sonnet-5', 'none')).toMatchObject({ thinking: { type: 'disabled' } })
    // These refuse to be told not to think.
    expect(effort('claude-fable-5-1', 'none')).toMatchObject({ output_config: { effort: 'low' } })
    expect(effort('claude-fable-5-1', 'none')).not.toHaveProperty('thinking')
    expect(effort('claude-3-5-haiku-20241022', 'high')).not.toHaveProperty('thinking')
    const own = { thinking: { type: 'adaptive', display: 'omitted' }, output_config: { effort: 'max' } }
    const { body } = built({ settings: { extensions: { anthropic: own, openai: { reasoning_effort: 'low' } } } })
    expect(body).toMatchObject({ thinking: own.thinking, output_config: { effort: 'max' } })
  })

  verifies('anthropic.thinking-forced', 'a forced call goes before thinking, and so do thoughts that were lost', () => {
    const openai = { reasoning_effort: 'high', tool_choice: 'required' }
    expect(built({ settings: { tools: [TOOL], extensions: { openai } } }).body).not.toHaveProperty('thinking')
    const call = { id: 'c', name: 'look', arguments: '{}' }
    const messages: Message[] = [
      ...HELLO,
      { role: 'assistant', content: '', tool_calls: [call] },
      { role: 'tool', tool_call_id: 'c', content: 'x' },
    ]
    const settings = { tools: [TOOL], extensions: { openai: { reasoning_effort: 'high' } } }
    expect(built({ model: 'claude-sonnet-4-5', messages, settings }).body).not.toHaveProperty('thinking')
    expect(built({ model: 'claude-sonnet-4-5', settings }).body).toHaveProperty('thinking')
    expect(built({ model: 'claude-sonnet-5', messages, settings }).body).toHaveProperty('thinking')
  })

  verifies('anthropic.settings', 'its own win, and others are not sent', () => {
    const openai = { model: 'my-agent', temperature: 0.2, stop: ['END', ' '], frequency_penalty: 1, made_up: true, service_tier: 'flex' }
    const own = { model: 'claude-haiku-4-5', temperature: 0.7, top_k: 5, metadata: { user_id: 'u' }, unheard: 1 }
    const { body } = built({ settings: { extensions: { openai, anthropic: own } } })
    expect(body).toMatchObject({
      model: 'claude-haiku-4-5',
      temperature: 0.7,
      top_k: 5,
      metadata: { user_id: 'u' },
      stop_sequences: ['END'],
      stream: true,
    })
    for (const key of ['made_up', 'unheard', 'frequency_penalty', 'service_tier']) expect(body).not.toHaveProperty(key)
  })

  verifies('anthropic.tool-choice', 'choices are said in its words', () => {
    const choice = (openai: Record<string, unknown>) => built({ settings: { tools: [TOOL], extensions: { openai } } }).body['tool_choice']
    expect(choice({})).toBeUndefined()
    expect(choice({ tool_choice: 'none' })).toEqual({ type: 'none' })
    expect(choice({ tool_choice: 'required' })).toEqual({ type: 'any' })
    expect(choice({ tool_choice: { type: 'function', function: { name: 'look' } } })).toEqual({ type: 'tool', name: 'look' })
    expect(choice({ parallel_tool_calls: false })).toEqual({ type: 'auto', disable_parallel_tool_use: true })
    expect(built({ settings: { extensions: { openai: { tool_choice: 'required' } } } }).body).not.toHaveProperty('tool_choice')
    const own = { tool_choice: { type: 'any' }, stop_sequences: ['END'] }
    expect(built({ settings: { tools: [TOOL], extensions: { anthropic: own } } }).body).toMatchObject(own)
  })

  verifies('anthropic.cache', 'one marker for all, those that were asked for, or none', () => {
    const cache = (cache_control: unknown) =>
      built({ settings: { instructions: 'Be brief.', tools: [TOOL], extensions: { anthropic: { cache_control } } } }).body
    expect(built().body['cache_control']).toEqual({ type: 'ephemeral' })
    expect(built({ model: 'deepseek-v4' }).body).not.toHaveProperty('cache_control')
    expect(cache({ type: 'ephemeral', ttl: '1h' })['cache_control']).toEqual({ type: 'ephemeral', ttl: '1h' })
    expect(JSON.stringify(cache(null))).not.toContain('cache_control')
    const hour = { type: 'ephemeral', ttl: '1h' }
    expect(cache({ tools: hour, system: hour, messages: { type: 'ephemeral' } })).toMatchObject({
      tools: [{ name: 'look', cache_control: hour }],
      system: [{ type: 'text', text: 'Be brief.', cache_control: hour }],
      messages: [{ role: 'user', content: [{ type: 'text', text: 'Hello', cache_control: { type: 'ephemeral' } }] }],
    })
    expect(cache({ tools: hour })).not.toHaveProperty('cache_control')
  })
})

describe('the format', () => {
  const schema = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    type: 'object',
    properties: {
      name: { type: 'string', minLength: 2, description: 'A name' },
      tags: { type: 'array', items: { oneOf: [{ type: 'string' }, { type: 'object', properties: {} }] }, minItems: 1 },
    },
    required: ['name'],
  }
  const response_format = { type: 'json_schema' as const, json_schema: { name: 'x', schema } }

  verifies('anthropic.schema', 'is a schema with closed objects, its refused keywords told in words', () => {
    const { body } = built({ settings: { response_format } })
    expect(body['output_config']).toEqual({
      format: {
        type: 'json_schema',
        schema: {
          type: 'object',
          properties: {
            name: { type: 'string', description: 'A name (minLength: 2)' },
            tags: {
              type: 'array',
              items: { anyOf: [{ type: 'string' }, { type: 'object', properties: {}, additionalProperties: false }] },
              minItems: 1,
            },
          },
          required: ['name'],
          additionalProperties: false,
        },
      },
    })
    expect(outputSchema({ $ref: '#/definitions/a', definitions: { a: { type: 'object' } } })).toEqual({
      $ref: '#/$defs/a',
      $defs: { a: { type: 'object', additionalProperties: false } },
    })
  })

  verifies('anthropic.schema-tool', 'is a forced tool where the model knows no schemas, and words where it has other tools', () => {
    const forced = built({
      model: 'claude-3-7-sonnet-20250219',
      settings: { response_format, extensions: { openai: { reasoning_effort: 'low' } } },
    })
    expect(forced.body).toMatchObject({
      tools: [{ name: JSON_TOOL, input_schema: schema }],
      tool_choice: { type: 'tool', name: JSON_TOOL },
    })
    expect(forced.body).not.toHaveProperty('thinking')
    const told = built({ model: 'claude-3-7-sonnet-20250219', settings: { response_format, tools: [TOOL] } }).body
    expect(told['tools']).toHaveLength(1)
    expect(JSON.stringify(told['system'])).toContain('JSON Schema')
    const loose = built({ settings: { response_format: { type: 'json_object' } } }).body
    expect(JSON.stringify(loose['system'])).toContain('JSON object')
  })
})

describe('the conversation', () => {
  verifies(['anthropic.system', 'anthropic.roles'], 'has its system text apart, two roles in turn, and begins with the user', () => {
    const messages: Message[] = [
      { role: 'assistant', content: 'Welcome!' },
      { role: 'user', content: 'Hi' },
      { role: 'system', content: 'Speak French.' },
      { role: 'user', content: 'Are you there?' },
    ]
    const { body } = built({ messages, settings: { instructions: 'Be brief.' } })
    expect(body['system']).toEqual([{ type: 'text', text: 'Be brief.\n\nSpeak French.' }])
    expect(body.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user'])
    expect(body.messages[2]?.content.map((block) => block['text'])).toEqual(['Hi', 'Are you there?'])
    expect(built({ messages: [] }).body.messages).toHaveLength(1)
  })

  verifies('anthropic.media', 'has pictures and documents by base64 or URL, and names what it cannot show', () => {
    const content_items: ContentItem[] = [
      { type: 'image', image: '/9j/4AAQ' },
      { type: 'image', image: { url: 'https://example.com/a.webp' } },
      { type: 'image', image: 'data:image/gif;base64,R0lGODlh' },
      { type: 'file', file: 'JVBERi0=', filename: 'a.pdf', mime_type: 'application/pdf' },
      { type: 'file', file: btoa('hello'), filename: 'a.txt', mime_type: 'text/plain' },
      { type: 'audio', audio: 'AAAA', transcript: 'Good morning' },
      { type: 'image', image: { url: '/api/content/1' }, description: 'a cat' },
      { type: 'text', text: '' },
    ]
    expect(built({ messages: [{ role: 'user', content_items }] }).body.messages[0]?.content).toEqual([
      { type: 'image', source: { type: 'base64', media_type: 'image/jpeg', data: '/9j/4AAQ' } },
      { type: 'image', source: { type: 'url', url: 'https://example.com/a.webp' } },
      { type: 'image', source: { type: 'base64', media_type: 'image/gif', data: 'R0lGODlh' } },
      { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: 'JVBERi0=' }, title: 'a.pdf' },
      { type: 'text', text: 'a.txt:\nhello' },
      { type: 'text', text: 'Good morning' },
      { type: 'text', text: '[image "a cat": it cannot be shown here]' },
    ])
  })

  verifies(
    ['anthropic.tool-pairs', 'anthropic.tool-result-media', 'anthropic.tool-input'],
    'has a result for every call, first and whole',
    () => {
      const messages: Message[] = [
        ...HELLO,
        {
          role: 'assistant',
          content: 'Looking',
          tool_calls: [
            { id: 'call.1', name: 'look', arguments: '{"a":1}' },
            { id: 'b', name: 'look', arguments: 'oops' },
            { id: 'c', name: 'look', arguments: '' },
          ],
        },
        { role: 'user', content: 'Well?' },
        { role: 'tool', tool_call_id: 'call.1', content: 'seen', content_items: [{ type: 'image', image: 'iVBORw' }] },
        { role: 'tool', tool_call_id: 'stray', content: 'nobody asked' },
        { role: 'assistant', content_items: [{ type: 'tool_result', tool_result: { call_id: 'b', result: 'bad', is_error: true } }] },
      ]
      const [, calls, results, ...rest] = built({ messages, settings: { tools: [TOOL] } }).body.messages
      expect(rest).toEqual([])
      expect(calls?.content.slice(1)).toEqual([
        { type: 'tool_use', id: 'call_1', name: 'look', input: { a: 1 } },
        { type: 'tool_use', id: 'b', name: 'look', input: { invalid_arguments: 'oops' } },
        { type: 'tool_use', id: 'c', name: 'look', input: {} },
      ])
      expect(results?.content).toEqual([
        {
          type: 'tool_result',
          tool_use_id: 'call_1',
          content: [
            { type: 'text', text: 'seen' },
            { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'iVBORw' } },
          ],
        },
        { type: 'tool_result', tool_use_id: 'b', content: [{ type: 'text', text: 'bad' }], is_error: true },
        { type: 'tool_result', tool_use_id: 'c', content: [{ type: 'text', text: expect.any(String) }], is_error: true },
        { type: 'text', text: 'Well?' },
      ])
    },
  )

  verifies(['anthropic.thinking-kept', 'anthropic.thinking-foreign'], 'keeps its own thoughts as they came, and no others', () => {
    const messages = [
      ...HELLO,
      said([
        { type: 'thinking', thinking: 'Hm', signature: 'EqQB+/ab==' },
        { type: 'thinking', thinking: '', signature: 'EqQBomitted=' },
        { type: 'thinking', thinking: '', redacted: true, signature: 'EvAF+x==' },
        { type: 'thinking', thinking: 'unsigned' },
        { type: 'thinking', thinking: '', signature: 'google:CiQB' },
        { type: 'thinking', thinking: '', signature: 'rs_1.gAAAAAB' },
        { type: 'text', text: 'Hi' },
      ]),
    ]
    expect(built({ messages }).body.messages[1]?.content).toEqual([
      { type: 'thinking', thinking: 'Hm', signature: 'EqQB+/ab==' },
      { type: 'thinking', thinking: '', signature: 'EqQBomitted=' },
      { type: 'redacted_thinking', data: 'EvAF+x==' },
      { type: 'text', text: 'Hi' },
    ])
  })
})

verifies('anthropic.capabilities', 'a model is known by its name', () => {
  expect(capabilitiesOf('claude-opus-5-5')).toMatchObject({
    context_window: 1_000_000,
    max_output_tokens: 128_000,
    supports_thinking: true,
  })
  expect(capabilitiesOf('anthropic.claude-opus-4-20250514-v1:0')).toMatchObject({ context_window: 200_000, max_output_tokens: 32_000 })
  expect(capabilitiesOf('claude-3-5-haiku-20241022')).toMatchObject({ max_output_tokens: 8_192, supports_thinking: false })
  expect(capabilitiesOf('some-model')).not.toHaveProperty('context_window')
})

test('versions are read from names old and new', () => {
  expect(traitsOf('claude-3-7-sonnet-20250219').thinking).toBe('budget')
  expect(traitsOf('claude-sonnet-4-5-20250929')).toMatchObject({ thinking: 'budget', schema: true, samples: true })
  expect(traitsOf('claude-opus-4-6')).toMatchObject({ thinking: 'adaptive', samples: true, output: 128_000 })
  expect(traitsOf('claude-mythos-preview')).toMatchObject({ thinking: 'adaptive', alwaysThinks: true, samples: false })
})

verifies('anthropic.settings', 'the user that a client of OpenAI names is the one of the request, unless another is named here', () => {
  const extensions = { openai: { user: 'ada', logprobs: true, logit_bias: { '1': 2 } } }
  const { body } = toRequest({
    model: 'claude-opus-5',
    messages: [{ role: 'user', content: 'Hi' }],
    config: { modalities: ['text'], extensions },
  })
  expect(body['metadata']).toEqual({ user_id: 'ada' })
  expect(JSON.stringify(body)).not.toMatch(/logprobs|logit_bias/)
  const own = { ...extensions, anthropic: { metadata: { user_id: 'grace' } } }
  const request = { model: 'claude-opus-5', messages: [], config: { modalities: ['text'], extensions: own } }
  expect(toRequest(request).body['metadata']).toEqual({ user_id: 'grace' })
})
