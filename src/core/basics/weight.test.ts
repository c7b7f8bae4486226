import { expect, test } from 'vitest'
import type { ContentItem } from '../../protocol/content.ts'
import type { Message } from '../../protocol/message.ts'
import { outputMessages } from '../reading/output.ts'
import { weighMessages } from './weight.ts'

const LARGE = 100_000
const large = 'x'.repeat(LARGE)
const call = { id: 'c', name: 'n', arguments: large }

test.each<[string, Message]>([
  ['name', { role: 'user', name: large, content: 'hi' }],
  ['tool_call_id', { role: 'tool', tool_call_id: large, content: 'hi' }],
  ['content beside no items', { role: 'user', content: large, content_items: [] }],
  ['content beside items that say something else', { role: 'user', content: large, content_items: [{ type: 'text', text: 'y' }] }],
  ['calls beside items', { role: 'assistant', content_items: [], tool_calls: [call] }],
  ['a member that nobody knows', { role: 'user', content: 'hi', more: { large } } as Message],
  ['a call in an item', { role: 'assistant', content_items: [{ type: 'tool_call', tool_call: call }] }],
])('a message weighs its %s', (_, message) => {
  expect(weighMessages([message])).toBeGreaterThan(LARGE)
})

test('what a client gives twice weighs twice', () => {
  const items: ContentItem[] = [
    { type: 'text', text: large },
    { type: 'tool_call', tool_call: call },
  ]
  const other = 'y'.repeat(LARGE)
  expect(weighMessages([{ role: 'assistant', content: other, content_items: items, tool_calls: [{ ...call }] }])).toBeGreaterThan(4 * LARGE)
})

test('what an agent said weighs once: its messages share the texts and calls of its items', () => {
  const said = outputMessages([
    { type: 'text', text: large },
    { type: 'tool_call', tool_call: call },
  ])
  expect(weighMessages(said)).toBeGreaterThan(2 * LARGE)
  expect(weighMessages(said)).toBeLessThan(2 * LARGE + 1000)
})
