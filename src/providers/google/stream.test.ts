import { describe, expect } from 'vitest'
import { Output } from '../../core/reading/output.ts'
import type { ContentItem } from '../../protocol/content.ts'
import type { Draft } from '../../protocol/events.ts'
import { verifies } from '../../../test/support/verifies.ts'
import { AnswerStream } from './stream.ts'

function read(...chunks: readonly unknown[]): { drafts: Draft[]; items: ContentItem[] } {
  let made = 0
  const stream = new AnswerStream(() => `${++made}`)
  const drafts: Draft[] = []
  for (const chunk of chunks) stream.read(JSON.stringify(chunk), drafts)
  stream.end(drafts)
  const output = new Output()
  for (const draft of drafts) output.add(draft)
  return { drafts, items: output.items() }
}

const chunk = (...parts: readonly unknown[]) => ({ candidates: [{ content: { role: 'model', parts }, index: 0 }] })
const finish = (finishReason: string, finishMessage?: string) => ({ candidates: [{ finishReason, finishMessage }] })

describe('signatures', () => {
  verifies('google.signatures', 'of calls and texts stand before them, those of thoughts on them', () => {
    const { items } = read(
      chunk({ text: 'Hm', thought: true }),
      chunk({ text: '!', thought: true, thoughtSignature: 'a' }),
      chunk({ text: 'And', thought: true, thoughtSignature: 'b' }),
      chunk({ text: 'Hel' }),
      chunk({ text: 'lo', thoughtSignature: 'c' }),
      chunk({ functionCall: { name: 'look', args: { x: 1 } }, thoughtSignature: 'd' }, { functionCall: { id: 'own', name: 'look' } }),
      finish('STOP'),
    )
    expect(items).toEqual([
      { type: 'thinking', thinking: 'Hm!', signature: 'google:a' },
      { type: 'thinking', thinking: 'And', signature: 'google:b' },
      { type: 'text', text: 'Hel' },
      { type: 'thinking', thinking: '', signature: 'google:c' },
      { type: 'text', text: 'lo' },
      { type: 'thinking', thinking: '', signature: 'google:d' },
      { type: 'tool_call', tool_call: { id: 'uamp-1', name: 'look', arguments: '{"x":1}' } },
      { type: 'tool_call', tool_call: { id: 'own', name: 'look', arguments: '{}' } },
    ])
  })
})

describe('the end', () => {
  verifies('google.finish', 'has its reason, or is a failure', () => {
    const stop = (reason: string) => read(chunk({ text: 'x' }), finish(reason)).drafts.at(-1)
    expect(stop('STOP')?.type).toBe('response.delta')
    expect(stop('MAX_TOKENS')).toMatchObject({ response: { extensions: { uamp: { stop_reason: 'length' } } } })
    for (const reason of ['SAFETY', 'RECITATION', 'SPII', 'IMAGE_SAFETY']) {
      expect(stop(reason)).toMatchObject({ response: { extensions: { uamp: { stop_reason: 'content_filter' } } } })
    }
    const malformed = () => read(finish('MALFORMED_FUNCTION_CALL', 'Malformed function call: look(')).drafts
    expect(malformed).toThrow(expect.objectContaining({ code: 'provider_error', details: { finish_reason: 'MALFORMED_FUNCTION_CALL' } }))
    expect(malformed).toThrow('Malformed function call: look(')
    expect(() => stop('toString')).toThrow('google stopped')
  })

  verifies('google.cut', 'without a reason is none', () => {
    expect(() => read(chunk({ text: 'x' }))).toThrow('cut off')
  })

  verifies('google.usage', 'has the newest counts, what tools put in among the input', () => {
    const usageMetadata = {
      promptTokenCount: 100,
      toolUsePromptTokenCount: 10,
      cachedContentTokenCount: 80,
      candidatesTokenCount: 5,
      thoughtsTokenCount: 7,
    }
    const { drafts } = read({ usageMetadata: { promptTokenCount: 100 } }, { ...finish('STOP'), usageMetadata })
    const delta = { input_tokens: 110, output_tokens: 12, cached_tokens: 80, cache_read: 80, input_uncached: 30, output: 12, reasoning: 7 }
    expect(drafts).toEqual([{ type: 'usage.delta', delta }])
  })
})

verifies('google.images', 'pictures and speech are media', () => {
  const { drafts } = read(
    chunk({ inlineData: { mimeType: 'image/png', data: 'iVBORw' } }, { inlineData: { mimeType: 'audio/L16;rate=24000', data: 'AAAA' } }),
    finish('STOP'),
  )
  expect(drafts).toEqual([
    { type: 'response.delta', delta: { type: 'image', image: 'iVBORw', format: 'png' } },
    { type: 'response.delta', delta: { type: 'audio', audio: 'AAAA', format: 'pcm16' } },
  ])
})

verifies('google.stream', 'what is unknown, null or missing is passed over', () => {
  const { items } = read(
    {},
    { candidates: null, usageMetadata: null, promptFeedback: {} },
    { candidates: [{ content: null }] },
    chunk({ executableCode: { code: '1' } }, { text: '' }, { text: 'Hello', videoMetadata: {} }),
    finish('STOP'),
  )
  expect(items).toEqual([{ type: 'text', text: 'Hello' }])
})

verifies('google.stream-error', 'errors have their code and words', () => {
  const failed = (error: unknown) => () => read({ error })
  expect(failed({ code: 503, message: 'The model is overloaded.', status: 'UNAVAILABLE' })).toThrow('The model is overloaded.')
  expect(failed({ code: 503, message: 'x' })).toThrow(expect.objectContaining({ code: 'overloaded' }))
  expect(failed({ code: 429, message: 'x' })).toThrow(expect.objectContaining({ code: 'rate_limited' }))
})
