import { describe, expect, test } from 'vitest'
import { Output } from '../../core/reading/output.ts'
import type { ContentItem } from '../../protocol/content.ts'
import type { Draft } from '../../protocol/events.ts'
import { verifies } from '../../../test/support/verifies.ts'
import { JSON_TOOL } from './tools.ts'
import { AnswerStream } from './stream.ts'

const STOP = { type: 'message_stop' }

function read(...events: readonly unknown[]): { drafts: Draft[]; items: ContentItem[] } {
  const stream = new AnswerStream()
  const drafts: Draft[] = []
  for (const event of events) stream.read(JSON.stringify(event), drafts)
  stream.end(drafts)
  const output = new Output()
  for (const draft of drafts) output.add(draft)
  return { drafts, items: output.items() }
}

const block = (content_block: unknown, ...deltas: readonly unknown[]): unknown[] => [
  { type: 'content_block_start', index: 0, content_block },
  ...deltas.map((delta) => ({ type: 'content_block_delta', index: 0, delta })),
  { type: 'content_block_stop', index: 0 },
]
const ended = (stop_reason: string, stop_details?: unknown) => [
  { type: 'message_delta', delta: { stop_reason, stop_details }, usage: {} },
  STOP,
]

describe('thoughts', () => {
  verifies('anthropic.thoughts', 'that follow each other stay apart, each with its signature', () => {
    const thought = (thinking: string, signature: string) =>
      block({ type: 'thinking', thinking: '', signature: '' }, { type: 'thinking_delta', thinking }, { type: 'signature_delta', signature })
    const { items } = read(
      ...thought('One', 's1'),
      ...thought('Two', 's2'),
      ...block({ type: 'redacted_thinking', data: 'd' }),
      ...thought('Three', 's3'),
      STOP,
    )
    expect(items).toEqual([
      { type: 'thinking', thinking: 'One', signature: 's1' },
      { type: 'thinking', thinking: 'Two', signature: 's2' },
      { type: 'thinking', thinking: '', redacted: true, signature: 'd' },
      { type: 'thinking', thinking: 'Three', signature: 's3' },
    ])
  })

  verifies('anthropic.thinking-kept', 'whose text is left out keep their signature', () => {
    const { items } = read(...block({ type: 'thinking', thinking: '', signature: '' }, { type: 'signature_delta', signature: 's' }), STOP)
    expect(items).toEqual([{ type: 'thinking', thinking: '', signature: 's' }])
  })
})

describe('calls', () => {
  verifies('anthropic.arguments', 'without arguments have an empty object', () => {
    const { items } = read(
      ...block({ type: 'tool_use', id: 't', name: 'now', input: {} }, { type: 'input_json_delta', partial_json: '' }),
      STOP,
    )
    expect(items).toEqual([{ type: 'tool_call', tool_call: { id: 't', name: 'now', arguments: '{}' } }])
  })

  test('whose input comes whole have it once', () => {
    const { items } = read(...block({ type: 'tool_use', id: 't', name: 'now', input: { a: 1 } }), STOP)
    expect(items).toEqual([{ type: 'tool_call', tool_call: { id: 't', name: 'now', arguments: '{"a":1}' } }])
  })

  verifies('anthropic.schema-tool', 'of the tool that stands for a schema are the answer', () => {
    const { items } = read(
      ...block(
        { type: 'tool_use', id: 't', name: JSON_TOOL, input: {} },
        { type: 'input_json_delta', partial_json: '{"a":' },
        { type: 'input_json_delta', partial_json: '1}' },
      ),
      ...ended('tool_use'),
    )
    expect(items).toEqual([{ type: 'text', text: '{"a":1}' }])
  })
})

