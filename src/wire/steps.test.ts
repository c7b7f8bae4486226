import { expect, test } from 'vitest'
import type { ContentItem } from '../protocol/content.ts'
import type { Message } from '../protocol/message.ts'
import { callIds, toSteps } from './steps.ts'

const call = (id: string) => ({ id, name: 'tool', arguments: '{}' })
const result = (call_id: string, text: string): ContentItem => ({ type: 'tool_result', tool_result: { call_id, result: text } })

const outline = (messages: readonly Message[]) =>
  toSteps(messages).map((step) => (step.kind === 'result' ? `${step.callId}=${step.text}` : step.kind))

test('results among other items are steps of their own, in the place of their calls', () => {
  const content_items: ContentItem[] = [
    { type: 'tool_call', tool_call: call('a') },
    result('a', '1'),
    { type: 'text', text: 'And' },
    { type: 'tool_call', tool_call: call('b') },
  ]
  expect(
    outline([
      { role: 'assistant', content_items },
      { role: 'user', content_items: [result('b', '2'), { type: 'text', text: 'Hi' }] },
    ]),
  ).toEqual(['assistant', 'a=1', 'assistant', 'b=2', 'user'])
})

test('an id that comes again has its own result', () => {
  expect(
    outline([
      { role: 'assistant', tool_calls: [call('a')] },
      { role: 'tool', tool_call_id: 'a', content: '1' },
      { role: 'assistant', tool_calls: [call('a')] },
      { role: 'tool', tool_call_id: 'a', content: '2' },
    ]),
  ).toEqual(['assistant', 'a=1', 'assistant', 'a=2'])
})

test('a call that stands in two places is one', () => {
  const [step] = toSteps([
    { role: 'assistant', content_items: [{ type: 'tool_call', tool_call: call('a') }], tool_calls: [call('a'), call('b')] },
  ])
  expect(step).toMatchObject({ kind: 'assistant', calls: [{ id: 'a' }, { id: 'b' }] })
})

test('text that stands only in `content` is not lost beside media', () => {
  const image: ContentItem = { type: 'image', image: { url: 'https://example.com' } }
  expect(toSteps([{ role: 'user', content: 'Look', content_items: [image] }])).toMatchObject([
    { kind: 'user', items: [{ type: 'text', text: 'Look' }, image] },
  ])
  expect(toSteps([{ role: 'user', content: 'Look', content_items: [{ type: 'text', text: 'Look' }, image] }])).toMatchObject([
    { kind: 'user', items: [{ type: 'text', text: 'Look' }, image] },
  ])
})

test('the text of a result is told once', () => {
  const items: ContentItem[] = [
    { type: 'text', text: 'seen' },
    { type: 'image', image: { url: 'https://example.com' } },
  ]
  const steps = (content: string) =>
    toSteps([
      { role: 'assistant', tool_calls: [call('a')] },
      { role: 'tool', tool_call_id: 'a', content, content_items: items },
    ])
  expect(steps('seen')[1]).toMatchObject({ text: 'seen', items: items.slice(1) })
  expect(steps('')[1]).toMatchObject({ text: 'seen', items: items.slice(1) })
  expect(steps('done')[1]).toMatchObject({ text: 'done', items })
})

test('ids are found wherever calls stand', () => {
  expect([
    ...callIds([
      { role: 'assistant', tool_calls: [call('a')] },
      { role: 'assistant', content_items: [{ type: 'tool_call', tool_call: call('b') }] },
    ]),
  ]).toEqual(['a', 'b'])
})
