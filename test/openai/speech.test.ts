/** Speech comes in pieces, as a whole, or both: streamed or not, for ears or for eyes, none of it is missing and none comes twice. */
import { expect, test } from 'vitest'
import { text } from '../../src/core/agent-kit/drafts.ts'
import type { Draft } from '../../src/protocol/events.ts'
import { scripted } from '../support/agents.ts'
import { startServer } from '../support/server.ts'
import { connect, says } from './realtime-wire.ts'
import { client, textOf } from './responses-wire.ts'
import { ask, joined, stream, user } from './support.ts'

const PATH = '/v1/chat/completions'
const base64 = (text: string): string => Buffer.from(text).toString('base64')
const piece = (sound: string): Draft => ({ type: 'audio.delta', audio: base64(sound), format: 'pcm16' })
const bare = (sound: string): Draft => ({ type: 'response.delta', delta: { type: 'audio', audio: base64(sound), format: 'pcm16' } })
const words = (transcript: string): Draft => ({ type: 'transcript.delta', transcript })
const whole = (content_id: string, sound: string, transcript: string): Draft => ({
  type: 'response.delta',
  delta: { type: 'audio', audio: base64(sound), format: 'pcm16', content_id, transcript },
})

/** Never as a whole. */
const STREAMED: Readonly<Record<string, readonly Draft[]>> = {
  'only in pieces': [piece('0123'), words('One'), piece('4567'), words(' two')],
  'only in pieces, its words complete later': [
    piece('0123'),
    words('One'),
    piece('4567'),
    { type: 'transcript.done', transcript: 'One two' },
  ],
  'only in pieces that are deltas': [bare('0123'), bare('4567'), words('One two')],
}

const CASES: Readonly<Record<string, readonly Draft[]>> = {
  'as a whole': [whole('a', '01234567', 'One two')],
  'in two wholes': [whole('a', '0123', 'One'), whole('b', '4567', ' two')],
  'in pieces, then as a whole': [piece('0123'), words('One'), piece('4567'), whole('a', '01234567', 'One two')],
  'in pieces without words, then as a whole': [piece('0123'), piece('4567'), whole('a', '01234567', 'One two')],
  'in words, then as a whole': [words('One'), whole('a', '01234567', 'One two')],
  'in pieces that are deltas, then as a whole': [bare('0123'), bare('4567'), whole('a', '01234567', 'One two')],
  ...STREAMED,
  'in pieces and as a whole, then another whole': [piece('0123'), words('One'), whole('a', '0123', 'One'), whole('b', '4567', ' two')],
}

const wordsOf = (pieces: readonly { transcript?: string }[]): string => pieces.map(({ transcript = '' }) => transcript).join('')
const soundOf = (pieces: readonly { data?: string }[]): string =>
  pieces.map(({ data = '' }) => Buffer.from(data, 'base64').toString()).join('')

test.each(Object.entries(CASES))('Chat Completions tells speech that comes %s', async (_, drafts) => {
  const { url } = await startServer(scripted(drafts))
  const aloud = { messages: [user('x')], modalities: ['text', 'audio'], audio: { voice: 'alloy', format: 'pcm16' } }
  const { audio } = (await ask(url + PATH, aloud)).body.choices[0].message
  const pieces = (await stream(url + PATH, aloud)).chunks.flatMap(({ choices }) => choices[0].delta.audio ?? [])
  expect([soundOf([audio]), wordsOf([audio])]).toEqual(['01234567', 'One two'])
  expect([soundOf(pieces), wordsOf(pieces)]).toEqual(['01234567', 'One two'])
  const read = { messages: [user('x')] }
  expect((await ask(url + PATH, read)).body.choices[0].message.content).toBe('One two')
  expect(joined((await stream(url + PATH, read)).chunks, 'content')).toBe('One two')
})

const COMPLETE: readonly Draft[] = [piece('01234567'), { type: 'transcript.done', transcript: 'One two' }]

test.each([...Object.entries(CASES), ['in pieces, and its words when they are complete', COMPLETE] as const])(
  'Realtime tells speech that comes %s',
  async (_, drafts) => {
    const { url } = await startServer(scripted(drafts))
    const heard = await (await connect(url)).respond(says('x'))
    const deltas = (type: string): string[] => heard.flatMap((event) => (event.type === type ? [event['delta'] as string] : []))
    expect(soundOf(deltas('response.output_audio.delta').map((data) => ({ data })))).toBe('01234567')
    expect(deltas('response.output_audio_transcript.delta').join('')).toBe('One two')
  },
)

test('Chat Completions tells words that come only when they are complete', async () => {
  const { url } = await startServer(scripted([{ type: 'transcript.done', transcript: 'One two' }]))
  expect(joined((await stream(url + PATH, { messages: [user('x')] })).chunks, 'content')).toBe('One two')
})

test.each([
  ...Object.entries(STREAMED),
  ['only in words', [words('One'), words(' two')]] as const,
  ['only in pieces, after a text', [text('So: '), piece('01234567'), words('One two')]] as const,
  ['only in words, after a text', [text('So: '), words('One two')]] as const,
])('Responses tells, and keeps, speech that comes %s', async (name, drafts) => {
  const { url } = await startServer(scripted([...drafts]))
  const api = client(url)
  const expected = name.endsWith('after a text') ? 'So: One two' : 'One two'
  const { body } = await api.ask({ input: 'x' })
  expect(textOf(body)).toBe(expected)
  const events = await api.stream({ input: 'x' })
  expect(textOf(events.at(-1)?.['response'])).toBe(expected)
  expect(textOf((await api.get(body['id'] as string)).body)).toBe(expected)
  const list = (
    await api.get(`${(await api.ask({ input: 'y', previous_response_id: body['id'] as string })).body['id'] as string}/input_items`)
  ).body
  expect(JSON.stringify(list)).toContain('One two')
})

test.each(['audio', 'text'] as const)('Chat Completions has words without a sound, for who asks for %s', async (modality) => {
  const { url } = await startServer(scripted([words('One'), words(' two')]))
  const aloud = { modalities: ['text', 'audio'], audio: { voice: 'alloy', format: 'pcm16' } }
  const { content } = (await ask(url + PATH, { messages: [user('x')], ...(modality === 'audio' && aloud) })).body.choices[0].message
  expect(content).toBe('One two')
})
