import { describe, expect, test } from 'vitest'
import type { ModelRequest } from '../../core/ports/provider.ts'
import type { ContentItem } from '../../protocol/content.ts'
import type { Message } from '../../protocol/message.ts'
import type { SessionConfig } from '../../protocol/session-config.ts'
import { verifies } from '../../../test/support/verifies.ts'
import { capabilitiesOf, traitsOf } from './models.ts'
import { toRequest } from './request.ts'

const HELLO: readonly Message[] = [{ role: 'user', content: 'Hello' }]
const TOOL = { type: 'function' as const, function: { name: 'look', description: 'Looks', parameters: { type: 'object', properties: {} } } }

type Body = Record<string, unknown> & {
  contents: { role: string; parts: Record<string, unknown>[] }[]
  generationConfig?: Record<string, unknown>
}

function built({ settings, ...request }: Partial<ModelRequest> & { settings?: Partial<SessionConfig> } = {}): {
  model: string
  body: Body
} {
  const config = { modalities: ['text'], ...settings }
  return toRequest({ model: 'gemini-3.5-flash', messages: HELLO, config, ...request }) as { model: string; body: Body }
}

const said = (content_items: ContentItem[]): Message => ({ role: 'assistant', content_items })

describe('settings', () => {
  verifies('google.settings', 'its own win, safety is handed on, and others are not sent', () => {
    const openai = { model: 'my-agent', temperature: 0.2, top_p: 0.5, max_tokens: 9, stop: 'END', seed: 7, made_up: 1 }
    const safetySettings = [{ category: 'HARM_CATEGORY_HARASSMENT', threshold: 'BLOCK_NONE' }]
    const google = { model: 'gemini-2.0-flash', temperature: 0.9, topK: 3, maxOutputTokens: 99, safetySettings, unheard: 1 }
    const { model, body } = built({ settings: { extensions: { openai, google } } })
    expect(model).toBe('gemini-2.0-flash')
    expect(body).toEqual({
      contents: [{ role: 'user', parts: [{ text: 'Hello' }] }],
      generationConfig: { temperature: 0.9, topP: 0.5, maxOutputTokens: 99, stopSequences: ['END'], seed: 7, topK: 3 },
      safetySettings,
    })
  })

  verifies('google.thinking-settings', 'an effort becomes what the model wants', () => {
    const thinking = (model: string, reasoning_effort?: string) =>
      built({ model, settings: { extensions: { openai: { reasoning_effort } } } }).body.generationConfig?.['thinkingConfig']
    expect(thinking('gemini-3.5-flash')).toEqual({ includeThoughts: true })
    expect(thinking('gemini-3.5-flash', 'minimal')).toEqual({ includeThoughts: true, thinkingLevel: 'minimal' })
    expect(thinking('gemini-3.1-pro-preview', 'minimal')).toEqual({ includeThoughts: true, thinkingLevel: 'low' })
    expect(thinking('gemini-pro-latest', 'xhigh')).toEqual({ includeThoughts: true, thinkingLevel: 'high' })
    expect(thinking('gemini-2.5-flash', 'medium')).toEqual({ includeThoughts: true, thinkingBudget: 8_192 })
    expect(thinking('gemini-2.5-flash', 'none')).toEqual({ includeThoughts: false, thinkingBudget: 0 })
    expect(thinking('gemini-2.5-pro', 'none')).toEqual({ includeThoughts: false, thinkingBudget: 128 })
    expect(thinking('gemini-2.0-flash', 'high')).toBeUndefined()
    expect(thinking('gemini-2.5-flash-image', 'high')).toBeUndefined()
    const own = { thinkingConfig: { thinkingBudget: -1 } }
    expect(built({ settings: { extensions: { google: own } } }).body.generationConfig).toEqual({
      thinkingConfig: { includeThoughts: true, thinkingBudget: -1 },
    })
  })

  verifies('google.tool-choice', 'choices are a mode and names', () => {
    const choice = (tool_choice: unknown) => built({ settings: { tools: [TOOL], extensions: { openai: { tool_choice } } } }).body
    expect(choice('auto')).not.toHaveProperty('toolConfig')
    expect(choice('auto')['tools']).toEqual([
      { functionDeclarations: [{ name: 'look', description: 'Looks', parametersJsonSchema: TOOL.function.parameters }] },
    ])
    expect(choice('none')['toolConfig']).toEqual({ functionCallingConfig: { mode: 'NONE' } })
    expect(choice('required')['toolConfig']).toEqual({ functionCallingConfig: { mode: 'ANY' } })
    expect(choice({ type: 'function', name: 'look' })['toolConfig']).toEqual({
      functionCallingConfig: { mode: 'ANY', allowedFunctionNames: ['look'] },
    })
  })

  verifies('google.schema', 'JSON is asked for in words where it excludes tools', () => {
    const schema = { type: 'object', properties: { a: { type: 'string' } } }
    const response_format = { type: 'json_schema' as const, json_schema: { name: 'x', schema } }
    const json = { responseMimeType: 'application/json', responseJsonSchema: schema }
    expect(built({ settings: { response_format, tools: [TOOL] } }).body.generationConfig).toMatchObject(json)
    expect(built({ model: 'gemini-2.5-flash', settings: { response_format } }).body.generationConfig).toMatchObject(json)
    const told = built({ model: 'gemini-2.5-flash', settings: { response_format, tools: [TOOL] } }).body
    expect(told.generationConfig).not.toHaveProperty('responseMimeType')
    expect(JSON.stringify(told['systemInstruction'])).toContain('JSON Schema')
    const loose = built({ settings: { response_format: { type: 'json_object' } } }).body.generationConfig
    expect(loose).toMatchObject({ responseMimeType: 'application/json' })
    expect(loose).not.toHaveProperty('responseJsonSchema')
  })
})