describe('blocks that overlap', () => {
  const start = (index: number, content_block: unknown) => ({ type: 'content_block_start', index, content_block })
  const delta = (index: number, given: unknown) => ({ type: 'content_block_delta', index, delta: given })
  const stop = (index: number) => ({ type: 'content_block_stop', index })

  verifies('anthropic.interleaved', 'each delta belongs to the block that its index names', () => {
    const { items } = read(
      start(0, { type: 'thinking', thinking: '' }),
      start(1, { type: 'text', text: '' }),
      delta(1, { type: 'text_delta', text: 'Hel' }),
      delta(0, { type: 'thinking_delta', thinking: 'I th' }),
      start(2, { type: 'tool_use', id: 'a', name: 'one', input: {} }),
      start(3, { type: 'tool_use', id: 'b', name: 'two', input: {} }),
      delta(3, { type: 'input_json_delta', partial_json: '{"b":' }),
      delta(2, { type: 'input_json_delta', partial_json: '{"a":' }),
      delta(0, { type: 'thinking_delta', thinking: 'ink' }),
      delta(0, { type: 'signature_delta', signature: 's' }),
      stop(1),
      delta(3, { type: 'input_json_delta', partial_json: '2}' }),
      stop(3),
      stop(0),
      delta(2, { type: 'input_json_delta', partial_json: '1}' }),
      stop(2),
      STOP,
    )
    expect(items).toEqual([
      { type: 'thinking', thinking: 'I think', signature: 's' },
      { type: 'text', text: 'Hel' },
      { type: 'tool_call', tool_call: { id: 'a', name: 'one', arguments: '{"a":1}' } },
      { type: 'tool_call', tool_call: { id: 'b', name: 'two', arguments: '{"b":2}' } },
    ])
  })

  test('the first of them is told at once, and a block without an end is told with the message', () => {
    const stream = new AnswerStream()
    const drafts: Draft[] = []
    const tell = (event: unknown) => stream.read(JSON.stringify(event), drafts)
    tell(start(0, { type: 'text', text: 'a' }))
    tell(start(1, { type: 'text', text: 'b' }))
    tell(delta(0, { type: 'text_delta', text: 'c' }))
    expect(drafts).toHaveLength(2)
    tell(STOP)
    expect(drafts.map((draft) => draft.type === 'response.delta' && draft.delta.type === 'text' && draft.delta.text)).toEqual([
      'a',
      'c',
      'b',
    ])
  })

  test('a block may not make another wait for ever', () => {
    const stream = new AnswerStream('claude')
    const drafts: Draft[] = []
    stream.read(JSON.stringify(start(0, { type: 'text', text: 'a' })), drafts)
    stream.read(JSON.stringify(start(1, { type: 'text', text: '' })), drafts)
    const flood = JSON.stringify(delta(1, { type: 'text_delta', text: 'x' }))
    expect(() => {
      for (let sent = 0; sent <= 65_536; sent++) stream.read(flood, drafts)
    }).toThrow('claude sent too much of one block before it ended another')
  })
})

describe('the end', () => {
  verifies('anthropic.stop', 'has its reason', () => {
    const stop = (...end: Parameters<typeof ended>) => read(...ended(...end)).drafts.at(-1)
    for (const reason of ['max_tokens', 'model_context_window_exceeded', 'pause_turn']) {
      expect(stop(reason)).toMatchObject({ type: 'response.done', response: { extensions: { uamp: { stop_reason: 'length' } } } })
    }
    for (const reason of ['end_turn', 'tool_use', 'stop_sequence', 'something_new']) expect(stop(reason)?.type).toBe('usage.delta')
    const { drafts, items } = read(...ended('refusal', { type: 'refusal', category: 'bio', explanation: 'I cannot help with that.' }))
    expect(items).toEqual([{ type: 'text', text: 'I cannot help with that.', refusal: true }])
    expect(drafts.at(-1)).toMatchObject({ response: { extensions: { uamp: { stop_reason: 'content_filter' } } } })
  })

  verifies('anthropic.usage', 'has the newest counts, thinking by itself', () => {
    const { drafts } = read(
      {
        type: 'message_start',
        message: { usage: { input_tokens: 10, output_tokens: 1, cache_read_input_tokens: 5, cache_creation_input_tokens: 2 } },
      },
      {
        type: 'message_delta',
        delta: {},
        usage: { input_tokens: null, output_tokens: 30, output_tokens_details: { thinking_tokens: 12 } },
      },
      STOP,
    )
    const delta = {
      input_tokens: 10,
      output_tokens: 30,
      cached_tokens: 7,
      cache_read: 5,
      cache_write: 2,
      input_uncached: 10,
      output: 30,
      reasoning: 12,
    }
    expect(drafts).toEqual([{ type: 'usage.delta', delta }])
  })
})

verifies('anthropic.text', 'what is unknown, null or missing is passed over', () => {
  const { items } = read(
    { type: 'ping' },
    { type: 'message_annotated', delta: { text: 'x' } },
    {},
    { type: 'message_start' },
    { type: 'content_block_start', content_block: null },
    { type: 'content_block_delta', delta: null },
    ...block({ type: 'server_tool_use', id: 's', name: 'web_search' }, { type: 'input_json_delta', partial_json: '{' }),
    ...block({ type: 'text', text: 'Hel' }, { type: 'text_delta', text: 'lo' }, { type: 'citations_delta', citation: {} }),
    STOP,
  )
  expect(items).toEqual([{ type: 'text', text: 'Hello' }])
})

verifies('anthropic.stream-error', 'errors have their code and words, but not those of the key', () => {
  const failed = (error: unknown) => () => read({ type: 'error', error })
  expect(failed({ type: 'overloaded_error', message: 'Overloaded' })).toThrow(expect.objectContaining({ code: 'overloaded' }))
  expect(failed({ type: 'rate_limit_error', message: 'Slow down' })).toThrow('Slow down')
  expect(failed({ type: 'authentication_error', message: 'invalid x-api-key sk-1' })).not.toThrow('sk-1')
  expect(failed(null)).toThrow(expect.objectContaining({ code: 'provider_error' }))
})
