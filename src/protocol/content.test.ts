import { describe, expect, test } from 'vitest'
import { verifies } from '../../test/support/verifies.ts'
import { ContentItem, withContentId, type MediaItem } from './content.ts'
import { Message, textOf } from './message.ts'

const url = { url: 'https://example.com/a' }
const handle = { content_id: '0f8fad5b-d9cb-469f-a165-70867728950e', description: 'A cat', display_hint: 'inline' }

const items = [
  { verifies: 'uamp:events:item-text', item: { type: 'text', text: 'hi' }, required: ['text'] },
  {
    verifies: 'uamp:events:item-image',
    item: { type: 'image', image: url, format: 'png', detail: 'low', alt_text: 'a cat', ...handle },
    required: ['image'],
  },
  {
    verifies: 'uamp:events:item-audio',
    item: { type: 'audio', audio: url, format: 'mp3', duration_ms: 5, transcript: 'miaow', ...handle },
    required: ['audio'],
  },
  {
    verifies: 'uamp:events:item-video',
    item: { type: 'video', video: url, format: 'mp4', duration_ms: 5, thumbnail: 'https://example.com/t', ...handle },
    required: ['video'],
  },
  {
    verifies: 'uamp:events:item-file',
    item: { type: 'file', file: url, filename: 'a.pdf', mime_type: 'application/pdf', size_bytes: 5, ...handle },
    required: ['file', 'filename', 'mime_type'],
  },
  {
    verifies: 'uamp:events:item-tool-call',
    item: { type: 'tool_call', tool_call: { id: 'c', name: 'n', arguments: '{}' } },
    required: ['tool_call'],
  },
  {
    verifies: 'uamp:events:item-tool-result',
    item: {
      type: 'tool_result',
      tool_result: {
        call_id: 'c',
        result: '{}',
        is_error: true,
        status: 'failed',
        content_items: [{ type: 'image', image: url }],
        data: [1],
      },
    },
    required: ['tool_result'],
  },
] as const

describe('content items', () => {
  for (const { verifies: id, item, required } of items) {
    verifies(id, `a ${item.type} item is taken as it is, and refused without what it needs`, () => {
      expect(ContentItem.parse(item)).toEqual(item)
      for (const name of required) {
        const result = ContentItem.safeParse({ ...item, [name]: undefined })
        expect(result.error?.issues.map(({ path }) => path.join('.'))).toEqual([name])
      }
    })
  }

  verifies('uamp:events:item-tool-result', 'tool results may hold tool results', () => {
    const inner = { type: 'tool_result', tool_result: { call_id: 'd', result: '', content_items: [{ type: 'text' }] } }
    const { error } = ContentItem.safeParse({ type: 'tool_result', tool_result: { call_id: 'c', result: '', content_items: [inner] } })
    expect(error?.issues[0]?.path.join('.')).toBe('tool_result.content_items.0.tool_result.content_items.0.text')
  })

  verifies('uamp:events:media-encoding', 'media is base64 or a URL, and nothing else', () => {
    for (const type of ['image', 'audio', 'video', 'file']) {
      const item = (media: unknown) => ContentItem.safeParse({ type, [type]: media, filename: 'f', mime_type: 'm/t' }).success
      expect([item('AAAA'), item(url), item(7), item({}), item({ url: 7 }), item(null)]).toEqual([true, true, false, false, false, false])
    }
  })

  test('a thought is an item too', () => {
    const thought = { type: 'thinking', thinking: 'Hm', stage: 'planning', redacted: true, signature: 's' }
    expect(ContentItem.parse(thought)).toEqual(thought)
  })
})

describe('content ids', () => {
  const newId = () => 'new'
  const uuid = 'A987FBC9-4BED-4078-8F07-9141BA07C9F3'

  verifies('uamp:content:description', 'an item keeps its id and its description', () => {
    const item = { type: 'image', image: { url: `/api/content/${uuid}` }, content_id: 'mine', description: 'A cat' } as const
    expect(withContentId(item, newId)).toBe(item)
  })

  verifies('uamp:content:id-from-url', 'the UUID in a content URL becomes the id', () => {
    const at = (image: string | { url: string }) => withContentId<MediaItem>({ type: 'image', image }, newId).content_id
    expect(at({ url: `/api/content/${uuid}` })).toBe(uuid)
    expect(at({ url: `https://example.com/api/content/${uuid}?sig=1` })).toBe(uuid)
    expect(at(`https://example.com/api/content/${uuid}`)).toBe(uuid)
    expect(at({ url: '/api/content/not-a-uuid' })).toBe('new')
  })

  verifies('uamp:content:id-new', 'base64 and other URLs get a new id, each its own', () => {
    const ids = (['image', 'audio', 'video', 'file'] as const).map((type) => {
      const item = ContentItem.parse({ type, [type]: type === 'file' ? url : 'AAAA', filename: 'f', mime_type: 'm/t' })
      const named = withContentId(item, () => crypto.randomUUID())
      return 'content_id' in named && named.content_id
    })
    expect(new Set(ids).size).toBe(4)
    for (const id of ids) expect(id).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/)
  })

  verifies('uamp:content:id-media-only', 'text, calls, results and thoughts get none', () => {
    const items: ContentItem[] = [
      { type: 'text', text: `see /api/content/${uuid}` },
      { type: 'tool_call', tool_call: { id: 'c', name: 'n', arguments: '{}' } },
      { type: 'tool_result', tool_result: { call_id: 'c', result: '{}' } },
      { type: 'thinking', thinking: 'Hm' },
    ]
    for (const item of items) expect(withContentId(item, newId)).toBe(item)
  })
})

describe('messages', () => {
  const whole = {
    role: 'assistant',
    content: 'See this',
    content_items: [
      { type: 'text', text: 'See this' },
      { type: 'image', image: url },
    ],
    name: 'ann',
    tool_call_id: 'c',
    tool_calls: [{ id: 'c', name: 'n', arguments: '{}' }],
  }

  verifies('uamp:events:message', 'a message needs a role and nothing else', () => {
    expect(Message.parse(whole)).toEqual(whole)
    for (const role of ['system', 'user', 'assistant', 'tool']) expect(Message.parse({ role })).toEqual({ role })
    expect(Message.safeParse({ content: 'hi' }).success).toBe(false)
    expect(Message.safeParse({ role: 'boss' }).success).toBe(false)
    for (const name of Object.keys(whole)) expect(Message.safeParse({ ...whole, [name]: 7 }).success, name).toBe(false)
  })

  test('the text of items leaves out everything that is not text', () => {
    expect(
      textOf([
        { type: 'text', text: 'a' },
        { type: 'image', image: 'AA' },
        { type: 'thinking', thinking: 'Hm' },
        { type: 'text', text: 'b' },
      ]),
    ).toBe('ab')
  })
})
