import { expect, test } from 'vitest'
import type { Message } from '../protocol/message.ts'
import { Places } from './places.ts'
import type { Turn } from '../core/ports/agent.ts'

/** Of a turn nothing else is looked at. Texts are what the user and the assistant said in turn. */
function turn(sessionId: string, ...texts: readonly string[]): Turn {
  const messages = texts.map((content, index): Message => ({ role: index % 2 === 0 ? 'user' : 'assistant', content }))
  return { sessionId, principal: { tenant: 'default', id: 'someone', scopes: [] }, messages, config: {} } as unknown as Turn
}

const words = (messages: readonly Message[]): unknown => messages.map(({ content }) => content)

test('a session finds its place, and what is new in it', async () => {
  const places = new Places<string>()
  await places.keep(turn('s', 'one'), { place: 'p', said: 'first' })
  const { place, before, now } = await places.find(turn('s', 'one', 'said otherwise', 'two'))
  expect([place, words(before), words(now)]).toEqual(['p', ['one', 'said otherwise'], ['two']])
})

test('whoever brings the same conversation along finds it, once', async () => {
  const places = new Places<string>()
  await places.keep(turn('s', 'one'), { place: 'p', said: 'the first' })
  expect((await places.find(turn('t', 'one', 'the first', 'two'))).place).toBe('p')
  expect((await places.find(turn('u', 'one', 'the first', 'two'))).place).toBeUndefined()
})

test('one that began with the same words, but was answered otherwise, is another', async () => {
  const places = new Places<string>()
  await places.keep(turn('s', 'hi'), { place: 'p', said: 'Hello' })
  await places.keep(turn('t', 'hi'), { place: 'q', said: 'Good day' })
  expect((await places.find(turn('u', 'hi', 'Hello', 'two'))).place).toBe('p')
})

test('an older point is found by nobody, nor is another user', async () => {
  const places = new Places<string>()
  await places.keep(turn('s', 'one'), { place: 'p', said: 'first' })
  await places.keep(turn('s', 'one', 'first', 'two'), { place: 'p', said: 'second' })
  expect((await places.find(turn('s', 'one', 'first', 'three'))).place).toBeUndefined()
  const other = { ...turn('s', 'one', 'first', 'two', 'second', 'x'), principal: { tenant: 'default', id: 'other', scopes: [] } }
  expect((await places.find(other as Turn)).place).toBeUndefined()
})

test('a message without an answer may have been heard; where nothing was, all of them are new', async () => {
  const places = new Places<string>()
  const messages: Message[] = [
    { role: 'user', content: 'one' },
    { role: 'assistant', content: 'first' },
    { role: 'user', content: 'two' },
    { role: 'user', content: 'three' },
  ]
  const last = { ...turn('s'), messages } as Turn
  expect(words((await places.find(last)).now)).toEqual(['two', 'three'])
  await places.keep({ ...last, messages: messages.slice(0, 3) } as Turn, { place: 'p', said: '' })
  expect(words((await places.find(last)).now)).toEqual(['three'])
  // It is in the hands of that turn.
  expect(words((await places.find(last)).now)).toEqual(['two', 'three'])
})

test('what was found by another session is no longer the place of the one before', async () => {
  const places = new Places<string>()
  await places.keep(turn('s', 'one'), { place: 'p', said: 'first' })
  expect((await places.find(turn('t', 'one', 'first', 'two'))).place).toBe('p')
  expect((await places.find(turn('s', 'one', 'first', 'three'))).place).toBeUndefined()
  await places.keep(turn('t', 'one', 'first', 'two'), { place: 'p', said: 'second' })
  expect((await places.find(turn('s', 'one', 'first', 'three'))).place).toBeUndefined()
  expect((await places.find(turn('t', 'one', 'first', 'two', 'second', 'x'))).place).toBe('p')
})

test('where nothing was heard, the conversation is where it was', async () => {
  const places = new Places<string>()
  await places.keep(turn('s', 'one'), { place: 'p', said: 'first' })
  const second = turn('s', 'one', 'first', 'two')
  const { place, before } = await places.find(second)
  await places.keep(second, { place, heard: before, said: '' })
  expect(await places.find(second)).toMatchObject({ place: 'p', now: [{ content: 'two' }] })
})

const user = (content: string, ...content_items: Exclude<Message['content_items'], undefined>): Message => ({
  role: 'user',
  content,
  ...(content_items.length > 0 && { content_items: [{ type: 'text', text: content }, ...content_items] }),
})
const image = (image: string, content_id: string) => ({ type: 'image' as const, image, content_id })
const calling = (args: string): Message => ({ role: 'assistant', content: '', tool_calls: [{ id: 'c', name: 'f', arguments: args }] })
const giving = (content: string): Message => ({ role: 'tool', tool_call_id: 'c', content })

const DIFFERENT: Readonly<Record<string, readonly [readonly Message[], readonly Message[]]>> = {
  'the system prompt': [
    [{ role: 'system', content: 'You are A' }, user('hi')],
    [{ role: 'system', content: 'You are B' }, user('hi')],
  ],
  'white space': [[user('a b')], [user('ab')]],
  'an image': [[user('what is it?', image('aaaa', '1'))], [user('what is it?', image('bbbb', '1'))]],
  'a call': [
    [user('x'), calling('1'), giving('r'), user('hi')],
    [user('x'), calling('2'), giving('r'), user('hi')],
  ],
  'a result': [
    [user('x'), calling('1'), giving('r'), user('hi')],
    [user('x'), calling('1'), giving('s'), user('hi')],
  ],
}
test.each(Object.entries(DIFFERENT))('conversations that differed in %s alone were mixed', async (_, [kept, other]) => {
  const places = new Places<string>()
  const more: Message[] = [
    { role: 'assistant', content: 'ok' },
    { role: 'user', content: 'and?' },
  ]
  await places.keep({ ...turn('s'), messages: kept } as Turn, { place: 'p', said: 'ok' })
  expect((await places.find({ ...turn('t'), messages: [...other, ...more] } as Turn)).place).toBeUndefined()
  expect((await places.find({ ...turn('t'), messages: [...kept, ...more] } as Turn)).place).toBe('p')
})

test('instructions are part of a conversation, and the handle of what is sent again is not', async () => {
  const places = new Places<string>()
  const first = { ...turn('s'), messages: [user('x', image('aaaa', '1'))], config: { instructions: 'A' } } as unknown as Turn
  await places.keep(first, { place: 'p', said: 'ok' })
  const messages: Message[] = [user('x', image('aaaa', '2')), { role: 'assistant', content: 'ok' }, user('and?')]
  expect(
    (await places.find({ ...first, sessionId: 't', messages, config: { instructions: 'B' } } as unknown as Turn)).place,
  ).toBeUndefined()
  expect((await places.find({ ...first, sessionId: 't', messages })).place).toBe('p')
})
