import { expect, test } from 'vitest'
import { Conversation, toMessages } from './conversation.ts'
import type { Item, MessageItem } from './model.ts'

const message = (id: string, text = id, role: MessageItem['role'] = 'user'): Item => ({
  type: 'message',
  id,
  role,
  status: 'completed',
  content: [{ type: 'text', text }],
})
const spoken = (id: string, size: number, transcript: string | null = null): Item => ({
  type: 'message',
  id,
  role: 'user',
  status: 'completed',
  content: [{ type: 'audio', audio: 'A'.repeat(size), transcript }],
})
const UNBOUNDED = { set: () => undefined, grow: () => undefined }
const contents = (conversation: Conversation) => conversation.messages().map(({ content }) => content)

test('items stand where they were put', () => {
  const conversation = new Conversation('conv_1', UNBOUNDED)
  expect(conversation.add(message('b'))).toBe(null)
  expect(conversation.add(message('d'))).toBe('b')
  expect(conversation.add(message('c'), 'b')).toBe('b')
  expect(conversation.add(message('a'), 'root')).toBe(null)
  expect(contents(conversation)).toEqual(['a', 'b', 'c', 'd'])
  expect(conversation.last).toBe('d')
})

test('there are at most 512 items; the oldest go', () => {
  const conversation = new Conversation('conv_1', UNBOUNDED)
  for (let number = 0; number < 600; number++) conversation.add(message(`item_${number}`))
  expect(conversation.messages()).toHaveLength(512)
  expect(conversation.find('item_87')).toBe(undefined)
  expect(conversation.find('item_88')).toBeDefined()
})

test('of too much audio the oldest recordings go and their transcripts stay', () => {
  const conversation = new Conversation('conv_1', UNBOUNDED)
  const size = 5 * 1024 * 1024
  conversation.add(spoken('a', size, 'what was said'))
  conversation.add(spoken('b', size))
  conversation.add(message('text'))
  conversation.add(spoken('c', size))
  expect(conversation.messages().map(({ content_items }) => content_items?.map((item) => item.type))).toEqual([
    ['text'],
    ['audio'],
    ['text'],
    ['audio'],
  ])
  expect(contents(conversation)[0]).toBe('what was said')
})

test('of too much text the oldest items go, and the newest stays whatever it holds', () => {
  const conversation = new Conversation('conv_1', UNBOUNDED)
  conversation.add(message('a', 'x'.repeat(5 * 1024 * 1024)))
  conversation.add(message('b', 'x'.repeat(5 * 1024 * 1024)))
  conversation.add(message('c', 'x'.repeat(4 * 1024 * 1024)))
  expect([conversation.find('a'), conversation.find('b')?.id, conversation.find('c')?.id]).toEqual([undefined, 'b', 'c'])
  conversation.delete('c')
  conversation.add(message('d', 'x'.repeat(6 * 1024 * 1024)))
  expect(conversation.find('b')?.id).toBe('b')
})

test('what the assistant says and calls in a row is one message; an unfinished call is none', () => {
  const call = (id: string, status: Item['status']): Item => ({
    type: 'function_call',
    id,
    status,
    call_id: id,
    name: 'f',
    arguments: '{}',
  })
  const output: Item = { type: 'function_call_output', id: 'o', status: 'completed', call_id: 'c1', output: '1' }
  const messages = toMessages([
    message('q'),
    message('a', 'let me see', 'assistant'),
    call('c1', 'completed'),
    call('c2', 'incomplete'),
    output,
  ])
  expect(messages.map(({ role, content, tool_calls, tool_call_id }) => ({ role, content, tool_calls, tool_call_id }))).toEqual([
    { role: 'user', content: 'q', tool_calls: undefined, tool_call_id: undefined },
    { role: 'assistant', content: 'let me see', tool_calls: [{ id: 'c1', name: 'f', arguments: '{}' }], tool_call_id: undefined },
    { role: 'tool', content: '1', tool_calls: undefined, tool_call_id: 'c1' },
  ])
})
