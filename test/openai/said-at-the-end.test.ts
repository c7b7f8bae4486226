import { expect, test } from 'vitest'
import { connect as connectClient } from '../../src/client/node.ts'
import type { ContentItem } from '../../src/protocol/content.ts'
import { scripted } from '../support/agents.ts'
import { startServer } from '../support/server.ts'
import { joined, stream, user, type Wire } from './support.ts'
import { connect, says, typesOf } from './realtime-wire.ts'
import { checkEvents, client, textOf } from './responses-wire.ts'

/** An agent that yields nothing before its end. */
const atTheEnd = (...output: ContentItem[]) => scripted([{ type: 'response.done', response: { id: '', status: 'completed', output } }])

const PICTURE: ContentItem = { type: 'image', image: 'iVBORaaa', format: 'png' }
const SOUND: ContentItem = { type: 'audio', audio: 'AAAAAAAA', format: 'pcm16', transcript: 'Hm' }
const CALL: ContentItem = { type: 'tool_call', tool_call: { id: 'c1', name: 'look', arguments: '{"a":1}' } }
const words = (text: string): ContentItem => ({ type: 'text', text })

test('Chat Completions: a stream has what the agent says only with its end', async () => {
  const { url } = await startServer(atTheEnd({ type: 'thinking', thinking: 'Hm' }, PICTURE, words('All at once')))
  const { chunks, data } = await stream(`${url}/v1/chat/completions`, { messages: [user('go')] })
  expect(joined(chunks, 'content')).toBe('All at once')
  expect(joined(chunks, 'reasoning_content')).toBe('Hm')
  const [item] = chunks.flatMap(({ choices }) => (choices[0].delta.content_items ?? []) as Wire[])
  expect(item).toMatchObject({ ...PICTURE, content_id: expect.any(String) as string })
  expect(chunks[0].choices[0].delta).toMatchObject({ role: 'assistant' })
  expect(data.at(-1)).toBe('[DONE]')
})

test('Chat Completions: a call that comes only with the end is the client’s to make', async () => {
  const { url } = await startServer(atTheEnd(CALL))
  const tools = [{ type: 'function', function: { name: 'look', parameters: { type: 'object' } } }]
  const { chunks } = await stream(`${url}/v1/chat/completions`, { messages: [user('go')], tools })
  expect(chunks.flatMap(({ choices }) => (choices[0].delta.tool_calls ?? []) as Wire[])).toMatchObject([
    { id: 'c1', function: { name: 'look', arguments: '{"a":1}' } },
  ])
  expect(chunks.at(-1).choices[0].finish_reason).toBe('tool_calls')
})

test.each([true, false])('Responses: what the agent says only with its end is there, with store: %s', async (store) => {
  const { url } = await startServer(atTheEnd(PICTURE, SOUND, words('All at once')))
  const api = client(url)
  const { body } = await api.ask({ input: 'go', store })
  expect(textOf(body)).toBe('HmAll at once')
  expect(body['output']).toMatchObject([
    { type: 'image_generation_call', result: 'iVBORaaa' },
    { type: 'message', uamp: { content_items: [{ type: 'audio' }] } },
    { type: 'message' },
  ])
  const events = await api.stream({ input: 'go', store })
  checkEvents(events)
  expect(textOf(events.at(-1)?.['response'])).toBe('HmAll at once')
  if (!store) return
  const kept = await api.get(events.at(-1)?.['response'].id as string)
  expect(textOf(kept.body)).toBe('HmAll at once')
})

test('Realtime: what the agent says only with its end is written, or spoken', async () => {
  const { url } = await startServer(atTheEnd(PICTURE, SOUND, words('All at once')))
  const wire = await connect(url)
  const spoken = await wire.respond(says('go'))
  expect(typesOf(spoken)).toEqual(expect.arrayContaining(['response.output_audio.delta', 'response.output_audio_transcript.delta']))
  expect(spoken.find(({ type }) => type === 'response.delta')).toMatchObject({ delta: PICTURE })
  await wire.ask({ type: 'session.update', session: { type: 'realtime', output_modalities: ['text'] } }, 'session.updated')
  const written = await wire.respond(says('go'))
  expect(written.at(-1)?.['response'].output).toMatchObject([{ content: [{ text: 'HmAll at once' }] }])
})

test('Realtime: what was passed on before is not repeated with the end', async () => {
  const { url } = await startServer(scripted([{ type: 'response.delta', delta: { ...PICTURE } }]))
  const wire = await connect(url)
  const events = await wire.respond(says('go'))
  expect(events.filter(({ type }) => type === 'response.delta')).toHaveLength(1)
})

test.each(['websocket', 'sse'] as const)('our client, %s: `say` gives what the agent says only with its end', async (transport) => {
  const { url } = await startServer(atTheEnd(words('All '), words('at once')))
  const own = connectClient(url, { transport })
  expect(await (await own.session()).say('go')).toBe('All at once')
  own.close()
})