describe('the conversation', () => {
  verifies(['google.system', 'google.roles'], 'has its system text apart, two roles in turn, and begins with the user', () => {
    const messages: Message[] = [
      { role: 'assistant', content: 'Welcome!' },
      { role: 'user', content: 'Hi' },
      { role: 'system', content: 'Speak French.' },
      { role: 'user', content: 'Are you there?' },
    ]
    const { body } = built({ messages, settings: { instructions: 'Be brief.' } })
    expect(body['systemInstruction']).toEqual({ parts: [{ text: 'Be brief.\n\nSpeak French.' }] })
    expect(body.contents.map(({ role }) => role)).toEqual(['user', 'model', 'user'])
    expect(body.contents[2]?.parts).toEqual([{ text: 'Hi' }, { text: 'Are you there?' }])
    expect(built({ messages: [] }).body.contents).toHaveLength(1)
  })

  verifies('google.media', 'has all media with its type, and names what it cannot show', () => {
    const content_items: ContentItem[] = [
      { type: 'image', image: '/9j/4AAQ' },
      { type: 'image', image: { url: 'https://example.com/a.webp?x=1' } },
      { type: 'audio', audio: 'SUQz', format: 'mp3' },
      { type: 'audio', audio: 'AAAA', format: 'pcm16' },
      { type: 'video', video: { url: 'https://example.com/clip' } },
      { type: 'file', file: 'JVBERi0=', filename: 'a.pdf', mime_type: 'application/pdf' },
      { type: 'file', file: btoa('{}'), filename: 'a.json', mime_type: 'application/json' },
      { type: 'file', file: 'UEsDBA==', filename: 'a.zip', mime_type: 'application/zip' },
    ]
    const parts = built({ messages: [{ role: 'user', content_items }] }).body.contents[0]?.parts
    expect(parts).toEqual([
      { inlineData: { mimeType: 'image/jpeg', data: '/9j/4AAQ' } },
      { fileData: { mimeType: 'image/webp', fileUri: 'https://example.com/a.webp?x=1' } },
      { inlineData: { mimeType: 'audio/mp3', data: 'SUQz' } },
      { inlineData: { mimeType: 'audio/wav', data: expect.stringMatching(/^UklGR/) } },
      { fileData: { mimeType: 'video/mp4', fileUri: 'https://example.com/clip' } },
      { inlineData: { mimeType: 'application/pdf', data: 'JVBERi0=' } },
      { text: 'a.json:\n{}' },
      { text: '[file "a.zip": it cannot be shown here]' },
    ])
  })

  const shot: ContentItem = { type: 'image', image: 'iVBORw' }
  const called: Message[] = [
    ...HELLO,
    {
      role: 'assistant',
      tool_calls: [
        { id: 'a', name: 'look', arguments: '{"x":1}' },
        { id: 'uamp-1', name: 'see', arguments: 'oops' },
        { id: 'c', name: 'look', arguments: '' },
      ],
    },
    { role: 'tool', tool_call_id: 'uamp-1', content: 'plain' },
    { role: 'tool', tool_call_id: 'a', content: '{"seen":true}', content_items: [shot] },
    { role: 'tool', tool_call_id: 'stray', content: 'nobody asked' },
    { role: 'user', content: 'Well?' },
  ]

  verifies(['google.tool-pairs', 'google.tool-results'], 'has a response for every call, with its media', () => {
    const [, model, user, ...rest] = built({ messages: called, settings: { tools: [TOOL] } }).body.contents
    expect(rest).toEqual([])
    expect(model?.parts.map((part) => part['functionCall'])).toEqual([
      { id: 'a', name: 'look', args: { x: 1 } },
      { name: 'see', args: { invalid_arguments: 'oops' } },
      { id: 'c', name: 'look', args: {} },
    ])
    const media = { inlineData: { mimeType: 'image/png', data: 'iVBORw' } }
    expect(user?.parts).toEqual([
      { functionResponse: { id: 'a', name: 'look', response: { output: { seen: true } }, parts: [media] } },
      { functionResponse: { name: 'see', response: { output: 'plain' } } },
      { functionResponse: { id: 'c', name: 'look', response: { error: expect.any(String) } } },
      { text: 'Well?' },
    ])
    const older = built({ model: 'gemini-2.5-flash', messages: called, settings: { tools: [TOOL] } }).body.contents[2]?.parts
    expect(older?.map((part) => Object.keys(part)[0])).toEqual([
      'functionResponse',
      'functionResponse',
      'functionResponse',
      'inlineData',
      'text',
    ])
  })

  verifies(['google.signatures', 'google.unsigned'], 'has every signature in its place, and none that is another’s', () => {
    const call = (id: string): ContentItem => ({ type: 'tool_call', tool_call: { id, name: 'look', arguments: '{}' } })
    const items: ContentItem[] = [
      { type: 'thinking', thinking: 'A thought', signature: 'google:one' },
      { type: 'thinking', thinking: 'For people' },
      { type: 'thinking', thinking: '', signature: 'EqQBforeign==' },
      { type: 'text', text: 'Let me see.' },
      { type: 'thinking', thinking: '', signature: 'google:two' },
      { type: 'thinking', thinking: '', signature: 'google:three' },
      call('a'),
      call('b'),
    ]
    const parts = (model: string, content: ContentItem[]) => built({ model, messages: [...HELLO, said(content)] }).body.contents[1]?.parts
    expect(parts('gemini-3.5-flash', items)).toEqual([
      { text: 'A thought', thought: true, thoughtSignature: 'one' },
      { text: 'Let me see.' },
      { text: '', thoughtSignature: 'two' },
      { functionCall: { id: 'a', name: 'look', args: {} }, thoughtSignature: 'three' },
      { functionCall: { id: 'b', name: 'look', args: {} } },
    ])
    expect(parts('gemini-3.5-flash', [call('a'), call('b')])?.map((part) => part['thoughtSignature'])).toEqual([
      'skip_thought_signature_validator',
      undefined,
    ])
    expect(parts('gemini-2.5-flash', [call('a')])?.[0]).not.toHaveProperty('thoughtSignature')
  })
})

