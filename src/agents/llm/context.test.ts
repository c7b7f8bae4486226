import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Message } from '../../protocol/message.ts'
import { fitting } from './context.ts'

const user = (content: string): Message => ({ role: 'user', content })
const assistant = (content: string): Message => ({ role: 'assistant', content })
const calling = (...ids: string[]): Message => ({
  role: 'assistant',
  content: '',
  tool_calls: ids.map((id) => ({ id, name: 'f', arguments: '{}' })),
})
const result = (id: string, content = 'r'): Message => ({ role: 'tool', tool_call_id: id, content })
const long = 'x'.repeat(3000)

test('what fits stays as it is', () => {
  const messages = [user('a'), assistant('b'), user('c')]
  expect(fitting(messages, 1000)).toBe(messages)
})

test('the oldest goes first, system messages and the question stay', () => {
  const system: Message = { role: 'system', content: 'Be kind.' }
  const messages = [user(long), system, assistant(long), user('short'), assistant('answer'), user('question')]
  expect(fitting(messages, 200)).toEqual([system, user('short'), assistant('answer'), user('question')])
})

test('calls go together with their results', () => {
  const messages = [user('a'), calling('1', '2'), result('1', long), result('2'), assistant('b'), user('c')]
  expect(fitting(messages, 100)).toEqual([user('c')])
})

test('in a long turn the older calls go, and the question stays', () => {
  const messages = [user('question'), calling('1'), result('1', long), calling('2'), result('2', 'small')]
  expect(fitting(messages, 300)).toEqual([user('question'), calling('2'), result('2', 'small')])
})

test('what cannot fit is left to the provider to refuse', () => {
  const messages = [user(long), calling('1'), result('1', long)]
  expect(fitting(messages, 10)).toEqual(messages)
})

test('media counts for what models take it for, not for its bytes', () => {
  const picture: Message = { role: 'user', content: '', content_items: [{ type: 'image', image: 'A'.repeat(4_000_000) }] }
  const messages = [user('a'), picture]
  expect(fitting(messages, 2000)).toBe(messages)
})

test('whatever the conversation, no result is without its call, and the newest is there', () => {
  const turn = fc.tuple(fc.nat(4), fc.nat(3), fc.nat(600)).map(([steps, calls, size]) => ({ steps, calls: calls + 1, size }))
  fc.assert(
    fc.property(fc.array(turn, { minLength: 1, maxLength: 6 }), fc.nat(3000), (turns, tokens) => {
      const messages = turns.flatMap(({ steps, calls, size }, t) => [
        user('q'.repeat(size)),
        ...Array.from({ length: steps }, (_, s) => Array.from({ length: calls }, (_, c) => `${t}.${s}.${c}`)).flatMap((ids) => [
          calling(...ids),
          ...ids.map((id) => result(id, 'r'.repeat(size))),
        ]),
      ])
      const kept = fitting(messages, tokens)
      const called = new Set(kept.flatMap(({ tool_calls = [] }) => tool_calls.map(({ id }) => id)))
      const answered = new Set(kept.flatMap(({ tool_call_id = [] }) => tool_call_id))
      expect(answered).toEqual(called)
      expect(kept.at(-1)).toBe(messages.at(-1))
      expect(kept).toContain(messages.findLast(({ role }) => role === 'user'))
      expect(kept[0]?.role).toBe('user')
    }),
  )
})