verifies('google.capabilities', 'a model is known by its name', () => {
  expect(capabilitiesOf('gemini-3.8-flash')).toMatchObject({
    context_window: 1_048_576,
    max_output_tokens: 65_536,
    supports_thinking: true,
  })
  expect(capabilitiesOf('gemini-2.0-flash')).toMatchObject({ max_output_tokens: 8_192, supports_thinking: false })
  expect(capabilitiesOf('gemma-4')).not.toHaveProperty('context_window')
})

test('a name without a number is the newest', () => {
  expect(traitsOf('gemini-flash-latest')).toMatchObject({ thinking: 'level', third: true, pro: false })
  expect(traitsOf('models/gemini-2.5-pro')).toMatchObject({ thinking: 'budget', third: false, pro: true })
})

test('probabilities of tokens are asked for where a client of OpenAI does', () => {
  const extensions = { openai: { logprobs: true, top_logprobs: 3, seed: 7, user: 'ada' } }
  const { body } = toRequest({
    model: 'gemini-3-pro',
    messages: [{ role: 'user', content: 'Hi' }],
    config: { modalities: ['text'], extensions },
  })
  expect(body['generationConfig']).toMatchObject({ responseLogprobs: true, logprobs: 3, seed: 7 })
  expect(JSON.stringify(body)).not.toContain('ada')
})
